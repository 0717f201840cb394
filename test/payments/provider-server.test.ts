import { appendFile, readFile } from 'node:fs/promises';
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import { createHttpPaymentProvider } from '../../src/payments/http-payment-provider.ts';
import { ManualClock } from './manual-clock.ts';
import { ProviderProcess, temporaryFolder } from './provider-process.ts';
import { sampleBody } from './sample-charge.ts';

let folder: Awaited<ReturnType<typeof temporaryFolder>>;
let journalFile: string;
let provider: ProviderProcess;

beforeAll(async () => {
  folder = await temporaryFolder();
  journalFile = folder.file('shared.ndjson');
  provider = await ProviderProcess.start(journalFile);
});
afterEach(() => provider.send('DELETE', '/_faults'));
afterAll(async () => {
  await provider.kill('SIGTERM');
  await folder.remove();
});

/** What was charged for one reference; each test uses a reference of its own. */
async function chargesFor(reference: string, at = provider) {
  return (await at.listCharges()).filter((charge) => charge.reference === reference);
}

test('charges, answers, and lists the charge with its key and caller', async () => {
  const answer = await provider.charge({ key: 'listed', caller: 'worker-1', body: { reference: 'listed' } });

  expect(answer).toMatchObject({ status: 201, replayed: false, body: { kind: 'charged' } });
  expect(await chargesFor('listed')).toEqual([
    {
      chargeId: answer.body.providerChargeId,
      idempotencyKey: 'listed',
      reference: 'listed',
      accountId: 'acc-1',
      amountMinor: 1250,
      currency: 'EUR',
      caller: 'worker-1',
      chargedAtMs: expect.any(Number) as number,
    },
  ]);
});

test('has the charge in its journal file by the time the answer is there', async () => {
  await provider.charge({ key: 'in-file', body: { reference: 'in-file' } });

  expect(await readFile(journalFile, 'utf8')).toContain('"reference":"in-file"');
});

test('gives the stored answer again for the same key and body, marked as a replay', async () => {
  const body = { reference: 'replayed' };
  const first = await provider.charge({ key: 'replayed', body });

  const second = await provider.charge({ key: 'replayed', body });

  expect(second).toEqual({ ...first, replayed: true });
  expect(await chargesFor('replayed')).toHaveLength(1);
});

test('answers 409 for a known key with another body, and charges nothing', async () => {
  await provider.charge({ key: 'reused', body: { reference: 'reused' } });

  const second = await provider.charge({ key: 'reused', body: { reference: 'reused', amountMinor: 1 } });

  expect(second).toMatchObject({ status: 409, body: { error: { code: 'idempotency_key_reused' } } });
  expect(await chargesFor('reused')).toHaveLength(1);
});

test('double-charges an unprotected worker that sends no key', async () => {
  const body = { reference: 'unprotected' };

  await provider.charge({ body });
  await provider.charge({ body });

  expect((await chargesFor('unprotected')).map(({ idempotencyKey }) => idempotencyKey)).toEqual([null, null]);
});

test('charges once when many requests with one key arrive together', async () => {
  const body = { reference: 'together' };

  const answers = await Promise.all(Array.from({ length: 20 }, () => provider.charge({ key: 'together', body })));

  const [only, ...more] = await chargesFor('together');
  expect(more).toEqual([]);
  const ids = answers.filter(({ status }) => status === 201).map(({ body: { providerChargeId } }) => providerChargeId);
  expect(new Set(ids)).toEqual(new Set([only?.chargeId]));
  const codes = answers.filter(({ status }) => status !== 201).map(({ body: { error } }) => error?.code);
  expect(new Set([...codes, 'idempotency_key_in_use'])).toEqual(new Set(['idempotency_key_in_use']));
});

