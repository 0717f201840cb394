import { expect, test } from 'vitest';
import { PaymentError } from '../../src/payments/payment-provider.ts';
import { createChargeHandler } from '../../src/workers/handlers/charge.ts';
import type { Handler } from '../../src/workers/handler.ts';
import type { Charge } from '../../src/messages/charge.ts';
import { TestClock } from '../support/worker-clock.ts';
import { noteBody, noteHandler } from '../support/worker-contract.ts';
import { interceptChanges } from '../support/sqs-batches.ts';
import { workerLab, type Bench } from '../support/worker-fixture.ts';

const lab = workerLab();

const DAY_MS = 86_400_000;
const IN_DOUBT = expect.stringMatching(
  /^STEP_UNKNOWN: step "provider-charge": a call made since .* may have gone through/,
) as string;

/** The charge handler with something of the test's before or after it. */
function chargesWith(bench: Bench, around: { before?: (attempt: number) => void; after?: (attempt: number) => void }) {
  const inner = createChargeHandler(bench.provider);
  const handler: Handler<Charge> = {
    contract: inner.contract,
    async handle(message, context) {
      around.before?.(context.attempt);
      const result = await inner.handle(message, context);
      around.after?.(context.attempt);
      return result;
    },
  };
  return { handlers: [handler] };
}

test('uses the stored result of a step in the next attempt instead of calling again', async () => {
  const bench = await lab.open();
  await bench.send(bench.chargeBody());
  const failFirst = (attempt: number): void => {
    if (attempt === 1) throw new Error('after the step');
  };
  const run = bench.run(chargesWith(bench, { after: failFirst }));

  const [report] = await run.when('completed');

  expect(report?.outcome).toMatchObject({ attempt: 2, response: { providerChargeId: 'ch_1' } });
  expect(bench.provider.calls.entries).toHaveLength(1);
});

test('passes the same idempotency key in every attempt, and another for each key and queue', async () => {
  const [bench, other] = [await lab.open(), await lab.open()];
  bench.provider.beforeAnswer = ({ nth }) => {
    if (nth === 1) throw new PaymentError('answer lost', { reason: 'connection' });
  };
  const runs = [bench.run(), other.run()];
  await bench.send(bench.chargeBody());
  await runs[0]?.when('completed');
  await bench.send(bench.chargeBody({ requestId: 'r2' }));
  await other.send(other.chargeBody());

  await Promise.all([runs[0]?.when('completed', 2), runs[1]?.when('completed')]);

  const [first, second, third] = bench.provider.calls.entries.map(({ request }) => request.idempotencyKey);
  const onOther = other.provider.calls.entries[0]?.request.idempotencyKey;
  expect(first).toMatch(/^onlyonce-[0-9a-f]{64}$/);
  expect(second).toBe(first);
  expect(new Set([first, third, onOther]).size).toBe(3);
  expect(bench.provider.charges).toHaveLength(2);
});

test('repeats a call in doubt with its key while the provider remembers it', async () => {
  const bench = await lab.open();
  const clock = new TestClock();
  bench.provider.beforeAnswer = ({ nth }) => {
    if (nth > 1) return;
    clock.setAhead(DAY_MS - 600_000);
    throw new PaymentError('answer lost', { reason: 'timeout' });
  };
  await bench.send(bench.chargeBody());
  const run = bench.run({ clock });

  await run.when('completed');

  expect([bench.provider.calls.entries.length, bench.provider.charges.length]).toEqual([2, 1]);
});

test('parks a call in doubt when the provider has forgotten its key, and does not repeat it', async () => {
  const bench = await lab.open();
  const clock = new TestClock();
  bench.provider.beforeAnswer = () => {
    clock.setAhead(DAY_MS);
    bench.provider.forgetKeys();
    throw new PaymentError('answer lost', { reason: 'timeout' });
  };
  await bench.send(bench.chargeBody());
  const run = bench.run({ clock });

  await run.when('exhausted');

  expect(run.tally()).toEqual({ retry: 1, exhausted: 1 });
  expect(await bench.deadLetters()).toMatchObject([{ notice: { reason: 'exhausted', detail: IN_DOUBT } }]);
  expect([bench.provider.calls.entries.length, await bench.ledgerEntry()]).toEqual([1, undefined]);
});

