import { expect, test } from 'vitest';
import { CHARGE_REQUESTED } from '../../src/messages/charge.ts';
import { decodeMessage } from '../../src/messages/envelope.ts';
import { countEffect, counterKey, noteBody, noteHandler } from '../support/worker-contract.ts';
import { workerLab } from '../support/worker-fixture.ts';

const lab = workerLab();

function hashOf(body: string): string {
  const decoded = decodeMessage(body, [CHARGE_REQUESTED]);
  return decoded.kind === 'valid' ? decoded.message.payloadHash : decoded.reason;
}

test('M7 duplicates with new message ids, other spacing and other field order are one effect', async () => {
  const bench = await lab.open();
  const charge = bench.charge();
  const reordered = Object.fromEntries(Object.entries(charge).toReversed());
  const bodies = [
    bench.chargeBody(),
    JSON.stringify({ payload: reordered, key: 'r1', version: 1, type: CHARGE_REQUESTED.type }),
    JSON.stringify({ type: CHARGE_REQUESTED.type, version: 1, key: 'r1', payload: charge }, null, 2),
  ];
  const run = bench.run({ concurrency: 1 });
  await bench.sendAll(bodies);

  await run.when('replayed', 2);

  expect(new Set(run.deliveries.entries.map(({ messageId }) => messageId)).size).toBe(3);
  expect(run.tally()).toEqual({ completed: 1, replayed: 2 });
  expect([bench.provider.calls.entries.length, await bench.balance()]).toEqual([1, 1_250]);
});

test('M8 the same key with another amount is parked with both hashes, applies nothing, and stops nobody', async () => {
  const bench = await lab.open();
  const run = bench.run();
  await bench.send(bench.chargeBody());
  await run.when('completed');
  const other = bench.chargeBody({ amountMinor: 999 });
  await bench.sendAll([other, bench.chargeBody({ requestId: 'r2', amountMinor: 1 })]);

  await Promise.all([run.when('conflict'), run.when('completed', 2)]);

  const letters = await bench.deadLetters();
  expect(letters).toMatchObject([{ body: other, notice: { reason: 'conflict', receiveCount: 1 } }]);
  expect(letters[0]?.notice?.detail).toBe(`payload hash ${hashOf(other)}, recorded ${hashOf(bench.chargeBody())}`);
  expect([await bench.balance(), await bench.ledgerEntry(), await bench.depth()]).toMatchObject([
    1_251,
    { amountMinor: 1_250 },
    0,
  ]);
});

test('M8 another amount is a conflict also while the owner of the key is at work', async () => {
  const bench = await lab.open();
  const atWork = Promise.withResolvers<void>();
  bench.provider.beforeCharge = () => atWork.promise;
  const run = bench.run();
  await bench.send(bench.chargeBody());
  await bench.provider.calls.when(1);
  await bench.send(bench.chargeBody({ amountMinor: 999 }));
  await run.when('conflict');
  atWork.resolve();

  const [report] = await run.when('completed');

  expect(report?.outcome).toMatchObject({ attempt: 1 });
  expect([await bench.balance(), (await bench.deadLetters()).length]).toEqual([1_250, 1]);
});

test('M9 two different charges without key fields are both parked with a reason', async () => {
  const bench = await lab.open();
  const bodies = [100, 200].map((amountMinor) => {
    const payload = { ...bench.charge({ amountMinor }), requestId: undefined };
    return JSON.stringify({ type: CHARGE_REQUESTED.type, version: 1, payload });
  });
  const run = bench.run();
  await bench.sendAll(bodies);

  await run.when('invalid', 2);

  const letters = await bench.deadLetters();
  expect(letters.map(({ body }) => body).toSorted()).toEqual(bodies.toSorted());
  const detail = expect.stringMatching(/^ENVELOPE: key: /) as string;
  for (const { notice } of letters) expect(notice).toMatchObject({ reason: 'invalid', detail });
  expect([bench.provider.calls.entries.length, await bench.depth()]).toEqual([0, 0]);
});