test('fail-before answers 500 without charging, and the retry charges', async () => {
  await provider.addFault({ match: { reference: 'before' }, effect: 'fail-before' });
  const request = { key: 'before', body: { reference: 'before' } };

  expect((await provider.charge(request)).status).toBe(500);
  expect(await chargesFor('before')).toEqual([]);
  expect(await provider.charge(request)).toMatchObject({ status: 201, replayed: false });
});

test('fail-after charges and cuts the connection, and the retry is a replay', async () => {
  await provider.addFault({ id: 'cut', match: { reference: 'after' }, effect: 'fail-after' });
  const request = { key: 'after', body: { reference: 'after' } };

  await expect(provider.charge(request)).rejects.toThrow(TypeError);
  expect(await chargesFor('after')).toHaveLength(1);
  expect(await provider.charge(request)).toMatchObject({ status: 201, replayed: true });
  expect(await provider.listFaults()).toMatchObject([{ id: 'cut', seen: 2, effective: 1 }]);
});

test('late charges at once and answers after its delay', async () => {
  await provider.addFault({ match: { reference: 'late' }, effect: 'late', delayMs: 5 });

  const answer = await provider.charge({ key: 'late', body: { reference: 'late' } });

  expect(answer).toMatchObject({ status: 201, body: { kind: 'charged' } });
});

test('a client that times out after the charge was made gets that same charge when it asks again', async () => {
  await provider.addFault({ match: { reference: 'timed-out' }, effect: 'hold' });
  const clock = new ManualClock();
  const client = createHttpPaymentProvider({ baseUrl: provider.baseUrl, clock, caller: 'impatient' });
  const request = { ...sampleBody, idempotencyKey: 'timed-out', reference: 'timed-out' };
  const first = client.charge(request);
  first.catch(() => undefined);
  await provider.nextHeld();
  clock.advance(10_000);

  await expect(first).rejects.toMatchObject({ code: 'PAYMENT', reason: 'timeout', retryable: true });
  const result = await client.charge(request);

  const charges = await chargesFor('timed-out');
  expect(charges).toHaveLength(1);
  expect(result).toEqual({ kind: 'charged', providerChargeId: charges[0]?.chargeId });
});

test('hold charges, tells the watcher, and answers when it is released', async () => {
  await provider.addFault({ id: 'h', match: { reference: 'held' }, effect: 'hold' });
  const pending = provider.charge({ key: 'held', caller: 'worker-9', body: { reference: 'held' } });

  const held = await provider.nextHeld();

  const [charge] = await chargesFor('held');
  expect(held).toMatchObject({ ruleId: 'h', reference: 'held', caller: 'worker-9', chargedAtMs: charge?.chargedAtMs });
  expect(await provider.listFaults()).toMatchObject([{ id: 'h', effective: 1, held: [{ id: held.id }] }]);
  const release = await provider.send('POST', '/_faults/release', { body: { id: 'h' } });
  expect(release.body).toEqual({ released: 1 });
  expect((await pending).body.providerChargeId).toBe(charge?.chargeId);
});

test('a caller that goes while it is held leaves one charge, which the next worker gets as a replay', async () => {
  await provider.addFault({ id: 'g', match: { reference: 'gone' }, effect: 'hold' });
  const controller = new AbortController();
  const request = { key: 'gone', body: { reference: 'gone' } };
  const pending = provider.charge({ ...request, caller: 'killed', signal: controller.signal });
  pending.catch(() => undefined);
  await provider.nextHeld();

  controller.abort();
  await expect(pending).rejects.toThrow(/aborted/);
  await expect.poll(() => provider.listFaults()).toMatchObject([{ id: 'g', effective: 1, held: [] }]);

  expect(await provider.charge({ ...request, caller: 'next' })).toMatchObject({ status: 201, replayed: true });
  expect((await chargesFor('gone')).map(({ caller }) => caller)).toEqual(['killed']);
});

