import { createHmac } from 'node:crypto';
import { once } from 'node:events';
import { connect, type AddressInfo } from 'node:net';
import type { DeleteMessageBatchCommandInput, DeleteMessageBatchCommandOutput } from '@aws-sdk/client-sqs';
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import { addPoints, createWebhookServer, POINTS_EVENT } from '../../examples/webhook-server.ts';
import {
  createProducer,
  createQueueClient,
  createStore,
  findQueue,
  type Producer,
  type QueueClientOptions,
  type Store,
} from '../../src/index.ts';
import { interceptCommand } from '../support/worker-faults.ts';
import { workerLab } from '../support/worker-fixture.ts';
import { until } from '../support/until.ts';
import { Checkout, type Terminal } from './local-backend.ts';

const SECRET = 'a secret of the test';
const lab = workerLab();

interface Sending {
  readonly body?: string;
  readonly signature?: string;
  readonly method?: string;
  readonly path?: string;
}

function eventBody(id: string, memberId: string, points = 5): string {
  return JSON.stringify({ id, memberId, points });
}

function sign(body: string): string {
  return `sha256=${createHmac('sha256', SECRET).update(body).digest('hex')}`;
}

/** @returns the status of the answer. */
async function post(origin: string, sending: Sending): Promise<number> {
  const { body = '', signature = sign(body), method = 'POST', path = '/webhook' } = sending;
  const content = method === 'POST' ? { body } : {};
  const response = await fetch(`${origin}${path}`, { method, headers: { 'x-signature': signature }, ...content });
  return response.status;
}

/** In front of a queue of the test. */
async function serve(producer: Producer): Promise<string> {
  const server = createWebhookServer(producer, SECRET);
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  return `http://127.0.0.1:${String((server.address() as AddressInfo).port)}`;
}

describe('the webhook receiver as a program', () => {
  let checkout: Checkout;
  let store: Store;
  let sqs: QueueClientOptions;

  beforeAll(async () => {
    checkout = new Checkout();
    const variables = await checkout.up();
    const shared = { region: 'us-east-1', credentials: { accessKeyId: 'local', secretAccessKey: 'local' } };
    sqs = { ...shared, endpoint: variables['AWS_ENDPOINT_URL_SQS'] ?? '' };
    store = createStore({ ...shared, endpoint: variables['AWS_ENDPOINT_URL_DYNAMODB'] ?? '' });
  });
  afterAll(async () => {
    store.close();
    await checkout[Symbol.asyncDispose]();
  });

  function start(): Promise<Terminal> {
    return checkout.start(['examples/webhook-receiver.ts'], {
      isReady: (line) => line.startsWith('listening'),
      variables: { WEBHOOK_SECRET: SECRET, PORT: '0' },
    });
  }

  it('acts once per event id when each event is sent eight times at once, and ends when it is told to', async () => {
    // Arrange
    const receiver = await start();
    const [, address, port] = /address: '(\S+)'.* port: (\d+)/.exec(receiver.lines.join('\n')) ?? [];
    const origin = `http://127.0.0.1:${String(port)}`;
    const ids = ['e1', 'e2', 'e3', 'e4', 'e5'];
    const sendings = Array.from({ length: 8 }, () => ids.map((id) => eventBody(id, 'm-1'))).flat();

    // Act
    const answers = await Promise.all(sendings.map((body) => post(origin, { body })));
    const settled = (): number => receiver.lines.filter((line) => / (?:completed|replayed)$/.test(line)).length;
    await until(() => settled() === sendings.length);
    const stopped = receiver.child.stop({ graceMs: 15_000 });
    // A stop waits for the open poll, which ends as soon as a message comes.
    const client = createQueueClient(sqs);
    const { url } = await findQueue(client, 'webhooks');
    await createProducer({ client, queueUrl: url }).send(POINTS_EVENT, { id: 'late', memberId: 'm-2', points: 1 });
    client.destroy();
    await stopped;

    // Assert
    expect([address, new Set(answers)]).toEqual(['127.0.0.1', new Set([202])]);
    expect(receiver.lines.filter((line) => line.endsWith(' completed')).toSorted()).toEqual(
      ids.map((id) => `${id} completed`),
    );
    expect((await store.get({ PK: 'MEMBER#m-1', SK: 'POINTS' }))?.['balance']).toBe(25);
    expect(await receiver.child.exited).toEqual({ code: 0, signal: null });
  });

  it('does not start without a secret', async () => {
    const { code, output } = await checkout.run('node examples/webhook-receiver.ts');

    expect([code, output]).toEqual([1, expect.stringContaining('set WEBHOOK_SECRET') as string]);
  });
});

