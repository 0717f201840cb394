import {
  DeleteMessageCommand,
  ReceiveMessageCommand,
  SendMessageCommand,
  type ChangeMessageVisibilityBatchCommandInput,
  type ChangeMessageVisibilityBatchCommandOutput,
  type ReceiveMessageCommandOutput,
  type SendMessageCommandInput,
  type SendMessageCommandOutput,
  type SQSClient,
} from '@aws-sdk/client-sqs';
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest';
import { startLocalBackends, type LocalBackends } from '../../src/local/backends.ts';
import { createQueueClient } from '../../src/queues/client.ts';
import { createQueuePair } from '../../src/queues/create-queues.ts';
import { NOTICE_ATTRIBUTE } from '../../src/queues/dead-letter-notice.ts';
import { readDeadLetters, type DeadLetter } from '../../src/queues/dead-letters.ts';
import { readDepth, totalOf } from '../../src/queues/depth.ts';
import { redrive, type RedriveDecision, type RedriveOptions } from '../../src/queues/redrive.ts';
import { QUEUE_DEFAULTS } from '../../src/queues/topology.ts';
import { interceptCommand, serviceError } from '../support/worker-faults.ts';
import { JumpingClock } from './jumping-clock.ts';
import { notice, queuesWithLetters } from './letters.ts';

const LOCAL = { region: 'us-east-1', credentials: { accessKeyId: 'test', secretAccessKey: 'test' } };

let backends: LocalBackends;
let client: SQSClient;
let opened = 0;

beforeAll(async () => {
  backends = await startLocalBackends();
  client = createQueueClient({ ...LOCAL, endpoint: backends.sqsEndpoint });
});
afterAll(async () => {
  client.destroy();
  await backends.stop();
});

/** A client of its own, for faults. */
function anotherClient(): SQSClient {
  const another = createQueueClient({ ...LOCAL, endpoint: backends.sqsEndpoint });
  onTestFinished(() => {
    another.destroy();
  });
  return another;
}

function queuesWith(bodies: readonly string[]): ReturnType<typeof queuesWithLetters> {
  opened += 1;
  return queuesWithLetters(client, `redrive${String(opened)}`, bodies);
}

async function receiveAll(url: string): Promise<string[]> {
  const command = new ReceiveMessageCommand({
    QueueUrl: url,
    MaxNumberOfMessages: 10,
    MessageAttributeNames: ['All'],
  });
  const { Messages = [] } = await client.send(command);
  return Messages.map(({ Body = '', MessageAttributes = {} }) => `${Body}: ${Object.keys(MessageAttributes).join()}`);
}

/** Takes so many off a FIFO queue, which gives one of a group at a time. */
async function drain(url: string, count: number): Promise<string[]> {
  const bodies: string[] = [];
  for (let receives = 0; receives < count; receives += 1) {
    const command = new ReceiveMessageCommand({ QueueUrl: url, MessageSystemAttributeNames: ['MessageGroupId'] });
    const { Messages = [] } = await client.send(command);
    for (const { Body = '', ReceiptHandle, Attributes = {} } of Messages) {
      bodies.push(`${Attributes.MessageGroupId ?? ''} ${Body}`);
      await client.send(new DeleteMessageCommand({ QueueUrl: url, ReceiptHandle }));
    }
  }
  return bodies;
}

type Decide = RedriveOptions<RedriveDecision>['decide'];

function decideBy(action: (letter: DeadLetter) => RedriveDecision['action']): Decide {
  return (letter) => Promise.resolve({ action: action(letter) });
}

const everything = { limit: 100, decide: decideBy(() => 'move') };

test('redrives each dead letter once, with its own attributes and without our notice', async () => {
  const urls = await queuesWith(['ours 1', 'moved by SQS']);
  const told: string[] = [];

  const report = await redrive(client, urls, {
    ...everything,
    onSettled: ({ body }, _decision, action) => told.push(`${body}: ${action}`),
  });

  expect(report).toEqual({ moved: 2, deleted: 0, left: 0, copies: 0, damaged: 0, end: 'empty' });
  expect(told.toSorted()).toEqual(['moved by SQS: move', 'ours 1: move']);
  expect((await receiveAll(urls.to)).toSorted()).toEqual(['moved by SQS: trace', 'ours 1: trace']);
  expect(totalOf(await readDepth(client, urls.from))).toBe(0);
});

test('moves, deletes and leaves as it is told, up to the limit, and leaves the rest visible', async () => {
  const { from, to } = await queuesWith(['ours 1', 'other 1', 'done 1', 'ours 2', 'other 2', 'ours 3']);
  const decide = decideBy(({ body }) => {
    if (body.startsWith('done')) return 'delete';
    return body.startsWith('ours') ? 'move' : 'leave';
  });

  const report = await redrive(client, { from, to }, { limit: 3, decide });

  expect(report.moved + report.deleted).toBe(3);
  expect(report.end).toBe('limit');
  expect(await readDepth(client, to)).toMatchObject({ visible: report.moved });
  expect(await readDepth(client, from)).toEqual({ visible: 3, inFlight: 0, delayed: 0 });
});