test('decline charges nothing and stays declined for that key', async () => {
  await provider.addFault({ match: { reference: 'declined' }, effect: 'decline' });
  const client = createHttpPaymentProvider({ baseUrl: provider.baseUrl });
  const request = { ...sampleBody, idempotencyKey: 'declined', reference: 'declined' };

  const first = await client.charge(request);

  expect(first).toEqual({ kind: 'declined', reason: 'declined by a fault rule' });
  expect(await client.charge(request)).toEqual(first);
  expect(await chargesFor('declined')).toEqual([]);
});

test('clearing the rules releases what is held', async () => {
  await provider.addFault({ match: { reference: 'cleared' }, effect: 'hold', times: 5 });
  const pending = provider.charge({ key: 'cleared', body: { reference: 'cleared' } });
  await provider.nextHeld();

  await provider.send('DELETE', '/_faults');

  expect((await pending).status).toBe(201);
  expect(await provider.listFaults()).toEqual([]);
});

test('answers 404 for the release of an unknown id and 409 for a rule whose id is taken', async () => {
  await provider.addFault({ id: 'taken', effect: 'hold', match: { reference: 'nobody' } });

  const unknown = await provider.send('POST', '/_faults/release', { body: { id: 'unknown' } });
  const taken = await provider.send('POST', '/_faults', { body: { id: 'taken', effect: 'hold' } });

  expect([unknown.status, taken.status]).toEqual([404, 409]);
});

test.each(['evil.example', 'evil.example:80', 'localhost.evil.example', '127.0.0.1.evil.example', '0.0.0.0'])(
  'refuses the Host header %j',
  async (host) => {
    expect(await provider.sendRaw({ method: 'GET', path: '/health', headers: { host } })).toBe(403);
  },
);

test.each(['localhost', '127.0.0.1', '[::1]:8080'])('serves the loopback Host header %j', async (host) => {
  expect(await provider.sendRaw({ method: 'GET', path: '/health', headers: { host } })).toBe(200);
});

const json = { 'content-type': 'application/json' };
test.each([
  [
    'a body over 64 KiB',
    413,
    { headers: json, body: JSON.stringify({ ...sampleBody, description: 'x'.repeat(65_536) }) },
  ],
  ['a body of 2 MiB', 413, { headers: { ...json, 'content-length': 2_097_152 }, body: '' }],
  ['half a JSON', 400, { headers: json, body: '{"accountId":' }],
  ['an empty body', 400, { headers: json, body: '' }],
  ['another content type', 415, { headers: { 'content-type': 'text/plain' }, body: JSON.stringify(sampleBody) }],
  ['an unknown field', 422, { headers: json, body: JSON.stringify({ ...sampleBody, tip: 1 }) }],
  ['a missing field', 422, { headers: json, body: JSON.stringify({ ...sampleBody, reference: undefined }) }],
  ['an amount of 0', 422, { headers: json, body: JSON.stringify({ ...sampleBody, amountMinor: 0 }) }],
  ['half a cent', 422, { headers: json, body: JSON.stringify({ ...sampleBody, amountMinor: 10.5 }) }],
  ['an amount as text', 422, { headers: json, body: JSON.stringify({ ...sampleBody, amountMinor: '10' }) }],
  ['a currency in small letters', 422, { headers: json, body: JSON.stringify({ ...sampleBody, currency: 'eur' }) }],
  [
    'a key of 256 characters',
    400,
    { headers: { ...json, 'idempotency-key': 'k'.repeat(256) }, body: JSON.stringify(sampleBody) },
  ],
])('refuses %s with %i', async (_, status, request) => {
  const before = (await provider.listCharges()).length;

  expect(await provider.sendRaw(request)).toBe(status);
  expect(await provider.listCharges()).toHaveLength(before);
});

test('answers 404 for an unknown path, 405 for a wrong method and 400 for a wrong query', async () => {
  const statuses = [
    await provider.send('GET', '/nothing'),
    await provider.send('DELETE', '/v1/charges'),
    await provider.send('GET', '/_faults/held?wait=60001'),
    await provider.send('GET', '/_faults/held?wait=soon'),
  ].map(({ status }) => status);

  expect(statuses).toEqual([404, 405, 400, 400]);
});

