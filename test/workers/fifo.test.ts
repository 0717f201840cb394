import type { Message as SqsMessage, ReceiveMessageCommandOutput, SQSClient } from '@aws-sdk/client-sqs';
import { expect, test } from 'vitest';
import { createProducer } from '../../src/producers/producer.ts';
import type { HandlerContext } from '../../src/workers/handler.ts';
import { noteBody, noteHandler, type Note } from '../support/worker-contract.ts';
import { interceptCommand } from '../support/worker-faults.ts';
import { workerLab, type Bench } from '../support/worker-fixture.ts';

const lab = workerLab();

async function sendToGroup(bench: Bench, groupId: string, ids: readonly string[]): Promise<void> {
  const producer = createProducer({ client: bench.client, queueUrl: bench.queueUrl });
  const results = await producer.sendBatch(ids.map((id) => ({ body: noteBody({ id, text: '' }), key: id, groupId })));
  expect(results.map(({ kind }) => kind)).toEqual(ids.map(() => 'sent'));
}

/** A handler that tells who began and ended, and does what the test says in between. */
function telling(log: string[], act: (note: Note, context: HandlerContext) => Promise<void> = () => Promise.resolve()) {
  return noteHandler(async ({ payload }, context) => {
    log.push(`+${payload.id}`);
    await act(payload, context);
    log.push(`-${payload.id}`);
    return { kind: 'completed' };
  });
}

function ofGroup(log: readonly string[], group: string): string[] {
  return log.filter((line) => line.slice(1).startsWith(group));
}

test('M22 keeps the order of a group also after a failure, while other groups finish at once', async () => {
  const bench = await lab.open({ isFifo: true });
  await sendToGroup(bench, 'g1', ['g1-a', 'g1-b', 'g1-c']);
  await sendToGroup(bench, 'g2', ['g2-a']);
  await sendToGroup(bench, 'g3', ['g3-a']);
  const log: string[] = [];
  const others = Promise.withResolvers<void>();
  const handler = telling(log, async ({ id }, { attempt }) => {
    if (id !== 'g1-a' || attempt > 1) return;
    // The failure comes only when the other groups are through: they did not wait for it.
    await others.promise;
    throw new Error('fails once');
  });
  const run = bench.run({ handlers: [handler], retryBackoff: { baseMs: 1, capMs: 1 } });
  await run.outcomes.when(2, ({ key, outcome }) => outcome.kind === 'completed' && key?.startsWith('g1') === false);
  others.resolve();

  await run.when('completed', 5);

  expect(ofGroup(log, 'g1')).toEqual(['+g1-a', '+g1-a', '-g1-a', '+g1-b', '-g1-b', '+g1-c', '-g1-c']);
  expect(await bench.depth()).toBe(0);
});

/** SQS gives out up to ten messages of one group at once; the local one gives one, so batches are made here. */
function receiveInBatches(client: SQSClient, messages: readonly SqsMessage[]): void {
  let batch: readonly SqsMessage[] = messages;
  interceptCommand<{ QueueUrl: string }, ReceiveMessageCommandOutput>(
    client,
    'ReceiveMessageCommand',
    async (_i, send) => {
      const Messages = [...batch];
      batch = [];
      return Messages.length > 0 ? { $metadata: {}, Messages } : send();
    },
  );
}

async function receivedOneByOne(bench: Bench, groups: readonly string[]): Promise<SqsMessage[]> {
  for (const group of groups) await sendToGroup(bench, group, [`${group}-only`]);
  const messages = await bench.whenGivenBack(groups.length);
  // Received from groups of their own, and handed to the worker as if they were of one.
  return messages.map((message) => ({ ...message, Attributes: { ...message.Attributes, MessageGroupId: 'one' } }));
}

test('runs messages of one group that came in one receive one after the other, each deleted before the next', async () => {
  const bench = await lab.open({ isFifo: true });
  const messages = await receivedOneByOne(bench, ['a', 'b', 'c']);
  const log: string[] = [];
  const run = bench.run({
    handlers: [telling(log)],
    prepare: ({ pollingClient }) => {
      receiveInBatches(pollingClient, messages);
    },
  });

  await run.when('completed', 3);

  expect(log.map((line) => line[0])).toEqual(['+', '-', '+', '-', '+', '-']);
  expect(await bench.depth()).toBe(0);
});

test('gives the rest of a group back at once when a message of it must come again, and starts none of it', async () => {
  const bench = await lab.open({ isFifo: true });
  const messages = await receivedOneByOne(bench, ['a', 'b', 'c']);
  const log: string[] = [];
  const handler = telling(log, () => Promise.reject(new Error('not now')));
  const run = bench.run({
    handlers: [handler],
    concurrency: 1,
    retryBackoff: { baseMs: 600_000, capMs: 600_000 },
    prepare: ({ pollingClient }) => {
      receiveInBatches(pollingClient, messages);
    },
  });
  const [report] = await run.when('retry');
  await run.worker.quiet();

  const back = await bench.whenGivenBack(2);

  expect(back).toHaveLength(2);
  expect(back.map(({ MessageId }) => MessageId)).not.toContain(report?.delivery.messageId);
});

test('a stop gives back what waits behind a message of its group, and lets that one finish', async () => {
  const bench = await lab.open({ isFifo: true });
  const messages = await receivedOneByOne(bench, ['a', 'b', 'c']);
  const atWork = Promise.withResolvers<void>();
  const log: string[] = [];
  const run = bench.run({
    handlers: [telling(log, () => atWork.promise)],
    prepare: ({ pollingClient }) => {
      receiveInBatches(pollingClient, messages);
    },
  });
  await run.deliveries.when(1);
  const stopped = run.worker.stop();

  const back = await bench.whenGivenBack(2);
  atWork.resolve();

  expect(await stopped).toEqual({ leftovers: [] });
  expect(back).toHaveLength(2);
  expect(log).toHaveLength(2);
});

test('dead-letters an invalid message of a group to the FIFO dead-letter queue, and the group goes on', async () => {
  const bench = await lab.open({ isFifo: true });
  const producer = createProducer({ client: bench.client, queueUrl: bench.queueUrl });
  await producer.sendBatch([
    { body: '{', key: 'bad', groupId: 'g1' },
    { body: noteBody({ id: 'g1-b', text: '' }), key: 'g1-b', groupId: 'g1' },
  ]);
  const run = bench.run({ handlers: [telling([])] });

  await run.when('completed');

  expect((await bench.deadLetters()).map(({ notice }) => notice?.reason)).toEqual(['invalid']);
  expect(await bench.depth()).toBe(0);
});
