import { expect, onTestFinished, test } from 'vitest';
import type { HandlerContext, Reconciled, StepOptions } from '../../src/workers/handler.ts';
import { StepRefused } from '../../src/workers/steps.ts';
import { noteBody, noteHandler } from '../support/worker-contract.ts';
import { StoreProxy } from '../support/worker-faults.ts';
import { workerLab, type Bench } from '../support/worker-fixture.ts';

const lab = workerLab();

/** An outside system that cannot be asked twice with the same key: each call counts. */
class Ledger {
  readonly entries: string[] = [];
  /** Ends the first call after the system has acted. */
  isFirstAnswerLost = true;

  book(entry: string): Promise<string> {
    this.entries.push(entry);
    if (this.isFirstAnswerLost && this.entries.length === 1) return Promise.reject(new Error('the answer was lost'));
    return Promise.resolve(`receipt ${String(this.entries.length)}`);
  }
}

function booking(ledger: Ledger, options?: StepOptions<string>) {
  return noteHandler(async ({ key }, { step }: HandlerContext) => {
    const receipt = await step('book', () => ledger.book(key), options);
    return { kind: 'completed', response: receipt };
  });
}

async function sendNote(bench: Bench): Promise<void> {
  await bench.send(noteBody({ id: 'n1', text: '' }));
}

test('never repeats a call that is not idempotent: in doubt, it is parked for an operator', async () => {
  const bench = await lab.open();
  const ledger = new Ledger();
  const run = bench.run({ handlers: [booking(ledger)] });
  await sendNote(bench);

  const [parked] = await run.when('exhausted');

  expect(parked?.outcome).toMatchObject({ attempts: 2, error: expect.stringContaining('STEP_UNKNOWN') as string });
  expect(ledger.entries).toEqual(['n1']);
  expect(await bench.record('n1')).toMatchObject({ status: 'FAILED', unknownStep: 'book' });
  expect((await bench.deadLetters()).map(({ notice }) => notice?.reason)).toEqual(['exhausted']);
});

test("goes on with the operator's result once the parked message is redriven", async () => {
  const bench = await lab.open();
  const ledger = new Ledger();
  const run = bench.run({ handlers: [booking(ledger)] });
  await sendNote(bench);
  await run.when('exhausted');

  const verdict = { kind: 'done', result: 'receipt by hand' } as const;
  const answer = await bench.store.resolveStep({ queue: bench.queue, key: 'n1', step: 'book', verdict });
  await bench.redrive();
  const [completed] = await run.when('completed');

  expect(answer.kind).toBe('resolved');
  expect(completed?.outcome).toMatchObject({ response: 'receipt by hand' });
  expect(ledger.entries).toEqual(['n1']);
  expect((await bench.record('n1'))?.['unknownStep']).toBeUndefined();
});

test('makes the call once more when the operator says that it was not done', async () => {
  const bench = await lab.open();
  const ledger = new Ledger();
  const run = bench.run({ handlers: [booking(ledger)] });
  await sendNote(bench);
  await run.when('exhausted');

  await bench.store.resolveStep({ queue: bench.queue, key: 'n1', step: 'book', verdict: { kind: 'notDone' } });
  await bench.redrive();
  const [completed] = await run.when('completed');

  expect(completed?.outcome).toMatchObject({ response: 'receipt 2' });
});

test.each<[says: string, answer: Reconciled<string>, outcome: string, entries: number]>([
  ['that it was done', { kind: 'done', result: 'receipt 1' }, 'completed', 1],
  ['that it was not done', { kind: 'notDone' }, 'completed', 2],
  ['that it cannot tell', { kind: 'unknown' }, 'exhausted', 1],
])('asks the outside system about a call in doubt, and believes it when it says %s', async (_says, answer, ...rest) => {
  const [outcome, entries] = rest;
  const bench = await lab.open();
  const ledger = new Ledger();
  const asked: string[] = [];
  const reconcile: StepOptions<string>['reconcile'] = ({ idempotencyKey }) => {
    asked.push(idempotencyKey);
    return Promise.resolve(answer);
  };
  const run = bench.run({ handlers: [booking(ledger, { reconcile })] });
  await sendNote(bench);

  await run.when(outcome === 'completed' ? 'completed' : 'exhausted');

  expect(asked).toHaveLength(1);
  expect(ledger.entries).toHaveLength(entries);
});

