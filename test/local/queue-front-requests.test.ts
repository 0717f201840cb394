import { GetQueueUrlCommand, ListQueuesCommand, SendMessageCommand, type SQSClient } from '@aws-sdk/client-sqs';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { loadCompanion } from '../../src/local/companion.ts';
import { startQueueFront, type QueueFront } from '../../src/local/queue-front.ts';
import { createQueue, sqsClient } from './aws-clients.ts';
import { endpointOf, freshFront, post, receive } from './fronts.ts';
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
  expect(await receive(sqs, created)).toEqual([]);
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
  expect(await receive(sqs, queueUrl)).toEqual([]);
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

test.each(['localhost', '127.0.0.1:1', '[::1]:1', 'sqs.us-east-1.localhost:1'])(
  'a request for the loopback host %s is served',
  async (host) => {
    // Act
    const answer = await post(front.port, Buffer.from('{}'), { host, 'x-amz-target': 'AmazonSQS.ListQueues' });

    // Assert
    expect(answer.statusCode).toBe(200);
  },
);

test('a request that a web page could send without asking is refused', async () => {
  // Act
  const answer = await post(front.port, Buffer.from('{}'), {
    'content-type': 'text/plain',
    'x-amz-target': 'AmazonSQS.ListQueues',
  });

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
  const [received] = await receive(sqs, queueUrl);
  expect(received?.body === body).toBe(true);
});

test('a message of 1 MiB and one byte is refused', async () => {
  // Arrange
  const queueUrl = await createQueue(sqs, 'too-large');

  // Act
  const sent = sqs.send(new SendMessageCommand({ QueueUrl: queueUrl, MessageBody: 'x'.repeat(1_048_577) }));

  // Assert
  await expect(sent).rejects.toThrow();
  expect(await receive(sqs, queueUrl)).toEqual([]);
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
