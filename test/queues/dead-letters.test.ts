import {
  ReceiveMessageCommand,
  SendMessageCommand,
  type MessageAttributeValue,
  type SQSClient,
} from '@aws-sdk/client-sqs';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { startLocalBackends, type LocalBackends } from '../../src/local/backends.ts';
import { createQueueClient } from '../../src/queues/client.ts';
import { createQueuePair } from '../../src/queues/create-queues.ts';
import { NOTICE_ATTRIBUTE, type DeadLetterNotice } from '../../src/queues/dead-letter-notice.ts';
import { readDeadLetters, redrive } from '../../src/queues/dead-letters.ts';
import { readDepth, totalOf } from '../../src/queues/depth.ts';
import { interceptCommand, serviceError } from '../support/worker-faults.ts';

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

const notice: DeadLetterNotice = {
  reason: 'invalid',
  detail: 'NOT_JSON: the body is not JSON',
  sourceQueue: 'q',
  messageId: 'm1',
  receiveCount: 1,
  deadLetteredAtMs: 1_700_000_000_000,
};

/** A dead-letter queue with a letter for each body; those that begin with `ours` carry a notice. */
async function queuesWith(bodies: readonly string[]) {
  opened += 1;
  const pair = await createQueuePair(client, `letters${String(opened)}`);
  const [to, from] = [pair.queue.url, pair.deadLetterQueue.url];
  for (const body of bodies) {
    const attributes: Record<string, MessageAttributeValue> = { trace: { DataType: 'String', StringValue: 't1' } };
    if (body.startsWith('ours')) {
      attributes[NOTICE_ATTRIBUTE] = { DataType: 'String', StringValue: JSON.stringify(notice) };
    }
    const input = { QueueUrl: from, MessageBody: body, MessageAttributes: attributes };
    await client.send(new SendMessageCommand(input));
  }
  return { from, to };
}

async function receiveAll(url: string) {
  const command = new ReceiveMessageCommand({
    QueueUrl: url,
    MaxNumberOfMessages: 10,
    MessageAttributeNames: ['All'],
  });
  const { Messages = [] } = await client.send(command);
  return Messages.map(({ Body = '', MessageAttributes = {} }) => `${Body}: ${Object.keys(MessageAttributes).join()}`);
}

const everything = { limit: 100, accepts: () => true, onMoved: () => undefined };

test('looks at every dead letter, with its notice if it has one, and leaves all visible', async () => {
  const { from } = await queuesWith([
    'ours 1',
    'moved by SQS',
    ...Array.from({ length: 10 }, (_, n) => `x${String(n)}`),
  ]);

  const letters = await readDeadLetters(client, from, { limit: 100 });
  const again = await readDeadLetters(client, from, { limit: 100 });

  expect(letters).toHaveLength(12);
  expect(letters.find(({ body }) => body === 'ours 1')?.notice).toEqual(notice);
  expect(letters.find(({ body }) => body === 'moved by SQS')?.notice).toBeUndefined();
  expect(again.map(({ messageId }) => messageId).toSorted()).toEqual(
    letters.map(({ messageId }) => messageId).toSorted(),
  );
  expect(await readDepth(client, from)).toEqual({ visible: 12, inFlight: 0, delayed: 0 });
});

test('looks at no more dead letters than asked for', async () => {
  const { from } = await queuesWith(['a', 'b', 'c']);

  expect(await readDeadLetters(client, from, { limit: 2 })).toHaveLength(2);
  expect(await readDepth(client, from)).toMatchObject({ visible: 3 });
});

test('redrives each dead letter once, with its own attributes and without our notice', async () => {
  const { from, to } = await queuesWith(['ours 1', 'moved by SQS']);
  const moved: string[] = [];

  const count = await redrive(client, { from, to }, { ...everything, onMoved: ({ body }) => moved.push(body) });

  expect([count, moved.toSorted()]).toEqual([2, ['moved by SQS', 'ours 1']]);
  expect((await receiveAll(to)).toSorted()).toEqual(['moved by SQS: trace', 'ours 1: trace']);
  expect(totalOf(await readDepth(client, from))).toBe(0);
});

test('redrives only what is accepted, up to the limit, and leaves the rest visible', async () => {
  const { from, to } = await queuesWith(['ours 1', 'other 1', 'ours 2', 'other 2', 'ours 3']);
  const accepts = ({ body }: { body: string }): boolean => body.startsWith('ours');

  const count = await redrive(client, { from, to }, { ...everything, limit: 2, accepts });

  expect(count).toBe(2);
  expect(await readDepth(client, to)).toMatchObject({ visible: 2 });
  expect(await readDepth(client, from)).toEqual({ visible: 3, inFlight: 0, delayed: 0 });
});

test('keeps a dead letter whose copy was not taken, and shows what it passed over', async () => {
  const { from, to } = await queuesWith(['other', 'ours']);
  const faulty = createQueueClient({ ...LOCAL, endpoint: backends.sqsEndpoint });
  interceptCommand(faulty, 'SendMessageCommand', () => Promise.reject(serviceError('AccessDenied', 403)));
  const accepts = ({ body }: { body: string }): boolean => body === 'ours';

  await expect(redrive(faulty, { from, to }, { ...everything, accepts })).rejects.toMatchObject({
    name: 'AccessDenied',
  });

  faulty.destroy();
  expect(await readDepth(client, from)).toMatchObject({ visible: 1, inFlight: 1 });
  expect(totalOf(await readDepth(client, to))).toBe(0);
});

test('leaves alone what a running worker dead-letters again during the redrive', async () => {
  // Arrange: whatever comes back to the queue is dead-lettered again at once, as a worker does with a bad message.
  const { from, to } = await queuesWith(['ours a', 'ours b']);
  const worker = createQueueClient({ ...LOCAL, endpoint: backends.sqsEndpoint });
  worker.middlewareStack.add(
    (next) => async (args) => {
      const answer = await next(args);
      const { QueueUrl, MessageBody } = args.input as { QueueUrl?: string; MessageBody?: string };
      if (QueueUrl !== to || MessageBody === undefined) return answer;
      const { MessageId } = answer.output as { MessageId?: string };
      const again = JSON.stringify({ ...notice, messageId: MessageId });
      const attributes = { [NOTICE_ATTRIBUTE]: { DataType: 'String', StringValue: again } };
      await client.send(new SendMessageCommand({ QueueUrl: from, MessageBody, MessageAttributes: attributes }));
      return answer;
    },
    { step: 'initialize' },
  );

  // Act
  const moved = await redrive(worker, { from, to }, { limit: 50, accepts: () => true, onMoved: () => undefined });

  // Assert
  worker.destroy();
  expect(moved).toBe(2);
  const left = await readDeadLetters(client, from, { limit: 10 });
  expect(left.map((letter) => letter.body).toSorted((left, right) => left.localeCompare(right))).toEqual([
    'ours a',
    'ours b',
  ]);
});