test('does not ask about a step that surely never began', async () => {
  const bench = await lab.open();
  const ledger = new Ledger();
  ledger.isFirstAnswerLost = false;
  let isAsked = false;
  const handler = noteHandler(async ({ key }, { step, attempt }) => {
    if (attempt === 1) throw new Error('before the step');
    const reconcile = (): Promise<Reconciled<string>> => {
      isAsked = true;
      return Promise.resolve({ kind: 'unknown' });
    };
    return { kind: 'completed', response: await step('book', () => ledger.book(key), { reconcile }) };
  });
  const run = bench.run({ handlers: [handler] });
  await sendNote(bench);

  const [completed] = await run.when('completed');

  expect(completed?.outcome).toMatchObject({ response: 'receipt 1' });
  expect(isAsked).toBe(false);
});

test('tries a call again that the outside system has refused, without asking anybody', async () => {
  const bench = await lab.open();
  let calls = 0;
  const handler = noteHandler(async (_message, { step }) => {
    const call = (): Promise<string> => {
      calls += 1;
      return calls === 1 ? Promise.reject(new StepRefused('busy, nothing was booked')) : Promise.resolve('booked');
    };
    return { kind: 'completed', response: await step('book', call) };
  });
  const run = bench.run({ handlers: [handler] });
  await sendNote(bench);

  const [completed] = await run.when('completed');

  expect(completed?.outcome).toMatchObject({ response: 'booked', attempt: 2 });
});

async function requestsOf(options?: StepOptions<string>): Promise<string[]> {
  const bench = await lab.open();
  const ledger = new Ledger();
  ledger.isFirstAnswerLost = false;
  const proxy = await StoreProxy.start(lab.dynamodbEndpoint);
  onTestFinished(() => proxy.stop());
  const sent: string[] = [];
  proxy.fault = ({ operation }, forward) => {
    sent.push(operation);
    return forward();
  };
  const run = bench.run({ handlers: [booking(ledger, options)], dynamodbEndpoint: proxy.endpoint });
  await sendNote(bench);
  await run.when('completed');
  return sent;
}

test('marks a call that must not be repeated before it leaves; with an idempotent provider that is not needed', async () => {
  // Claim, mark, result, commit.
  expect(await requestsOf()).toEqual(['UpdateItem', 'UpdateItem', 'UpdateItem', 'TransactWriteItems']);
  expect(await requestsOf({ idempotentForMs: 86_400_000 })).toEqual(['UpdateItem', 'UpdateItem', 'TransactWriteItems']);
});

test('an operator resolves nothing while somebody works on the key, nor when it is done or was never there', async () => {
  const bench = await lab.open();
  const over = Promise.withResolvers<void>();
  const handler = noteHandler(async () => {
    await over.promise;
    return { kind: 'completed' };
  });
  const resolve = (key: string) =>
    bench.store.resolveStep({ queue: bench.queue, key, step: 'book', verdict: { kind: 'notDone' } });
  const run = bench.run({ handlers: [handler], name: 'at-work' });
  await sendNote(bench);
  await run.deliveries.when(1);
  await expect.poll(async () => (await resolve('n1')).kind).toBe('running');

  over.resolve();
  await run.when('completed');

  expect(await resolve('n1')).toEqual({ kind: 'finished', status: 'COMPLETED' });
  expect(await resolve('n2')).toEqual({ kind: 'absent' });
});