test('deletes without sending what is told to be applied', async () => {
  const { from, to } = await queuesWith(['done 1', 'done 2']);

  const report = await redrive(client, { from, to }, { limit: 10, decide: decideBy(() => 'delete') });

  expect(report).toMatchObject({ moved: 0, deleted: 2 });
  expect([totalOf(await readDepth(client, from)), totalOf(await readDepth(client, to))]).toEqual([0, 0]);
});

test('keeps a dead letter whose copy was not taken, and shows all that it looked at', async () => {
  const { from, to } = await queuesWith(['other', 'ours']);
  const faulty = anotherClient();
  interceptCommand(faulty, 'SendMessageCommand', () => Promise.reject(serviceError('AccessDenied', 403)));

  await expect(redrive(faulty, { from, to }, everything)).rejects.toMatchObject({ name: 'AccessDenied' });

  expect(await readDepth(client, from)).toMatchObject({ visible: 2, inFlight: 0 });
  expect(totalOf(await readDepth(client, to))).toBe(0);
});

test('keeps a dead letter whose copy was damaged on the way', async () => {
  const { from, to } = await queuesWith(['a']);
  const faulty = anotherClient();
  interceptCommand<SendMessageCommandInput, SendMessageCommandOutput>(faulty, 'SendMessageCommand', (input, send) =>
    send({ ...input, MessageBody: 'b' }),
  );

  await expect(redrive(faulty, { from, to }, everything)).rejects.toMatchObject({ code: 'BACKEND', retryable: true });

  expect(await readDepth(client, from)).toMatchObject({ visible: 1 });
});

test('leaves a dead letter that came damaged over the wire', async () => {
  const { from, to } = await queuesWith(['a']);
  const faulty = anotherClient();
  interceptCommand<never, ReceiveMessageCommandOutput>(faulty, 'ReceiveMessageCommand', async (_input, send) => {
    const answer = await send();
    return { ...answer, Messages: answer.Messages?.map((message) => ({ ...message, Body: 'b' })) };
  });

  const report = await redrive(faulty, { from, to }, everything);

  expect(report).toMatchObject({ moved: 0, damaged: 1 });
  expect([(await readDepth(client, from)).visible, totalOf(await readDepth(client, to))]).toEqual([1, 0]);
});

test('a run that ended between send and delete is repeated: the letter is there twice and never lost', async () => {
  const { from, to } = await queuesWith(['a']);
  const faulty = anotherClient();
  interceptCommand(faulty, 'DeleteMessageCommand', () => Promise.reject(serviceError('AccessDenied', 403)));

  await expect(redrive(faulty, { from, to }, everything)).rejects.toMatchObject({ name: 'AccessDenied' });
  const between = [await readDepth(client, from), await readDepth(client, to)].map(totalOf);
  const again = await redrive(client, { from, to }, everything);

  expect(between).toEqual([1, 1]);
  expect(again.moved).toBe(1);
  expect([await readDepth(client, from), await readDepth(client, to)].map(totalOf)).toEqual([0, 2]);
});

test('moves a letter once when its handle is too old for the delete', async () => {
  const { from, to } = await queuesWith(['a']);
  const faulty = anotherClient();
  interceptCommand(faulty, 'DeleteMessageCommand', () => Promise.reject(serviceError('ReceiptHandleIsInvalid', 400)));

  const report = await redrive(faulty, { from, to }, everything);

  expect(report).toMatchObject({ moved: 1, end: 'empty' });
  expect(totalOf(await readDepth(client, to))).toBe(1);
});

test('leaves alone what a running worker dead-letters again during the redrive', async () => {
  // Arrange: whatever comes back to the queue is dead-lettered again at once, as a worker does with a bad message.
  const { from, to } = await queuesWith(['ours a', 'ours b']);
  const worker = anotherClient();
  interceptCommand<SendMessageCommandInput, SendMessageCommandOutput>(
    worker,
    'SendMessageCommand',
    async ({ MessageBody }, send) => {
      const answer = await send();
      const again = JSON.stringify({ ...notice, messageId: answer.MessageId });
      const attributes = { [NOTICE_ATTRIBUTE]: { DataType: 'String', StringValue: again } };
      await client.send(new SendMessageCommand({ QueueUrl: from, MessageBody, MessageAttributes: attributes }));
      return answer;
    },
  );

  // Act
  const report = await redrive(worker, { from, to }, { ...everything, limit: 50 });

  // Assert
  expect(report).toMatchObject({ moved: 2, left: 2 });
  const left = await readDeadLetters(client, from, { limit: 10 });
  expect(left.map((letter) => letter.body).toSorted((a, b) => a.localeCompare(b))).toEqual(['ours a', 'ours b']);
});

