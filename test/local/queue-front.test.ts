import { request } from 'node:http';
import {
  DeleteQueueCommand,
  GetQueueUrlCommand,
  ListQueuesCommand,
  ReceiveMessageCommand,
  SendMessageCommand,
  type SQSClient,
} from '@aws-sdk/client-sqs';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { loadCompanion, type QueueApp } from '../../src/local/companion.ts';
import { startQueueFront, type QueueFront } from '../../src/local/queue-front.ts';
import { until } from '../support/until.ts';
import { createQueue, sqsClient } from './aws-clients.ts';
import { listeningAddresses } from './listening.ts';

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
  const next = await receive(queueUrl);

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
  expect(givenBack).toEqual({ QueueUrl: 'http://127.0.0.1/000000000000/held', ReceiptHandle: 'handle-1', VisibilityTimeout: 0 });
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

test.skipIf(process.platform !== 'linux')('listens on 127.0.0.1 and on no other address', () => {
  // Act
  const addresses = listeningAddresses(front.port);

  // Assert
  expect(addresses).toEqual(['0100007F']);
});

test('queue URLs carry the address of the front and name the queue', async () => {
  // Act
  const created = await createQueue(sqs, 'addressed');
  const { QueueUrls = [] } = await sqs.send(new ListQueuesCommand({ QueueNamePrefix: 'addressed' }));
  const { QueueUrl } = await sqs.send(new GetQueueUrlCommand({ QueueName: 'addressed' }));

  // Assert
  const expected = `http://127.0.0.1:${String(front.port)}/000000000000/addressed`;
  expect([created, ...QueueUrls, QueueUrl]).toEqual([expected, expected, expected]);
  expect(await receive(created)).toEqual([]);
});

test('a message of bytes that are not UTF-8 is refused', async () => {
  // Arrange
  const queueUrl = await createQueue(sqs, 'broken-bytes');
  const [before = '', after = ''] = JSON.stringify({ QueueUrl: queueUrl, MessageBody: '|' }).split('|');
  const body = Buffer.concat([Buffer.from(before), Buffer.from([0xff, 0xfe]), Buffer.from(after)]);

  // Act
  const answer = await post(front.port, body);

  // Assert
  expect(answer).toMatchObject({
    statusCode: 400,
    headers: { 'x-amzn-query-error': 'InvalidMessageContents;Sender' },
    body: { __type: 'com.amazonaws.sqs#InvalidMessageContents' },
  });
  expect(await receive(queueUrl)).toEqual([]);
});

test.each(['evil.example', 'evil.example:4566', '192.0.2.7', '127.0.0.1.evil.example', 'localhost.evil.example'])(
  'a request for the foreign host %s is refused',
  async (host) => {
    // Act
    const answer = await post(front.port, Buffer.from('{}'), { host, 'x-amz-target': 'AmazonSQS.ListQueues' });

    // Assert
    expect(answer.statusCode).toBe(403);
  },
);

test.each(['localhost', '127.0.0.1:1', '[::1]:1', 'sqs.us-east-1.localhost:1'])('a request for the loopback host %s is served', async (host) => {
  // Act
  const answer = await post(front.port, Buffer.from('{}'), { host, 'x-amz-target': 'AmazonSQS.ListQueues' });

  // Assert
  expect(answer.statusCode).toBe(200);
});

test('a request that a web page could send without asking is refused', async () => {
  // Act
  const answer = await post(front.port, Buffer.from('{}'), { 'content-type': 'text/plain', 'x-amz-target': 'AmazonSQS.ListQueues' });

  // Assert
  expect(answer.statusCode).toBe(415);
});

test('a message of 1 MiB passes whole, in its longest JSON form too', async () => {
  // Arrange
  const queueUrl = await createQueue(sqs, 'large');
  const body = '"'.repeat(1_048_576);

  // Act
  await sqs.send(new SendMessageCommand({ QueueUrl: queueUrl, MessageBody: body }));

  // Assert
  const [received] = await receive(queueUrl);
  expect(received?.body === body).toBe(true);
});

test('a message of 1 MiB and one byte is refused', async () => {
  // Arrange
  const queueUrl = await createQueue(sqs, 'too-large');

  // Act
  const sent = sqs.send(new SendMessageCommand({ QueueUrl: queueUrl, MessageBody: 'x'.repeat(1_048_577) }));

  // Assert
  await expect(sent).rejects.toThrow();
  expect(await receive(queueUrl)).toEqual([]);
});

test('a request body over the bound is refused with 413', async () => {
  // Act
  const answer = await post(front.port, Buffer.alloc(3 * 1_048_576, 0x20));

  // Assert
  expect(answer.statusCode).toBe(413);
});

test('GET /health says that the server answers', async () => {
  // Act
  const answer = await fetch(`${endpointOf(front)}/health`);

  // Assert
  expect(answer.status).toBe(200);
});

test('a taken port is an error that names it', async () => {
  // Arrange
  const { buildQueueApp } = await loadCompanion();

  // Act
  const second = startQueueFront({ app: await buildQueueApp(), port: front.port });

  // Assert
  await expect(second).rejects.toThrow(new RegExp(`cannot listen on port ${String(front.port)}.*in use`));
});

async function freshFront(options: { maxWaitingPolls?: number } = {}): Promise<QueueFront> {
  const { buildQueueApp } = await loadCompanion();
  return startQueueFront({ app: await buildQueueApp(), ...options });
}

function endpointOf({ port }: QueueFront): string {
  return `http://127.0.0.1:${String(port)}`;
}

function longPoll(queueUrl: string): ReceiveMessageCommand {
  return new ReceiveMessageCommand({ QueueUrl: queueUrl, WaitTimeSeconds: 20 });
}

async function receive(queueUrl: string): Promise<{ body: string | undefined; receiveCount: string | undefined }[]> {
  const { Messages = [] } = await sqs.send(
    new ReceiveMessageCommand({ QueueUrl: queueUrl, WaitTimeSeconds: 0, MessageSystemAttributeNames: ['ApproximateReceiveCount'] }),
  );
  return Messages.map((message) => ({ body: message.Body, receiveCount: message.Attributes?.ApproximateReceiveCount }));
}

interface RawAnswer {
  statusCode: number | undefined;
  headers: Record<string, unknown>;
  body: unknown;
}

/** A request as no SDK would send it: any Host header, any bytes. */
function post(port: number, body: Buffer, headers: Record<string, string> = {}): Promise<RawAnswer> {
  const sqsHeaders = { 'content-type': 'application/x-amz-json-1.0', 'x-amz-target': 'AmazonSQS.SendMessage' };
  return new Promise((resolve, reject) => {
    const sent = request({ host: '127.0.0.1', port, method: 'POST', headers: { ...sqsHeaders, ...headers } }, (response) => {
      const chunks: Buffer[] = [];
      response.on('data', (chunk: Buffer) => chunks.push(chunk));
      response.on('end', () => {
        const answer: unknown = JSON.parse(Buffer.concat(chunks).toString('utf8'));
        resolve({ statusCode: response.statusCode, headers: response.headers, body: answer });
      });
    });
    sent.on('error', reject);
    sent.end(body);
  });
}

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
      const answer = target === 'AmazonSQS.ReceiveMessage' ? { Messages: [{ ReceiptHandle: await messages.promise }] } : {};
      return { statusCode: 200, headers: {}, rawPayload: Buffer.from(JSON.stringify(answer)) };
    },
  };
}
