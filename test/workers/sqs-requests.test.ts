import { expect, test } from 'vitest';
import { countEffect, counterKey, noteBody, noteHandler } from '../support/worker-contract.ts';
import { interceptChanges, countRequests } from '../support/sqs-batches.ts';
import { interceptCommand } from '../support/worker-faults.ts';
import { workerLab, type Bench, type RunSettings } from '../support/worker-fixture.ts';
import { Journal } from '../support/worker-journal.ts';

const lab = workerLab();

/** A worker whose requests to SQS are counted, by command. */
function runCounted(bench: Bench, settings: RunSettings = {}) {
  const counts = new Map<string, number>();
  const run = bench.run({
    ...settings,
    prepare: (clients) => {
      countRequests(clients.client, counts);
      countRequests(clients.pollingClient, counts);
      settings.prepare?.(clients);
    },
  });
  return { run, counts };
}

test.each([10, 50])('a message costs at most 0.3 requests to SQS at a concurrency of %i', async (concurrency) => {
  const bench = await lab.open();
  const handler = noteHandler(() => Promise.resolve({ kind: 'completed', response: null, effects: [] }));
  await bench.sendAll(Array.from({ length: 100 }, (_, index) => noteBody({ id: `n${String(index)}`, text: '' })));
  // Long enough for a busy machine: what is counted is the sharing, not the speed.
  const deleteBatchWindowMs = 500;
  const { run, counts } = runCounted(bench, { concurrency, handlers: [handler], deleteBatchWindowMs });

  await run.when('completed', 100);

  const { GetQueueAttributesCommand: _once, ...perMessage } = Object.fromEntries(counts);
  const requests = Object.values(perMessage).reduce((sum, count) => sum + count);
  expect(Object.keys(perMessage).toSorted()).toEqual(['DeleteMessageBatchCommand', 'ReceiveMessageCommand']);
  expect(requests / 100).toBeLessThanOrEqual(0.3);
});

test('a hundred messages that are worked on at once share the requests of their beats', async () => {
  // Arrange
  const bench = await lab.open({ visibilityTimeoutSeconds: 6 });
  const atWork = Promise.withResolvers<void>();
  const handler = noteHandler(async () => {
    await atWork.promise;
    return { kind: 'completed', response: null, effects: [] };
  });
  const extended = new Journal<string>();
  await bench.sendAll(Array.from({ length: 100 }, (_, index) => noteBody({ id: `n${String(index)}`, text: '' })));
  const { run, counts } = runCounted(bench, {
    concurrency: 100,
    handlers: [handler],
    lease: { leaseMs: 5_000, heartbeatMs: 1_500 },
    prepare: ({ client }) => {
      interceptChanges(client, () => undefined, { onAnswer: ({ ReceiptHandle = '' }) => extended.add(ReceiptHandle) });
    },
  });

  // Act
  await extended.when(200);
  const requests = counts.get('ChangeMessageVisibilityBatchCommand') ?? 0;
  atWork.resolve();
  await run.when('completed', 100);

  // Assert
  expect(new Set(extended.entries).size).toBe(100);
  // Two hundred changes, ten in a request, and some requests that were not full.
  expect(requests).toBeLessThanOrEqual(40);
  expect([run.deliveries.entries.length, await bench.depth()]).toEqual([100, 0]);
});

