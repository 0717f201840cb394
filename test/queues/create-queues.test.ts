import {
  CreateQueueCommand,
  GetQueueAttributesCommand,
  ListQueuesCommand,
  SetQueueAttributesCommand,
  type SQSClient,
} from '@aws-sdk/client-sqs';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { BackendError } from '../../src/errors.ts';
import { startLocalBackends, type LocalBackends } from '../../src/local/backends.ts';
import { createQueueClient } from '../../src/queues/client.ts';
import { createQueuePair, findQueue } from '../../src/queues/create-queues.ts';
import { deadLetterQueueName, FLOWS, QUEUE_DEFAULTS, queueName } from '../../src/queues/topology.ts';

const LOCAL = { region: 'us-east-1', credentials: { accessKeyId: 'test', secretAccessKey: 'test' } };

let backends: LocalBackends;
let client: SQSClient;

beforeAll(async () => {
  backends = await startLocalBackends();
  client = createQueueClient({ ...LOCAL, endpoint: backends.sqsEndpoint });
});
afterAll(async () => {
  client.destroy();
  await backends.stop();
});

async function attributesOf(url: string): Promise<Record<string, string>> {
  const command = new GetQueueAttributesCommand({ QueueUrl: url, AttributeNames: ['All'] });
  return (await client.send(command)).Attributes ?? {};
}

test('creates a queue and its dead-letter queue, joined by a generous redrive policy', async () => {
  const pair = await createQueuePair(client, 'fresh');

  const [queue, deadLetters] = [await attributesOf(pair.queue.url), await attributesOf(pair.deadLetterQueue.url)];
  expect(pair).toMatchObject({ queue: { name: 'fresh' }, deadLetterQueue: { name: 'fresh-dlq' }, created: true });
  expect(queue).toMatchObject({ VisibilityTimeout: '30', MessageRetentionPeriod: '1209600' });
  expect(deadLetters['MessageRetentionPeriod']).toBe('1209600');
  expect(JSON.parse(queue['RedrivePolicy'] ?? '')).toEqual({
    deadLetterTargetArn: deadLetters['QueueArn'],
    maxReceiveCount: QUEUE_DEFAULTS.maxReceiveCount,
  });
});

test('leaves a pair as it is when it is there already, whatever its settings', async () => {
  const first = await createQueuePair(client, 'kept');
  await client.send(
    new SetQueueAttributesCommand({ QueueUrl: first.queue.url, Attributes: { VisibilityTimeout: '77' } }),
  );

  const second = await createQueuePair(client, 'kept', { ...QUEUE_DEFAULTS, maxReceiveCount: 3 });

  expect(second).toEqual({
    ...first,
    created: false,
    queue: { ...first.queue, created: false },
    deadLetterQueue: { ...first.deadLetterQueue, created: false },
  });
  const attributes = await attributesOf(first.queue.url);
  expect(attributes['VisibilityTimeout']).toBe('77');
  expect(attributes['RedrivePolicy']).toContain('100');
});

test('adds the half that is missing', async () => {
  await client.send(new CreateQueueCommand({ QueueName: 'half-dlq' }));

  const pair = await createQueuePair(client, 'half');

  expect(pair).toMatchObject({ created: true, queue: { created: true }, deadLetterQueue: { created: false } });
});

test('may be run by many at once', async () => {
  const pairs = await Promise.all(Array.from({ length: 8 }, () => createQueuePair(client, 'shared')));

  expect(new Set(pairs.map(({ queue }) => queue.url)).size).toBe(1);
  const { QueueUrls = [] } = await client.send(new ListQueuesCommand({ QueueNamePrefix: 'shared' }));
  expect(QueueUrls).toHaveLength(2);
});

test('finds a queue by its name, and says what to do when there is none', async () => {
  const { queue } = await createQueuePair(client, 'found');

  expect(await findQueue(client, 'found')).toEqual({ name: 'found', url: queue.url });
  const missing = await findQueue(client, 'nowhere').catch((error: unknown) => error);
  expect(missing).toBeInstanceOf(BackendError);
  const message = 'there is no queue "nowhere": run "onlyonce bootstrap" first';
  expect(missing).toMatchObject({ reason: 'notFound', retryable: false, message });
});

test('does not take a server that cannot be reached for a queue that does not exist', async () => {
  const nobody = createQueueClient({ ...LOCAL, endpoint: 'http://127.0.0.1:1', maxAttempts: 1 });

  await expect(findQueue(nobody, 'found')).rejects.toMatchObject({ code: 'ECONNREFUSED' });
  await expect(createQueuePair(nobody, 'found')).rejects.toMatchObject({ code: 'ECONNREFUSED' });
  nobody.destroy();
});

test('names queues after their flow, with a prefix if one is given', () => {
  expect(FLOWS.map((flow) => queueName(flow))).toContain('onlyonce-charges');
  expect(queueName('charges', 'dev-')).toBe('dev-onlyonce-charges');
  expect(deadLetterQueueName(queueName('charges'))).toBe('onlyonce-charges-dlq');
});