test(
  'M10 a thousand interleaved messages of two kinds, whose handlers change their input, do not mix',
  { timeout: 60_000 },
  async () => {
    const bench = await lab.open({ visibilityTimeoutSeconds: 60 });
    const handlers = ['a', 'b'].map((kind) =>
      noteHandler((message) => {
        const { id } = message.payload;
        Object.assign(message, { key: 'other', type: 'other' });
        Object.assign(message.payload, { id: 'other', text: 'other' });
        return Promise.resolve({
          kind: 'completed',
          response: { kind, id },
          effects: [countEffect(`${bench.queue}-${id}`)],
        });
      }, `kind.${kind}`),
    );
    const ids = Array.from({ length: 500 }, (_, index) => String(index));
    await bench.sendAll(
      ids.flatMap((id) => ['a', 'b'].map((kind) => noteBody({ id: `${kind}${id}`, text: id }, `kind.${kind}`))),
    );
    const run = bench.run({ handlers, lease: { leaseMs: 20_000 } });

    const reports = await run.when('completed', 1_000);

    const answers = reports.map(({ key, outcome }) => [
      key,
      outcome.kind === 'completed' ? outcome.response : undefined,
    ]);
    const expected = ids.flatMap((id) => ['a', 'b'].map((kind) => [`${kind}${id}`, { kind, id: `${kind}${id}` }]));
    const byKey = (left: unknown[], right: unknown[]): number => (String(left[0]) < String(right[0]) ? -1 : 1);
    expect(answers.toSorted(byKey)).toEqual(expected.toSorted(byKey));
    const counts = await Promise.all(
      ['a0', 'b0', 'a499', 'b499', 'other'].map((id) => bench.store.get(counterKey(`${bench.queue}-${id}`))),
    );
    expect(counts.map((item) => item?.['value'])).toEqual([1, 1, 1, 1, undefined]);
    expect([run.tally(), await bench.depth()]).toEqual([{ completed: 1_000 }, 0]);
  },
);

test('M12 one slow message in a hundred holds up none of the others, and no more than ten are in flight', async () => {
  const bench = await lab.open();
  const slow = Promise.withResolvers<void>();
  let [inFlight, mostInFlight] = [0, 0];
  const events = {
    onDelivery: () => {
      inFlight += 1;
      mostInFlight = Math.max(mostInFlight, inFlight);
    },
    onOutcome: () => {
      inFlight -= 1;
    },
  };
  const handler = noteHandler(async ({ payload }) => {
    await (payload.id === 'n3' ? slow.promise : undefined);
    return { kind: 'completed', response: null, effects: [] };
  });
  await bench.sendAll(Array.from({ length: 100 }, (_, index) => noteBody({ id: `n${String(index)}`, text: '' })));
  const run = bench.run({ handlers: [handler], lease: { leaseMs: 20_000 }, events });

  await run.when('completed', 99);
  const done = run.outcomes.entries.map(({ key }) => key);
  slow.resolve();
  await run.when('completed', 100);

  expect(done).not.toContain('n3');
  expect(mostInFlight).toBeGreaterThan(1);
  expect(mostInFlight).toBeLessThanOrEqual(10);
});

test('M20 a malformed body in a batch of ten reaches the dead-letter queue once, with its reason', async () => {
  const bench = await lab.open();
  const bodies = Array.from({ length: 10 }, (_, index) => bench.chargeBody({ requestId: `r${String(index)}` }));
  bodies[4] = '{"type":"charge.requested"';
  await bench.sendAll(bodies);
  const run = bench.run();

  await Promise.all([run.when('completed', 9), run.when('invalid')]);

  const letters = await bench.deadLetters();
  expect(letters).toMatchObject([
    {
      body: bodies[4],
      notice: { reason: 'invalid', detail: 'NOT_JSON: the body is not JSON', sourceQueue: bench.queue },
    },
  ]);
  expect(letters[0]?.notice?.messageId).toBe(run.deliveries.entries.find(({ body }) => body === bodies[4])?.messageId);
  expect([bench.provider.charges.length, await bench.balance(), await bench.depth()]).toEqual([9, 11_250, 0]);
});
