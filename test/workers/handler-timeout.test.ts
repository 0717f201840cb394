import { expect, test } from 'vitest';
import { HandlerTimeoutError } from '../../src/workers/delivery-watch.ts';
import type { Handler } from '../../src/workers/handler.ts';
import { counterKey, countEffect, noteBody, noteHandler, type Note } from '../support/worker-contract.ts';
import { workerLab } from '../support/worker-fixture.ts';

const lab = workerLab();

/** Hangs on the first try, and counts on the next. */
function hangingOnce(counter: string, hang: (signal: AbortSignal) => Promise<void>): Handler<Note> {
  return noteHandler(async (_message, { attempt, signal, transaction }) => {
    if (attempt === 1) await hang(signal);
    transaction.add(countEffect(counter));
    return { kind: 'completed', response: attempt };
  });
}

function untilAborted(signal: AbortSignal): Promise<void> {
  return new Promise((_resolve, reject) => {
    signal.addEventListener('abort', () => {
      reject(signal.reason as Error);
    });
  });
}

test('M13 a handler past its time is told so by its signal, and tried again as soon as it has ended', async () => {
  const bench = await lab.open();
  const reasons: unknown[] = [];
  const handler = hangingOnce(bench.accountId, async (signal) => {
    await untilAborted(signal).catch((error: unknown) => {
      reasons.push(error);
      throw error;
    });
  });
  const run = bench.run({ handlers: [handler], handlerTimeoutMs: 200 });
  await bench.send(noteBody({ id: 'n1', text: '' }));

  await run.when('completed');

  expect(reasons).toEqual([expect.any(HandlerTimeoutError)]);
  expect(run.outcomes.entries[0]?.outcome).toMatchObject({ kind: 'retry', attempt: 1 });
  expect((await bench.store.get(counterKey(bench.accountId)))?.['value']).toBe(1);
});

test('L20 a handler that hangs for ever loses its lease, and the message is done by another worker', async () => {
  const bench = await lab.open({ visibilityTimeoutSeconds: 3 });
  const handler = hangingOnce(bench.accountId, () => new Promise<never>(() => undefined));
  const hung = bench.run({ handlers: [handler], handlerTimeoutMs: 200, name: 'hung', concurrency: 1 });
  await bench.send(noteBody({ id: 'n1', text: '' }));
  const [lost] = await hung.when('lost');
  const next = bench.run({ handlers: [handler], name: 'next' });

  const [completed] = await next.when('completed');

  expect(lost?.outcome).toEqual({ kind: 'lost', reason: 'timeout' });
  expect(completed?.outcome).toMatchObject({ attempt: 2, takenOver: true });
  expect((await bench.store.get(counterKey(bench.accountId)))?.['value']).toBe(1);
});

test('what a handler returns after its time is not committed', async () => {
  const bench = await lab.open();
  const late = Promise.withResolvers<undefined>();
  const handler = hangingOnce(bench.accountId, async (signal) => {
    await untilAborted(signal).catch(() => undefined);
    // Ends well, but too late.
    late.resolve(undefined);
  });
  const run = bench.run({ handlers: [handler], handlerTimeoutMs: 200 });
  await bench.send(noteBody({ id: 'n1', text: '' }));
  await late.promise;

  await run.when('completed');

  expect(run.tally()).toEqual({ retry: 1, completed: 1 });
  expect((await bench.store.get(counterKey(bench.accountId)))?.['value']).toBe(1);
});

test('a direct handler past its time is tried again, and the hung one applies nothing', async () => {
  const bench = await lab.open();
  const handler: Handler<Note> = {
    ...hangingOnce(bench.accountId, () => new Promise<never>(() => undefined)),
    commit: 'direct',
  };
  const run = bench.run({ handlers: [handler], handlerTimeoutMs: 200 });
  await bench.send(noteBody({ id: 'n1', text: '' }));

  await run.when('completed');

  expect((await bench.store.get(counterKey(bench.accountId)))?.['value']).toBe(1);
});
