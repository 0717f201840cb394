import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { SendMessageCommand } from '@aws-sdk/client-sqs';
import { expect, onTestFinished, test } from 'vitest';
import { createQueueClient, type QueueClientOptions } from '../../src/queues/client.ts';

/** A server that answers as the test says, and counts what it was asked. */
async function startServer(answer: 'never' | 'failure' | 'success') {
  let requests = 0;
  const server: Server = createServer((request, response) => {
    requests += 1;
    request.resume();
    if (answer === 'never') return;
    // A wrong MD5 of the body: a client that checked it would fail.
    response.writeHead(answer === 'success' ? 200 : 503, { 'content-type': 'application/x-amz-json-1.0' });
    response.end(JSON.stringify({ MessageId: 'm1', MD5OfMessageBody: '0'.repeat(32) }));
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  return { endpoint: `http://127.0.0.1:${String((server.address() as AddressInfo).port)}`, requests: () => requests };
}

function send(options: QueueClientOptions) {
  const credentials = { accessKeyId: 'test', secretAccessKey: 'test' };
  const client = createQueueClient({ region: 'us-east-1', credentials, ...options });
  onTestFinished(() => {
    client.destroy();
  });
  return client.send(
    new SendMessageCommand({ QueueUrl: 'https://elsewhere.invalid/000000000000/q', MessageBody: 'hello' }),
  );
}

test('sends to its endpoint, whatever host the queue URL names, and trusts no MD5', async () => {
  const server = await startServer('success');

  expect(await send({ endpoint: server.endpoint })).toMatchObject({ MessageId: 'm1' });
  expect(server.requests()).toBe(1);
});

test('gives up on a server that is frozen', async () => {
  const server = await startServer('never');

  await expect(send({ endpoint: server.endpoint, requestTimeoutMs: 50, maxAttempts: 1 })).rejects.toMatchObject({
    name: 'TimeoutError',
  });
  expect(server.requests()).toBe(1);
});

test('tries as often as it was told', async () => {
  const server = await startServer('failure');

  await expect(send({ endpoint: server.endpoint, maxAttempts: 2 })).rejects.toMatchObject({
    $metadata: { httpStatusCode: 503 },
  });
  expect(server.requests()).toBe(2);
});
