import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { POINTS_EARNED } from '../../examples/contract.ts';
import { createMailHandler } from '../../examples/outside-call.ts';
import {
  createPollingClient,
  createProducer,
  createQueueClient,
  createQueuePair,
  createStore,
  createWorker,
  type Store,
} from '../../src/index.ts';
import { until } from '../support/until.ts';
import { Checkout } from './local-backend.ts';

let checkout: Checkout;
let store: Store;
let sqs: { endpoint: string; region: string; credentials: { accessKeyId: string; secretAccessKey: string } };

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

describe('the example worker and producer', () => {
  it('add the points of each purchase once, and the worker ends when it is told to', async () => {
    // Arrange
    const worker = await checkout.start(['examples/worker.ts']);
    const produce = (): Promise<boolean> => checkout.run('node examples/producer.ts').then(({ code }) => code === 0);
    // Fails for as long as the worker has not made the queue.
    await until(produce);
    const completed = (): boolean => ['p-1001', 'p-1002'].every((key) => worker.lines.includes(`${key} completed`));
    await until(completed);

    // Act
    const answer = await checkout.run('node examples/producer.ts');
    await until(() => worker.lines.includes('p-1001 replayed') && worker.lines.includes('p-1002 replayed'));
    const stopped = worker.child.stop({ graceMs: 15_000 });
    // A stop waits for the open poll, which ends as soon as a message comes.
    await checkout.run('node examples/producer.ts');
    await stopped;

    // Assert
    expect(answer).toEqual({ code: 0, output: 'sent\nsent\nsent' });
    expect(worker.lines.filter((line) => line.endsWith(' completed')).toSorted()).toEqual([
      'p-1001 completed',
      'p-1002 completed',
    ]);
    expect(await worker.child.exited).toEqual({ code: 0, signal: null });
    expect((await store.get({ PK: 'MEMBER#m-7', SK: 'POINTS' }))?.['balance']).toBe(42);
  });
});

describe('the example of an outside call', () => {
  it('repeats a call without an answer under the same idempotency key', async () => {
    // Arrange
    const client = createQueueClient(sqs);
    const { queue, deadLetterQueue } = await createQueuePair(client, 'mails');
    const keys: string[] = [];
    const outcomes: string[] = [];
    const handler = createMailHandler({
      send: (_memberId, _text, { idempotencyKey }) => {
        keys.push(idempotencyKey);
        if (keys.length === 1) return Promise.reject(new Error('the answer was lost'));
        return Promise.resolve({ mailId: 'mail-1' });
      },
    });
    const worker = createWorker({
      queue: queue.name,
      queueUrl: queue.url,
      deadLetterQueueUrl: deadLetterQueue.url,
      client,
      pollingClient: createPollingClient(sqs),
      store,
      handlers: [handler],
      waitTimeSeconds: 1,
      retryBackoff: { baseMs: 1, capMs: 1 },
      events: { onOutcome: ({ outcome }) => void outcomes.push(outcome.kind) },
    });

    // Act
    await worker.start();
    const payload = { purchaseId: 'p-1', memberId: 'm-9', points: 5 };
    await createProducer({ client, queueUrl: queue.url }).send(POINTS_EARNED, payload);
    await until(() => outcomes.includes('completed'));
    await worker.stop();
    client.destroy();

    // Assert
    expect(outcomes).toEqual(['retry', 'completed']);
    expect(new Set(keys).size).toBe(1);
    expect(await store.get({ PK: 'MEMBER#m-9', SK: 'MAIL#p-1' })).toMatchObject({ mailId: 'mail-1' });
  });
});