test('remembers keys, charges and declines over a crash', async () => {
  const file = folder.file('crash.ndjson');
  const before = await ProviderProcess.start(file);
  const first = await before.charge({ key: 'k1', body: { reference: 'r1' } });
  await before.addFault({ effect: 'decline' });
  const declined = await before.charge({ key: 'k2', body: { reference: 'r2' } });
  await before.kill('SIGKILL');

  const after = await ProviderProcess.start(file);

  try {
    expect(await after.charge({ key: 'k1', body: { reference: 'r1' } })).toEqual({ ...first, replayed: true });
    expect(await after.charge({ key: 'k2', body: { reference: 'r2' } })).toEqual({ ...declined, replayed: true });
    expect((await after.charge({ key: 'k1', body: { reference: 'other' } })).status).toBe(409);
    expect(await after.listCharges()).toHaveLength(1);
  } finally {
    await after.kill('SIGTERM');
  }
});

test('starts on a journal with a torn last line and reports it', async () => {
  const file = folder.file('torn.ndjson');
  const before = await ProviderProcess.start(file);
  await before.charge({ key: 'whole' });
  await before.kill('SIGKILL');
  await appendFile(file, '{"idempotencyKey":"to');

  const after = await ProviderProcess.start(file);

  expect((await after.send('GET', '/health')).body).toEqual({ status: 'ok', keys: 1, tornBytes: 21 });
  expect(await after.charge({ key: 'whole' })).toMatchObject({ replayed: true });
  expect((await after.charge({ key: 'next', body: { reference: 'next' } })).status).toBe(201);
  expect((await after.kill('SIGTERM')).stderr).toContain('torn last line of 21 bytes');
  expect((await readFile(file, 'utf8')).split('\n')).toHaveLength(3);
});

test('answers 500, then reports bad health, when somebody else writes to its journal', async () => {
  const file = folder.file('disturbed.ndjson');
  const disturbed = await ProviderProcess.start(file);
  await appendFile(file, 'x');

  try {
    expect((await disturbed.charge({ key: 'k' })).status).toBe(500);
    expect(await disturbed.send('GET', '/health')).toMatchObject({ status: 503, body: { status: 'failed' } });
  } finally {
    await disturbed.kill('SIGTERM');
  }
});

test.each(['SIGTERM', 'SIGINT'] as const)('ends with code 0 on %s, cutting what it holds', async (signal) => {
  const ending = await ProviderProcess.start(folder.file(`${signal}.ndjson`));
  await ending.addFault({ effect: 'hold' });
  const pending = ending.charge({ key: 'k' });
  pending.catch(() => undefined);
  await ending.nextHeld();

  expect(await ending.kill(signal)).toEqual({ code: 0, signal: null, stderr: '' });
  await expect(pending).rejects.toThrow(TypeError);
});

test('ends with code 0 when its stdin ends', async () => {
  const orphan = await ProviderProcess.start(folder.file('orphan.ndjson'));

  expect(await orphan.endStdin()).toEqual({ code: 0, signal: null, stderr: '' });
});

test.each([
  ['no journal', ['--port', '0']],
  ['a port that is no number', ['--port', 'x', '--journal', 'j']],
  ['a port above 65535', ['--port', '65536', '--journal', 'j']],
  ['an unknown flag', ['--journal', 'j', '--fast']],
])('ends with code 2 and the usage for %s', async (_, args) => {
  const ended = await ProviderProcess.run(args);

  expect(ended.code).toBe(2);
  expect(ended.stderr).toContain('usage:');
});

test('ends with code 1 and a reason when its port is taken', async () => {
  const ended = await ProviderProcess.run(['--port', String(provider.port), '--journal', folder.file('second')]);

  expect(ended.code).toBe(1);
  expect(ended.stderr).toContain(`cannot listen on 127.0.0.1:${String(provider.port)}`);
});
