import { expect, test } from 'vitest';
import { PaymentError } from '../../src/payments/payment-provider.ts';
import { ConfigurationError } from '../../src/errors.ts';
import { Journal } from '../support/worker-journal.ts';
import { countEffect, counterKey, noteBody, noteHandler } from '../support/worker-contract.ts';
import { workerLab } from '../support/worker-fixture.ts';

const lab = workerLab();

test('completes a new charge: one provider charge, one ledger entry, the balance, and an empty queue', async () => {
  const bench = await lab.open();
  await bench.send(bench.chargeBody());
  const run = bench.run();

  const [report] = await run.when('completed');

  expect(report).toMatchObject({
    key: 'r1',
    outcome: {
      kind: 'completed',
      attempt: 1,
      takenOver: false,
      response: { requestId: 'r1', providerChargeId: 'ch_1' },
    },
  });
  expect(await bench.ledgerEntry()).toMatchObject({ amountMinor: 1_250, currency: 'EUR', providerChargeId: 'ch_1' });
  expect(await bench.record()).toMatchObject({ status: 'COMPLETED', attempts: 1 });
  expect([bench.provider.charges.length, await bench.balance(), await bench.depth()]).toEqual([1, 1_250, 0]);
});

test('replays the stored response to a duplicate and applies nothing', async () => {
  const bench = await lab.open();
  const run = bench.run();
  await bench.send(bench.chargeBody());
  const [first] = await run.when('completed');
  await bench.send(bench.chargeBody());

  const [replay] = await run.when('replayed');

  const answered = first?.outcome.kind === 'completed' ? first.outcome.response : undefined;
  expect(replay?.outcome).toEqual({ kind: 'replayed', answer: { status: 'COMPLETED', response: answered } });
  expect([bench.provider.calls.entries.length, await bench.balance(), await bench.depth()]).toEqual([1, 1_250, 0]);
});

test('rejects what the provider declines, and replays the rejection to a duplicate', async () => {
  const bench = await lab.open();
  bench.provider.declined.add('r1');
  const run = bench.run();
  await bench.send(bench.chargeBody());
  const [first] = await run.when('rejected');
  await bench.send(bench.chargeBody());

  const [replay] = await run.when('replayed');

  const reason = 'the payment provider declined: no funds';
  expect(first?.outcome).toEqual({ kind: 'rejected', reason, attempt: 1, takenOver: false });
  expect(replay?.outcome).toEqual({ kind: 'replayed', answer: { status: 'REJECTED', reason } });
  expect([bench.provider.calls.entries.length, await bench.ledgerEntry(), await bench.depth()]).toEqual([
    1,
    undefined,
    0,
  ]);
});

test('rejects a charge in another currency than the account without asking the provider', async () => {
  const bench = await lab.open();
  const run = bench.run();
  await bench.send(bench.chargeBody());
  await run.when('completed');
  await bench.send(bench.chargeBody({ requestId: 'r2', currency: 'JPY' }));

  const [report] = await run.when('rejected');

  expect(report?.outcome).toMatchObject({ reason: `account ${bench.accountId} holds EUR, the charge is in JPY` });
  expect([bench.provider.calls.entries.length, await bench.balance()]).toEqual([1, 1_250]);
});

test('tries again after a failure and completes with the next attempt', async () => {
  const bench = await lab.open();
  bench.provider.beforeCharge = ({ nth }) => {
    if (nth === 1) throw new PaymentError('no answer', { reason: 'timeout' });
  };
  await bench.send(bench.chargeBody());
  const run = bench.run();

  const [report] = await run.when('completed');

  expect(run.outcomes.entries[0]?.outcome).toEqual({ kind: 'retry', error: 'PAYMENT: no answer', attempt: 1 });
  expect(report).toMatchObject({ outcome: { attempt: 2, takenOver: false }, delivery: { receiveCount: 2 } });
  expect([bench.provider.charges.length, await bench.balance()]).toEqual([1, 1_250]);
});

test('dead-letters with the last error when our own count of attempts is used up', async () => {
  const bench = await lab.open();
  bench.provider.beforeCharge = ({ nth }) => {
    throw new Error(`failure ${String(nth)}`);
  };
  await bench.send(bench.chargeBody());
  const run = bench.run({ maxAttempts: 3 });

  const [report] = await run.when('exhausted');

  expect(run.tally()).toEqual({ retry: 2, exhausted: 1 });
  expect(report?.outcome).toMatchObject({ kind: 'exhausted', error: 'failure 3', attempts: 3 });
  expect(await bench.deadLetters()).toMatchObject([
    { body: bench.chargeBody(), notice: { reason: 'exhausted', detail: 'failure 3', sourceQueue: bench.queue } },
  ]);
  expect([await bench.depth(), await bench.record()]).toMatchObject([0, { status: 'FAILED', lastError: 'failure 3' }]);
});

