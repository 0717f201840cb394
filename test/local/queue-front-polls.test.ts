import { DeleteQueueCommand, ReceiveMessageCommand, SendMessageCommand, type SQSClient } from '@aws-sdk/client-sqs';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type QueueApp } from '../../src/local/companion.ts';
import { startQueueFront, type QueueFront } from '../../src/local/queue-front.ts';
import { until } from '../support/until.ts';
import { createQueue, sqsClient } from './aws-clients.ts';
import { endpointOf, freshFront, longPoll, post, receive } from './fronts.ts';

let front: QueueFront;
let sqs: SQSClient;

beforeAll(async () => {
  front = await freshFront();
  sqs = sqsClient(endpointOf(front));
});

afterAll(async () => {
  sqs.destroy();
  await front.close();
});

test('a long poll that was aborted takes no message from the next receiver', async () => {
  // Arrange
  const queueUrl = await createQueue(sqs, 'aborted-poll');
  const caller = new AbortController();
  const aborted = sqs.send(longPoll(queueUrl), { abortSignal: caller.signal });
  await until(() => front.waitingPolls() === 1);

  // Act
  caller.abort();
  await expect(aborted).rejects.toThrow();
  await until(() => front.waitingPolls() === 0);
  await sqs.send(new SendMessageCommand({ QueueUrl: queueUrl, MessageBody: 'only once' }));
  const next = await receive(sqs, queueUrl);

  // Assert
  expect(next).toEqual([{ body: 'only once', receiveCount: '1' }]);
});

test('a message that arrives while its caller goes away is given back to the queue', async () => {
  // Arrange
  const app = heldApp();
  const held = await startQueueFront({ app });
  const client = sqsClient(endpointOf(held));
  const caller = new AbortController();
  const aborted = client.send(longPoll('http://127.0.0.1/000000000000/held'), { abortSignal: caller.signal });
  await until(() => app.targets.includes('AmazonSQS.ReceiveMessage'));

  // Act
  caller.abort();
  await expect(aborted).rejects.toThrow();
  await until(() => held.waitingPolls() === 0);
  app.bring('handle-1');

  // Assert
  const givenBack = await until(() => app.givenBack[0]);
  expect(givenBack).toEqual({
    QueueUrl: 'http://127.0.0.1/000000000000/held',
    ReceiptHandle: 'handle-1',
    VisibilityTimeout: 0,
  });
  client.destroy();
  await held.close();
});

test('one message ends one of twenty long polls and leaves the others waiting', async () => {
  // Arrange
  const own = await freshFront();
  const client = sqsClient(endpointOf(own));
  const queueUrl = await createQueue(client, 'twenty');
  const answered: number[] = [];
  const polls = Array.from({ length: 20 }, async () => {
    const { Messages = [] } = await client.send(longPoll(queueUrl));
    answered.push(Messages.length);
  });
  await until(() => own.waitingPolls() === 20);

  // Act
  await client.send(new SendMessageCommand({ QueueUrl: queueUrl, MessageBody: 'one' }));
  await Promise.race(polls);

  // Assert
  expect(answered).toEqual([1]);
  expect(own.waitingPolls()).toBe(19);
  await own.close();
  await Promise.all(polls);
  expect(answered).toEqual([1, ...Array.from({ length: 19 }, () => 0)]);
  client.destroy();
});

test('waiting receivers are served in the order in which they came', async () => {
  // Arrange
  const queueUrl = await createQueue(sqs, 'in-order');
  const served: string[] = [];
  const polls: Promise<void>[] = [];
  for (const name of ['first', 'second', 'third']) {
    polls.push(sqs.send(longPoll(queueUrl)).then(() => void served.push(name)));
    await until(() => front.waitingPolls() === polls.length);
  }

  // Act
  for (const poll of polls) {
    await sqs.send(new SendMessageCommand({ QueueUrl: queueUrl, MessageBody: 'next' }));
    await Promise.race([poll, until(() => served.length === polls.length)]);
  }

  // Assert
  expect(served).toEqual(['first', 'second', 'third']);
});

test('a receive that names no wait time waits as long as its queue says', async () => {
  // Arrange
  const queueUrl = await createQueue(sqs, 'queue-default', { ReceiveMessageWaitTimeSeconds: '20' });
  const poll = sqs.send(new ReceiveMessageCommand({ QueueUrl: queueUrl }));

  // Act
  await until(() => front.waitingPolls() === 1);
  await sqs.send(new SendMessageCommand({ QueueUrl: queueUrl, MessageBody: 'waited for' }));

  // Assert
  expect((await poll).Messages?.[0]?.Body).toBe('waited for');
});