test('M21: a worker that is gone before its delay was set leaves one message, and no copy of it anywhere', async () => {
  // Arrange: the first worker ends when it is about to ask for the delay.
  const bench = await lab.open({ visibilityTimeoutSeconds: 2 });
  const counter = bench.accountId;
  let attempts = 0;
  const handler = noteHandler(() => {
    attempts += 1;
    if (attempts === 1) throw new Error('not yet');
    return Promise.resolve({ kind: 'completed', response: null, effects: [countEffect(counter)] });
  });
  const aboutToHide = Promise.withResolvers<void>();
  const sent: unknown[] = [];
  const first = bench.run({
    name: 'first',
    handlers: [handler],
    prepare: ({ client }) => {
      interceptCommand(client, 'SendMessageCommand', (input) => {
        sent.push(input);
        return Promise.reject(new Error('nothing is to be sent'));
      });
      interceptChanges(client, () => {
        aboutToHide.resolve();
        return new Promise<string>(() => undefined);
      });
    },
  });
  await bench.send(noteBody({ id: 'n1', text: '' }));
  await aboutToHide.promise;
  await first.worker.stop({ deadlineMs: 0 });

  // Act
  const { run, counts } = runCounted(bench, { name: 'second', handlers: [handler] });
  const [report] = await run.when('completed');

  // Assert
  expect(report?.delivery).toMatchObject({
    messageId: first.deliveries.entries[0]?.messageId,
    receiveCount: 2,
  });
  expect([sent, counts.get('SendMessageCommand')]).toEqual([[], undefined]);
  expect([await bench.depth(), await bench.deadLetters()]).toEqual([0, []]);
  expect(await bench.store.get(counterKey(counter))).toMatchObject({ value: 1 });
});

test('M21: a delay that a handler asks for is kept by the message itself, which keeps its count of receives', async () => {
  const bench = await lab.open();
  const hidden: (number | undefined)[] = [];
  const handler = noteHandler((_message, { attempt }) =>
    Promise.resolve(
      attempt < 3
        ? { kind: 'retry', reason: 'not yet', retryAfterMs: attempt === 1 ? 0 : 1_000 }
        : { kind: 'completed', response: null, effects: [] },
    ),
  );
  const { run, counts } = runCounted(bench, {
    handlers: [handler],
    prepare: ({ client }) => {
      interceptChanges(client, ({ VisibilityTimeout }) => {
        hidden.push(VisibilityTimeout);
        return undefined;
      });
    },
  });
  await bench.send(noteBody({ id: 'n1', text: '' }));

  const [report] = await run.when('completed');

  // With the fixed chance of the bench a second and 40 ms, in whole seconds.
  expect(hidden).toEqual([0, 2]);
  expect([report?.delivery.receiveCount, counts.get('SendMessageCommand'), await bench.depth()]).toEqual([
    3,
    undefined,
    0,
  ]);
});

test('M5: what comes back while its delete is still repeated is deleted with its new handle and not worked on again', async () => {
  // Arrange
  const bench = await lab.open({ visibilityTimeoutSeconds: 1 });
  const deleted: string[] = [];
  const handler = noteHandler(() => Promise.resolve({ kind: 'completed', response: null, effects: [] }));
  const received = new Journal<string>();
  const run = bench.run({
    handlers: [handler],
    visibilityTimeoutSeconds: 1,
    lease: { leaseMs: 600, heartbeatMs: 150 },
    prepare: ({ client, pollingClient }) => {
      interceptCommand<{ QueueUrl: string }, { $metadata: object; Messages?: { ReceiptHandle?: string }[] }>(
        pollingClient,
        'ReceiveMessageCommand',
        async (_input, send) => {
          const output = await send();
          for (const { ReceiptHandle = '' } of output.Messages ?? []) received.add(ReceiptHandle);
          return output;
        },
      );
      interceptCommand<
        { QueueUrl: string; Entries: { Id: string; ReceiptHandle: string }[] },
        { $metadata: object; Successful: { Id: string }[]; Failed: never[] }
      >(client, 'DeleteMessageBatchCommand', async (input, send) => {
        deleted.push(...input.Entries.map(({ ReceiptHandle }) => ReceiptHandle));
        if (deleted.length > 1) return send();
        // The first answer is awaited until the message has come back, and says yes to a handle that is out of date.
        await received.when(2);
        return { $metadata: {}, Successful: [{ Id: '0' }], Failed: [] };
      });
    },
  });

  // Act
  await bench.send(noteBody({ id: 'n1', text: '' }));
  await run.when('completed');

  // Assert
  expect(deleted).toEqual(received.entries);
  expect([run.deliveries.entries.length, run.tally(), await bench.depth()]).toEqual([1, { completed: 1 }, 0]);
});