test('stays in doubt when a parked call is redriven', async () => {
  const bench = await lab.open();
  const clock = new TestClock();
  bench.provider.beforeAnswer = ({ nth }) => {
    if (nth > 1) return;
    clock.setAhead(DAY_MS);
    bench.provider.forgetKeys();
    throw new PaymentError('answer lost', { reason: 'timeout' });
  };
  await bench.send(bench.chargeBody());
  const run = bench.run({ clock });
  await run.when('exhausted');
  await bench.redrive();

  const reports = await run.outcomes.when(3);

  expect(reports.map(({ outcome }) => outcome)).toMatchObject([
    { kind: 'retry' },
    { kind: 'exhausted' },
    { kind: 'exhausted', error: IN_DOUBT },
  ]);
  expect(bench.provider.charges).toHaveLength(1);
});

test('stays in doubt over an attempt that fails before it comes to the call', async () => {
  const bench = await lab.open();
  const clock = new TestClock();
  bench.provider.beforeAnswer = ({ nth }) => {
    if (nth === 1) throw new PaymentError('answer lost', { reason: 'timeout' });
  };
  const failSecond = (attempt: number): void => {
    if (attempt !== 2) return;
    clock.setAhead(DAY_MS);
    bench.provider.forgetKeys();
    throw new Error('before the step');
  };
  await bench.send(bench.chargeBody());
  const run = bench.run({ clock, ...chargesWith(bench, { before: failSecond }) });

  const reports = await run.outcomes.when(3);

  expect(reports[2]?.outcome).toMatchObject({ kind: 'exhausted', error: IN_DOUBT });
  expect(bench.provider.charges).toHaveLength(1);
});

test('stays in doubt when every attempt was cut off and the message was dead-lettered', async () => {
  const bench = await lab.open({ visibilityTimeoutSeconds: 2 });
  const clock = new TestClock();
  const isOver = Promise.withResolvers<void>();
  bench.provider.beforeAnswer = ({ nth }) => (nth === 1 ? isOver.promise : undefined);
  let beats = 0;
  await bench.send(bench.chargeBody());
  const run = bench.run({
    clock,
    maxAttempts: 1,
    prepare: ({ client }) => {
      interceptChanges(client, () => {
        beats += 1;
        return beats === 1 ? 'ReceiptHandleIsInvalid' : undefined;
      });
    },
  });
  const [report] = await run.when('exhausted');
  isOver.resolve();
  clock.setAhead(DAY_MS);
  bench.provider.forgetKeys();
  await bench.redrive();

  const reports = await run.when('exhausted', 2);

  const cutOff = 'every attempt ended without a result: its worker crashed or was killed';
  expect(report?.outcome).toMatchObject({ kind: 'exhausted', error: cutOff, attempts: 2 });
  expect(reports[1]?.outcome).toMatchObject({ error: IN_DOUBT });
  expect(bench.provider.charges).toHaveLength(1);
});

test('does not repeat a call whose result was too large to keep once its key is forgotten', async () => {
  const bench = await lab.open();
  const clock = new TestClock();
  let calls = 0;
  const handler = noteHandler(async (_message, { step, attempt }) => {
    const fetchMuch = (): Promise<string> => {
      calls += 1;
      return Promise.resolve('x'.repeat(100_000));
    };
    await step('fetch', fetchMuch, { idempotentForMs: DAY_MS });
    clock.setAhead(DAY_MS);
    throw new Error(`attempt ${String(attempt)}`);
  });
  await bench.send(noteBody({ id: 'n1', text: '' }));
  const run = bench.run({ clock, handlers: [handler] });

  const [report] = await run.when('exhausted');

  expect(report?.outcome).toMatchObject({ error: expect.stringContaining('step "fetch"') as string });
  expect(calls).toBe(1);
});

test.each([
  ['a name that is not plain', ['Provider Charge']],
  ['the same name twice', ['charge', 'charge']],
])('refuses a step with %s before the call', async (_case, names) => {
  const bench = await lab.open();
  const calls: string[] = [];
  const handler = noteHandler(async (_message, { step }) => {
    for (const name of names) {
      const call = (): Promise<void> => {
        calls.push(name);
        return Promise.resolve();
      };
      await step(name, call, { idempotentForMs: DAY_MS });
    }
    return { kind: 'completed', response: null, effects: [] };
  });
  await bench.send(noteBody({ id: 'n1', text: '' }));
  const run = bench.run({ handlers: [handler] });

  const [report] = await run.when('exhausted');

  expect(report?.outcome).toMatchObject({
    attempts: 1,
    error: expect.stringContaining('step: 1 wrong option') as string,
  });
  expect(calls).toEqual(names.slice(1));
});