test('counts attempts afresh when a dead letter is redriven', async () => {
  const bench = await lab.open();
  bench.provider.beforeCharge = ({ nth }) => {
    if (nth <= 3) throw new Error('down');
  };
  await bench.send(bench.chargeBody());
  const run = bench.run({ maxAttempts: 2 });
  await run.when('exhausted');
  await bench.redrive();

  const [report] = await run.when('completed');

  const attempts = run.outcomes.entries.map(({ outcome }) => ('attempt' in outcome ? outcome.attempt : outcome.kind));
  expect(attempts).toEqual([1, 'exhausted', 1, 2]);
  expect([report?.key, bench.provider.charges.length]).toEqual(['r1', 1]);
});

test('dead-letters at once when no further attempt can help', async () => {
  const bench = await lab.open();
  bench.provider.beforeCharge = () => {
    throw new PaymentError('the key was used for another charge', { reason: 'key-reused' });
  };
  await bench.send(bench.chargeBody());
  const run = bench.run({ maxAttempts: 5 });

  const [report] = await run.when('exhausted');

  expect(report?.outcome).toMatchObject({ attempts: 1, error: 'PAYMENT: the key was used for another charge' });
  expect(run.tally()).toEqual({ exhausted: 1 });
});

test('treats a handler that throws before its first await like one that rejects', async () => {
  const bench = await lab.open();
  let calls = 0;
  const handler = noteHandler(() => {
    calls += 1;
    if (calls === 1) throw new RangeError('at once');
    return Promise.resolve({ kind: 'completed', response: 'ok', effects: [] });
  });
  await bench.send(noteBody({ id: 'n1', text: '' }));
  const run = bench.run({ handlers: [handler] });

  await run.when('completed');

  expect(run.outcomes.entries.map(({ outcome }) => outcome)).toEqual([
    { kind: 'retry', error: 'at once', attempt: 1 },
    { kind: 'completed', response: 'ok', attempt: 2, takenOver: false },
  ]);
});

test('dead-letters at once what the code of a contract throws on, says so, and goes on', async () => {
  const bench = await lab.open();
  const handler = noteHandler(() => Promise.resolve({ kind: 'completed', response: null, effects: [] }));
  const keyOf = (note: { id: string }): string => {
    if (note.id === 'bad') throw new TypeError('a fault of the contract');
    return note.id;
  };
  const run = bench.run({ handlers: [{ ...handler, contract: { ...handler.contract, keyOf } }] });
  await bench.send(noteBody({ id: 'bad', text: '' }));
  await bench.send(noteBody({ id: 'n1', text: '' }));

  await run.when('completed');
  await run.when('invalid');

  const [letter] = await bench.deadLetters();
  expect(letter?.notice).toMatchObject({ reason: 'invalid' });
  expect(letter?.notice?.detail).toMatch(/^CONTRACT_FAILED: .*a fault of the contract/);
});

test('M24 keeps a result of 410 KB as a digest and applies the effect once', async () => {
  const bench = await lab.open();
  const counter = bench.accountId;
  const handler = noteHandler(() =>
    Promise.resolve({ kind: 'completed', response: 'x'.repeat(410_000), effects: [countEffect(counter)] }),
  );
  const run = bench.run({ handlers: [handler] });
  await bench.send(noteBody({ id: 'n1', text: '' }));
  await run.when('completed');
  await bench.send(noteBody({ id: 'n1', text: '' }));

  const [replay] = await run.when('replayed');

  const digest = { digest: 'sha256', sha256: expect.any(String) as string, bytes: 410_002 };
  expect(replay?.outcome).toMatchObject({ answer: { status: 'COMPLETED', response: digest } });
  expect(await bench.store.get(counterKey(counter))).toMatchObject({ value: 1 });
});

test('M24 refuses effects that no item can hold before anything is applied', async () => {
  const bench = await lab.open();
  const counter = bench.accountId;
  const large = { kind: 'put' as const, label: 'large', item: { PK: counter, SK: 'LARGE', text: 'x'.repeat(410_000) } };
  const handler = noteHandler(() =>
    Promise.resolve({ kind: 'completed', response: null, effects: [countEffect(counter), large] }),
  );
  await bench.send(noteBody({ id: 'n1', text: '' }));
  const run = bench.run({ handlers: [handler] });

  const [report] = await run.when('exhausted');

  expect(report?.outcome).toMatchObject({
    attempts: 1,
    error: expect.stringContaining('large: an item of at most') as string,
  });
  expect(await bench.store.get(counterKey(counter))).toBeUndefined();
});

test('warns about a listener that throws, and delivers all the same', async () => {
  const bench = await lab.open();
  const warnings = new Journal<Error>();
  const onWarning = (warning: Error): void => {
    warnings.add(warning);
  };
  process.on('warning', onWarning);
  const run = bench.run({
    events: {
      onDelivery: () => {
        throw new ConfigurationError('listener', []);
      },
      onOutcome: () => {
        throw new TypeError('a guest misbehaves');
      },
    },
  });
  await bench.sendAll([bench.chargeBody(), bench.chargeBody({ requestId: 'r2' })]);

  await run.when('completed', 2);
  const told = await warnings.when(4);
  process.off('warning', onWarning);

  expect(told.filter(({ message }) => message === 'a worker listener threw: a guest misbehaves')).toHaveLength(2);
  expect([await bench.depth(), bench.provider.charges.length]).toEqual([0, 2]);
});
