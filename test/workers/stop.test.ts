import type { Message as SqsMessage, ReceiveMessageCommandOutput } from '@aws-sdk/client-sqs';
import { expect, test } from 'vitest';
import { Journal } from '../support/worker-journal.ts';
import { interceptCommand, serviceError } from '../support/worker-faults.ts';
import { workerLab, type Bench } from '../support/worker-fixture.ts';

const lab = workerLab();

const requestIds = Array.from({ length: 8 }, (_, index) => `r${String(index)}`);

/** A worker with eight handlers at work and a long poll open. */
async function runEight(bench: Bench) {
  const atWork = Promise.withResolvers<void>();
  bench.provider.beforeCharge = () => atWork.promise;
  const receives = new Journal<{ readonly broughtBefore: number }>();
  const brought = new Journal<SqsMessage>();
  await bench.sendAll(requestIds.map((requestId) => bench.chargeBody({ requestId })));
  const run = bench.run({
    waitTimeSeconds: 5,
    prepare: ({ pollingClient }) => {
      interceptCommand<never, ReceiveMessageCommandOutput>(
        pollingClient,
        'ReceiveMessageCommand',
        async (_input, send) => {
          receives.add({ broughtBefore: brought.entries.length });
          const answer = await send();
          for (const message of answer.Messages ?? []) brought.add(message);
          return answer;
        },
      );
    },
  });
  await bench.provider.calls.when(8);
  await receives.when(1, ({ broughtBefore }) => broughtBefore === 8);
  return { run, receives, brought, atWork };
}

test('M17 a stop receives nothing more, lets what runs finish, and gives back what the open poll brings', async () => {
  const bench = await lab.open();
  const { run, receives, brought, atWork } = await runEight(bench);
  const receivesBefore = receives.entries.length;

  const stopped = run.worker.stop();
  await bench.send(bench.chargeBody({ requestId: 'x0' }));
  await brought.when(9);
  const [givenBack] = await bench.whenGivenBack(1);
  atWork.resolve();
  const report = await stopped;

  expect(report).toEqual({ leftovers: [] });
  expect(run.outcomes.entries.map(({ key }) => String(key)).toSorted()).toEqual(requestIds);
  expect([run.tally(), receives.entries.length]).toEqual([{ completed: 8 }, receivesBefore]);
  expect(givenBack?.Attributes?.ApproximateReceiveCount).toBe('2');
  expect(bench.provider.charges).toHaveLength(8);
});

test('M17 a stop with a short deadline resolves and lists what still runs', async () => {
  const bench = await lab.open();
  const { run, atWork } = await runEight(bench);

  const report = await run.worker.stop({ deadlineMs: 50 });

  const started = run.deliveries.entries.map(({ messageId }) => messageId);
  expect(report.leftovers.toSorted()).toEqual(started.toSorted());
  expect(report.leftovers).toHaveLength(8);
  atWork.resolve();
  await run.when('completed', 8);
});

test('stops at once when nothing runs, and gives every caller the same answer', async () => {
  const bench = await lab.open();
  const run = bench.run();
  await bench.send(bench.chargeBody());
  await run.when('completed');

  const first = run.worker.stop();
  const second = run.worker.stop({ deadlineMs: 1 });

  expect(second).toBe(first);
  expect(await first).toEqual({ leftovers: [] });
  await run.worker.start();
  await bench.send(bench.chargeBody());
  expect(await bench.receive()).toHaveLength(1);
});

test('a stop waits for the open poll, and resolves also when what that brought cannot be given back', async () => {
  const bench = await lab.open();
  const polled = new Journal<true>();
  let triesToGiveBack = 0;
  const run = bench.run({
    waitTimeSeconds: 5,
    prepare: ({ client, pollingClient }) => {
      interceptCommand(pollingClient, 'ReceiveMessageCommand', (_input, send) => {
        polled.add(true);
        return send();
      });
      interceptCommand(client, 'ChangeMessageVisibilityBatchCommand', () => {
        triesToGiveBack += 1;
        throw serviceError('AccessDenied', 403);
      });
    },
  });
  await polled.when(1);

  const stopped = run.worker.stop();
  await bench.send(bench.chargeBody());

  expect(await stopped).toEqual({ leftovers: [] });
  expect([triesToGiveBack, run.outcomes.entries, await bench.depth()]).toEqual([1, [], 1]);
});