describe('the webhook server', () => {
  it('acts once on an event that its queue delivers twice', async () => {
    // Arrange
    const bench = await lab.open({ visibilityTimeoutSeconds: 1 });
    const origin = await serve(createProducer({ client: bench.client, queueUrl: bench.queueUrl }));
    let dropped = 0;
    const run = bench.run({
      handlers: [addPoints],
      visibilityTimeoutSeconds: 1,
      lease: { leaseMs: 600, heartbeatMs: 150 },
      prepare: ({ client }) => {
        interceptCommand<DeleteMessageBatchCommandInput, DeleteMessageBatchCommandOutput>(
          client,
          'DeleteMessageBatchCommand',
          (input, send) => {
            dropped += 1;
            // The first one is answered, and never comes to the queue.
            const Successful = (input.Entries ?? []).map(({ Id }) => ({ Id }));
            return dropped > 1 ? send() : Promise.resolve({ $metadata: {}, Successful, Failed: [] });
          },
        );
      },
    });

    // Act
    const status = await post(origin, { body: eventBody('e1', bench.queue) });
    const [replayed] = await run.when('replayed');

    // Assert
    expect([status, replayed?.delivery.receiveCount, run.tally()]).toEqual([202, 2, { completed: 1, replayed: 1 }]);
    expect((await bench.store.get({ PK: `MEMBER#${bench.queue}`, SK: 'POINTS' }))?.['balance']).toBe(5);
  });

  it('dead-letters another event under an id that was used', async () => {
    const bench = await lab.open();
    const origin = await serve(createProducer({ client: bench.client, queueUrl: bench.queueUrl }));
    const run = bench.run({ handlers: [addPoints] });
    await post(origin, { body: eventBody('e1', bench.queue, 5) });
    await run.when('completed');

    const status = await post(origin, { body: eventBody('e1', bench.queue, 500) });
    await run.when('conflict');

    expect([status, (await bench.deadLetters()).length]).toEqual([202, 1]);
    expect((await bench.store.get({ PK: `MEMBER#${bench.queue}`, SK: 'POINTS' }))?.['balance']).toBe(5);
  });

  const good = eventBody('e1', 'm-1');
  const large = JSON.stringify({ id: 'e1', memberId: 'm'.repeat(70_000), points: 1 });
  it.each<[string, number, Sending]>([
    ['no signature', 401, { body: good, signature: '' }],
    ['the signature of another body', 401, { body: good, signature: sign(`${good} `) }],
    ['a body that is no JSON', 400, { body: 'points!' }],
    ['an event without an id', 400, { body: JSON.stringify({ memberId: 'm-1', points: 5 }) }],
    ['an event with an empty id', 400, { body: eventBody('', 'm-1') }],
    ['a key that SQS would not carry', 400, { body: eventBody('e\u0001', 'm-1') }],
    ['a body over 64 KiB', 413, { body: large }],
    ['another method', 405, { method: 'GET' }],
    ['another path', 404, { body: good, path: '/' }],
  ])('answers %s with %i, and sends nothing', async (_case, status, sending) => {
    const bench = await lab.open();
    const origin = await serve(createProducer({ client: bench.client, queueUrl: bench.queueUrl }));

    const answer = await post(origin, sending);

    expect([answer, await bench.depth()]).toEqual([status, 0]);
  });

  it('does not wait for the end of a body that is too large', async () => {
    // Arrange
    const bench = await lab.open();
    const origin = await serve(createProducer({ client: bench.client, queueUrl: bench.queueUrl }));
    const socket = connect(Number(new URL(origin).port), '127.0.0.1');
    socket.on('error', () => undefined);
    onTestFinished(() => void socket.destroy());

    // Act: a gigabyte is promised, and little more than 64 KiB of it are sent.
    socket.write(
      `POST /webhook HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000000000\r\n\r\n${'x'.repeat(70_000)}`,
    );
    const [answer] = (await once(socket, 'data')) as [Buffer];

    // Assert
    expect(answer.toString()).toMatch(/^HTTP\/1\.1 413 [^]*^connection: close/im);
  });

  it('answers 503 while the queue takes nothing, so that the sender tries again', async () => {
    const refusing: Producer = {
      send: () =>
        Promise.resolve({ kind: 'failed', index: 0, key: 'e1', code: 'connection', retryable: true, reason: 'down' }),
      sendBatch: () => Promise.resolve([]),
    };
    const origin = await serve(refusing);

    expect(await post(origin, { body: good })).toBe(503);
  });
});
