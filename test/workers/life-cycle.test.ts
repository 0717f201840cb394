import type { GetQueueAttributesCommandInput, GetQueueAttributesCommandOutput } from '@aws-sdk/client-sqs';
import { expect, test } from 'vitest';
import { ConfigurationError } from '../../src/errors.ts';
import { createLiveness } from '../../src/workers/liveness.ts';
import { countEffect, noteBody, noteHandler } from '../support/worker-contract.ts';
import { StoreClock } from '../support/store-clock.ts';
import { interceptCommand, refusedConnection } from '../support/worker-faults.ts';
import { workerLab, type Bench } from '../support/worker-fixture.ts';

const lab = workerLab();

function handlers(bench: Bench) {
  return [
    noteHandler((_message, { transaction }) => {
      transaction.add(countEffect(bench.accountId));
      return Promise.resolve({ kind: 'completed' as const });
    }),
  ];
}

test('refuses to start on a queue that would move messages before the last attempt, and names both numbers', async () => {
  const bench = await lab.open({ maxReceiveCount: 5 });
  const { worker } = bench.run({ queueRules: 'refuse', maxAttempts: 5 });

  const refusal = await worker.start().catch((error: unknown) => error);

  expect(refusal).toBeInstanceOf(ConfigurationError);
  expect((refusal as ConfigurationError).faults).toEqual([
    { name: 'maxAttempts', rule: "below the queue's maxReceiveCount (5)", value: 5 },
  ]);
});

test('refuses to start when records are forgotten before their messages', async () => {
  const bench = await lab.open();
  const fortnight: Partial<GetQueueAttributesCommandOutput> = { Attributes: { MessageRetentionPeriod: '1209600' } };
  const { worker } = bench.run({
    queueRules: 'refuse',
    recordRetentionDays: 27,
    prepare: ({ client }) => {
      interceptCommand<GetQueueAttributesCommandInput, GetQueueAttributesCommandOutput>(
        client,
        'GetQueueAttributesCommand',
        () => Promise.resolve({ $metadata: {}, ...fortnight }),
      );
    },
  });

  const refusal = await worker.start().catch((error: unknown) => error);

  expect((refusal as ConfigurationError).faults).toMatchObject([{ name: 'store.recordRetentionDays', value: 27 }]);
});

test('starts all the same when the queue cannot be asked', async () => {
  const bench = await lab.open();
  const run = bench.run({
    handlers: handlers(bench),
    queueRules: 'refuse',
    prepare: ({ client }) => {
      interceptCommand(client, 'GetQueueAttributesCommand', () => Promise.reject(refusedConnection()));
    },
  });
  await bench.send(noteBody({ id: 'n1', text: '' }));

  await run.when('completed');
});

test('receives nothing when it is stopped while it starts', async () => {
  const bench = await lab.open();
  const asked = Promise.withResolvers<void>();
  const answer = Promise.withResolvers<void>();
  const run = bench.run({
    handlers: handlers(bench),
    queueRules: 'refuse',
    prepare: ({ client }) => {
      interceptCommand(client, 'GetQueueAttributesCommand', async (_input, send) => {
        asked.resolve();
        await answer.promise;
        return send();
      });
    },
  });
  await bench.send(noteBody({ id: 'n1', text: '' }));
  await asked.promise;
  const report = await run.worker.stop();
  answer.resolve();
  await run.worker.start();

  expect(report).toEqual({ leftovers: [] });
  expect(await bench.whenGivenBack(1)).toHaveLength(1);
  expect(run.deliveries.entries).toEqual([]);
});

test('a quiet worker finishes what runs, receives nothing, and goes on when it is resumed', async () => {
  const bench = await lab.open();
  const run = bench.run({ handlers: handlers(bench) });
  await bench.send(noteBody({ id: 'n1', text: '' }));
  await run.when('completed');
  await run.worker.quiet();
  const quietState = run.worker.health.state;
  await bench.send(noteBody({ id: 'n2', text: '' }));
  const waiting = await bench.depth();

  run.worker.resume();
  await run.when('completed', 2);

  expect(quietState).toBe('quiet');
  expect(waiting).toBe(1);
  expect(run.worker.health.state).toBe('polling');
});

test('tells each outcome under its own name too, and a listener can be taken off', async () => {
  const bench = await lab.open();
  const run = bench.run({ handlers: handlers(bench) });
  const seen: string[] = [];
  run.worker.on('completed', ({ key, outcome }) => seen.push(`completed ${String(key)} ${String(outcome.attempt)}`));
  const off = run.worker.on('replayed', () => seen.push('replayed'));
  off();
  run.worker.on('invalid', () => {
    throw new Error('a guest misbehaves');
  });
  await bench.send('{');
  await bench.send(noteBody({ id: 'n1', text: '' }));
  await run.when('completed');
  await bench.send(noteBody({ id: 'n1', text: '' }));

  await run.when('replayed');
  await run.when('invalid');

  expect(seen).toEqual(['completed n1 1']);
});

function livenessAt(clock: StoreClock, state: { isFull: boolean; isQuiet: boolean }) {
  const stalls: number[] = [];
  const liveness = createLiveness({
    clock,
    stallAfterMs: 60_000,
    isFull: () => state.isFull,
    isQuiet: () => state.isQuiet,
    onStalled: (silentForMs) => stalls.push(silentForMs),
  });
  liveness.watch();
  return { liveness, stalls };
}

test('notices once that the poll loop is dead, and again after it lived', () => {
  const clock = new StoreClock();
  const { liveness, stalls } = livenessAt(clock, { isFull: false, isQuiet: false });

  clock.advance(59_000);
  const before = [...stalls];
  clock.advance(200_000);
  const during = { state: liveness.state, told: stalls.length };
  liveness.sign();
  const after = liveness.state;
  clock.advance(100_000);

  expect(before).toEqual([]);
  expect(during).toEqual({ state: 'stalled', told: 1 });
  expect(after).toBe('polling');
  expect(stalls).toHaveLength(2);
});

test.each(['isFull', 'isQuiet'] as const)('takes no silence for death while %s', (which) => {
  const clock = new StoreClock();
  const state = { isFull: false, isQuiet: false, [which]: true };
  const { liveness, stalls } = livenessAt(clock, state);

  clock.advance(600_000);
  state[which] = false;
  clock.advance(50_000);

  expect(stalls).toEqual([]);
  expect(liveness.state).toBe('polling');
});