test('moves no more in a second than it is told', async () => {
  const urls = await queuesWith(['a', 'b', 'c']);
  const clock = new JumpingClock();
  const movedAtMs: number[] = [];

  await redrive(client, urls, {
    ...everything,
    clock,
    ratePerSecond: 0.1,
    onSettled: () => movedAtMs.push(clock.monotonicMs()),
  });

  expect(movedAtMs).toEqual([0, 10_000, 20_000]);
});

test('keeps hidden what waits for its turn, however slow the turns are', async () => {
  // Arrange
  const urls = await queuesWith(['a', 'b', 'c']);
  const slow = anotherClient();
  const clock = new JumpingClock();
  const renewed: { readonly atMs: number; readonly letters: number }[] = [];
  interceptCommand<ChangeMessageVisibilityBatchCommandInput, ChangeMessageVisibilityBatchCommandOutput>(
    slow,
    'ChangeMessageVisibilityBatchCommand',
    ({ Entries = [] }, send) => {
      renewed.push({ atMs: clock.monotonicMs(), letters: Entries.length });
      return send();
    },
  );

  // Act: a letter a minute, while a look lasts half a minute.
  const report = await redrive(slow, urls, { ...everything, clock, ratePerSecond: 1 / 60 });

  // Assert: never later than half a minute after the last time.
  expect(report.moved).toBe(3);
  const times = [0, ...renewed.map(({ atMs }) => atMs), 120_000];
  const gaps = times.slice(1).map((atMs, index) => atMs - (times[index] ?? 0));
  expect(Math.max(...gaps)).toBeLessThan(30_000);
  expect(renewed[0]).toEqual({ atMs: 15_000, letters: 2 });
});

test('asks again about a letter that had to wait: what was applied meanwhile is not moved', async () => {
  const urls = await queuesWith(['a', 'b']);
  const asked = new Map<string, number>();
  const decide = decideBy(({ messageId }) => {
    asked.set(messageId, (asked.get(messageId) ?? 0) + 1);
    return asked.get(messageId) === 2 ? 'leave' : 'move';
  });

  const report = await redrive(client, urls, { limit: 10, decide, clock: new JumpingClock(), ratePerSecond: 1 });

  expect(report).toMatchObject({ moved: 1, left: 1 });
  expect(totalOf(await readDepth(client, urls.to))).toBe(1);
});

test('stops between two letters when it is told to, and shows the rest', async () => {
  const { from, to } = await queuesWith(['a', 'b', 'c']);
  const interrupted = new AbortController();

  const report = await redrive(
    client,
    { from, to },
    {
      ...everything,
      signal: interrupted.signal,
      onSettled: () => {
        interrupted.abort(new Error('Ctrl-C'));
      },
    },
  );

  expect(report).toMatchObject({ moved: 1, end: 'interrupted' });
  expect(await readDepth(client, from)).toMatchObject({ visible: 2, inFlight: 0 });
  expect(await readDepth(client, to)).toMatchObject({ visible: 1 });
});

test('stops while it waits for a turn, and the letter that waited is left where it was', async () => {
  const { from, to } = await queuesWith(['a', 'b']);
  const interrupted = new AbortController();
  const ask = (): Promise<RedriveDecision> => {
    if (waiting) queueMicrotask(() => setImmediate(() => interrupted.abort(new Error('Ctrl-C'))));
    return Promise.resolve({ action: 'move' });
  };
  let waiting = false;

  const report = await redrive(
    client,
    { from, to },
    {
      limit: 10,
      decide: ask,
      // The system's clock: a turn in a hundred seconds does not come while this test runs.
      ratePerSecond: 0.01,
      signal: interrupted.signal,
      onSettled: () => {
        waiting = true;
      },
    },
  );

  expect(report).toMatchObject({ moved: 1, left: 0, end: 'interrupted' });
  expect(await readDepth(client, from)).toMatchObject({ visible: 1, inFlight: 0 });
});

test('keeps groups and their order on FIFO queues, and SQS drops none as seen before', async () => {
  // Arrange
  opened += 1;
  const pair = await createQueuePair(client, `redrive${String(opened)}.fifo`, { ...QUEUE_DEFAULTS, isFifo: true });
  const [to, from] = [pair.queue.url, pair.deadLetterQueue.url];
  for (const [index, MessageBody] of ['1', '2', '3'].entries()) {
    const ids = { MessageGroupId: 'g', MessageDeduplicationId: `d${String(index)}` };
    // The original was sent with the same id a moment ago.
    if (index === 0) await client.send(new SendMessageCommand({ QueueUrl: to, MessageBody: 'original', ...ids }));
    await client.send(new SendMessageCommand({ QueueUrl: from, MessageBody, ...ids }));
  }

  // Act
  const report = await redrive(client, { from, to }, everything);

  // Assert
  expect(report.moved).toBe(3);
  expect(await drain(to, 4)).toEqual(['g original', 'g 1', 'g 2', 'g 3']);
});