test('a long poll ends empty when its wait time is over', async () => {
  // Arrange
  const queueUrl = await createQueue(sqs, 'nothing-comes');

  // Act
  const answer = await sqs.send(new ReceiveMessageCommand({ QueueUrl: queueUrl, WaitTimeSeconds: 1 }));

  // Assert
  expect(answer.Messages).toBeUndefined();
  expect(front.waitingPolls()).toBe(0);
});

test('a long poll fails by name when its queue is deleted under it', async () => {
  // Arrange
  const queueUrl = await createQueue(sqs, 'deleted-under-poll');
  const poll = sqs.send(longPoll(queueUrl));
  await until(() => front.waitingPolls() === 1);

  // Act
  await Promise.all([
    expect(poll).rejects.toMatchObject({ name: 'QueueDoesNotExist' }),
    sqs.send(new DeleteQueueCommand({ QueueUrl: queueUrl })),
  ]);

  // Assert
  expect(front.waitingPolls()).toBe(0);
});

test('a long poll beyond the bound is refused as retryable and not queued', async () => {
  // Arrange
  const own = await freshFront({ maxWaitingPolls: 1 });
  const client = sqsClient(endpointOf(own));
  const queueUrl = await createQueue(client, 'bounded');
  const first = client.send(longPoll(queueUrl));
  await until(() => own.waitingPolls() === 1);

  // Act
  const second = client.send(longPoll(queueUrl));

  // Assert
  await expect(second).rejects.toMatchObject({ name: 'ServiceUnavailable', $metadata: { httpStatusCode: 503 } });
  await own.close();
  await first;
  client.destroy();
});

test('a wait time over 20 seconds is refused', async () => {
  // Arrange
  const queueUrl = await createQueue(sqs, 'too-patient');

  // Act
  const poll = sqs.send(new ReceiveMessageCommand({ QueueUrl: queueUrl, WaitTimeSeconds: 21 }));

  // Assert
  await expect(poll).rejects.toMatchObject({ name: 'InvalidParameterValue' });
});

test('closing answers open polls empty and resolves without waiting for idle connections', async () => {
  // Arrange
  const own = await freshFront();
  const client = sqsClient(endpointOf(own));
  const queueUrl = await createQueue(client, 'closing');
  const poll = client.send(longPoll(queueUrl));
  await until(() => own.waitingPolls() === 1);

  // Act
  await own.close();

  // Assert
  expect((await poll).Messages).toBeUndefined();
  client.destroy();
});

test('an answer of a closing server ends its connection', async () => {
  // Arrange
  const own = await freshFront();
  const client = sqsClient(endpointOf(own));
  const queueUrl = await createQueue(client, 'last-answer');
  const headers = { 'x-amz-target': 'AmazonSQS.ReceiveMessage', connection: 'keep-alive' };
  const poll = post(own.port, Buffer.from(JSON.stringify({ QueueUrl: queueUrl, WaitTimeSeconds: 20 })), headers);
  await until(() => own.waitingPolls() === 1);

  // Act
  await own.close();

  // Assert
  expect(await poll).toMatchObject({ statusCode: 200, headers: { connection: 'close' }, body: {} });
  client.destroy();
});

/** An application whose receives bring nothing until they are told what to bring. */
function heldApp(): QueueApp & { targets: string[]; givenBack: unknown[]; bring: (receiptHandle: string) => void } {
  const messages = Promise.withResolvers<string>();
  const targets: string[] = [];
  const givenBack: unknown[] = [];
  return {
    targets,
    givenBack,
    bring: messages.resolve,
    close: () => Promise.resolve(),
    inject: async ({ headers, payload }) => {
      const target = headers?.['x-amz-target'] ?? '';
      targets.push(target);
      if (target === 'AmazonSQS.ChangeMessageVisibility') givenBack.push(JSON.parse(String(payload)));
      const answer =
        target === 'AmazonSQS.ReceiveMessage' ? { Messages: [{ ReceiptHandle: await messages.promise }] } : {};
      return { statusCode: 200, headers: {}, rawPayload: Buffer.from(JSON.stringify(answer)) };
    },
  };
}
