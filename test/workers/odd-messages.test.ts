import type { MessageAttributeValue } from '@aws-sdk/client-sqs';
import { expect, test } from 'vitest';
import { CHARGE_REQUESTED } from '../../src/messages/charge.ts';
import { MAX_MESSAGE_BYTES } from '../../src/messages/limits.ts';
import { bodyDigest, NOTICE_ATTRIBUTE } from '../../src/queues/dead-letter-notice.ts';
import { deadLetterKey } from '../../src/store/table.ts';
import { workerLab, type Bench } from '../support/worker-fixture.ts';

const lab = workerLab();

function envelope(changes: Record<string, unknown>): string {
  return JSON.stringify({ type: CHARGE_REQUESTED.type, version: 1, key: 'r1', payload: {}, ...changes });
}

function nested(levels: number): unknown {
  let value: unknown = 1;
  for (let level = 0; level < levels; level += 1) value = [value];
  return value;
}

function padded(body: string): string {
  return body + ' '.repeat(MAX_MESSAGE_BYTES - Buffer.byteLength(body));
}

function attributes(count: number): Record<string, MessageAttributeValue> {
  const names = Array.from({ length: count }, (_, index) => `attribute-${String(index)}`);
  return Object.fromEntries(names.map((name) => [name, { DataType: 'String', StringValue: name }]));
}

/** The notice that was kept in the table because the copy had no room for it. */
async function keptNotice(bench: Bench, body: string): Promise<unknown> {
  return (await bench.store.get(deadLetterKey(bench.queue, bodyDigest(body))))?.['notice'];
}

test.each([
  ['a body that is no JSON', 'NOT_JSON', () => 'charge me'],
  ['JSON that is no object', 'ENVELOPE', () => '[1,2,3]'],
  ['JSON that is null', 'ENVELOPE', () => 'null'],
  ['an unknown type', 'UNKNOWN_TYPE', () => envelope({ type: 'refund.requested' })],
  ['an unknown version', 'UNKNOWN_VERSION', () => envelope({ version: 2 })],
  ['a version that is no number', 'ENVELOPE', () => envelope({ version: '1' })],
  ['an empty key', 'ENVELOPE', () => envelope({ key: '' })],
  ['a key of 2,000 characters', 'ENVELOPE', () => envelope({ key: 'k'.repeat(2_000) })],
  ['a key that is not its payload’s', 'KEY_MISMATCH', (bench) => envelope({ key: 'r9', payload: bench.charge() })],
  ['JSON nested 10,000 deep', 'NOT_JSON', () => '['.repeat(10_000) + ']'.repeat(10_000)],
  ['JSON nested a level too deep', 'NOT_JSON', () => envelope({ payload: nested(32) })],
  [
    'a field named __proto__',
    'NOT_JSON',
    () => envelope({}).replace('"payload":{}', '"payload":{"__proto__":{"a":1}}'),
  ],
  ['half a surrogate pair', 'NOT_JSON', () => envelope({}).replace('"key":"r1"', '"key":"\\ud800"')],
  ['a number out of range', 'NOT_JSON', () => envelope({}).replace('"payload":{}', '"payload":{"amountMinor":1e999}')],
  ['an amount with a fraction', 'SCHEMA', (bench) => envelope({ payload: bench.charge({ amountMinor: 0.1 }) })],
  ['a field too many', 'SCHEMA', (bench) => envelope({ payload: { ...bench.charge(), tip: 5 } })],
] satisfies [string, string, (bench: Bench) => string][])(
  'parks %s with its reason and goes on with the next message',
  async (_case, code, bodyOf) => {
    const bench = await lab.open();
    const body = bodyOf(bench);
    const run = bench.run();
    await bench.sendAll([body, bench.chargeBody()]);

    await Promise.all([run.when('invalid'), run.when('completed')]);

    const detail = expect.stringMatching(new RegExp(`^${code}: .`)) as string;
    expect(await bench.deadLetters()).toMatchObject([{ body, notice: { reason: 'invalid', detail } }]);
    expect([run.tally(), await bench.depth()]).toEqual([{ invalid: 1, completed: 1 }, 0]);
  },
);

test('applies a valid charge of exactly 1 MiB', async () => {
  const bench = await lab.open();
  const run = bench.run();
  await bench.send(padded(bench.chargeBody()));

  await run.when('completed');

  expect([await bench.balance(), await bench.depth()]).toEqual([1_250, 0]);
});

test('takes a charge of 1 MiB for a duplicate of the same charge without the padding', async () => {
  const bench = await lab.open();
  const run = bench.run();
  await bench.send(padded(bench.chargeBody()));
  await run.when('completed');
  await bench.send(bench.chargeBody());

  await run.when('replayed');

  expect(await bench.balance()).toBe(1_250);
});

test('parks an unreadable message of exactly 1 MiB whole, and keeps its reason in the table', async () => {
  const bench = await lab.open();
  const body = padded('{"type":');
  const run = bench.run();
  await bench.send(body);
  await bench.send(bench.chargeBody());

  await Promise.all([run.when('invalid'), run.when('completed')]);

  const [letter, ...others] = await bench.deadLetters();
  expect(others).toEqual([]);
  expect(letter?.body === body).toBe(true);
  expect(letter?.attributes).toEqual({});
  expect(await keptNotice(bench, body)).toMatchObject({ reason: 'invalid', detail: 'NOT_JSON: the body is not JSON' });
});

test('parks a message with ten attributes with all of them, and keeps its reason in the table', async () => {
  const bench = await lab.open();
  const run = bench.run();
  await bench.send('no JSON', attributes(10));

  await run.when('invalid');

  const [letter] = await bench.deadLetters();
  expect(Object.keys(letter?.attributes ?? {}).toSorted()).toEqual(Object.keys(attributes(10)));
  expect(await keptNotice(bench, 'no JSON')).toMatchObject({ reason: 'invalid', sourceQueue: bench.queue });
});

test('puts the reason beside the nine attributes of a message', async () => {
  const bench = await lab.open();
  const run = bench.run();
  const binary = { DataType: 'Binary', BinaryValue: new Uint8Array([0, 255]) };
  await bench.send('no JSON', { ...attributes(8), binary });

  await run.when('invalid');

  const [letter] = await bench.deadLetters();
  expect(letter?.attributes).toMatchObject({ ...attributes(8), binary });
  expect(letter?.notice).toMatchObject({ reason: 'invalid' });
  expect(await keptNotice(bench, 'no JSON')).toBeUndefined();
});

test('replaces the reason of an earlier time when a message is parked again', async () => {
  const bench = await lab.open();
  const run = bench.run();
  await bench.send('no JSON');
  await run.when('invalid');
  await bench.redrive();
  await run.when('invalid', 2);

  const letters = await bench.deadLetters();

  const again = run.outcomes.entries[1]?.delivery.messageId;
  expect(letters).toMatchObject([{ notice: { reason: 'invalid', messageId: again } }]);
  expect(Object.keys(letters[0]?.attributes ?? {})).toEqual([NOTICE_ATTRIBUTE]);
});

test('parks a message whose last error holds characters that SQS refuses', async () => {
  const bench = await lab.open();
  bench.provider.beforeCharge = () => {
    throw new Error(`broken \u0000 \ud800 ${'x'.repeat(5_000)}`);
  };
  const run = bench.run({ maxAttempts: 1 });
  await bench.send(bench.chargeBody());

  await run.when('exhausted');

  const [letter] = await bench.deadLetters();
  expect(letter?.notice?.detail).toMatch(/^broken \? \? x+$/);
  expect(letter?.notice?.detail).toHaveLength(1_000);
});
