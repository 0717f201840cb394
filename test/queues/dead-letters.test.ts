import {
  type ChangeMessageVisibilityBatchCommandInput,
  type ChangeMessageVisibilityBatchCommandOutput,
  type SQSClient,
} from '@aws-sdk/client-sqs';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { startLocalBackends, type LocalBackends } from '../../src/local/backends.ts';
import { createQueueClient } from '../../src/queues/client.ts';
import { eachDeadLetter, firstOfCopies, readDeadLetters } from '../../src/queues/dead-letters.ts';
import { readDepth } from '../../src/queues/depth.ts';
import { interceptCommand } from '../support/worker-faults.ts';
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

function queuesWith(bodies: readonly string[]): ReturnType<typeof queuesWithLetters> {
  opened += 1;
  return queuesWithLetters(client, `letters${String(opened)}`, bodies);
}

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

test('hides what it looks at for as long as that takes', async () => {
  // Arrange
  const { from } = await queuesWith(['a', 'b', 'c']);
  const clock = new JumpingClock();
  const hidden: number[] = [];
  interceptCommand<ChangeMessageVisibilityBatchCommandInput, ChangeMessageVisibilityBatchCommandOutput>(
    client,
    'ChangeMessageVisibilityBatchCommand',
    (input, send) => {
      if (input.QueueUrl === from) hidden.push(...(input.Entries ?? []).map((entry) => entry.VisibilityTimeout ?? -1));
      return send();
    },
  );

  // Act: somebody reads the first part for 20 seconds.
  for await (const part of eachDeadLetter(client, from, { limit: 10, clock })) {
    expect(part.length).toBeGreaterThan(0);
    clock.jump(20_000);
  }

  // Assert: hidden anew for 30 s, and shown at the end.
  expect(hidden).toEqual([30, 30, 30, 0, 0, 0]);
});

test('a look that is broken off shows again what it has seen', async () => {
  const { from } = await queuesWith(['a', 'b']);

  for await (const part of eachDeadLetter(client, from, { limit: 10 })) {
    expect(part).toHaveLength(2);
    break;
  }

  expect(await readDepth(client, from)).toEqual({ visible: 2, inFlight: 0, delayed: 0 });
});

test('tells the first of several copies from the others, and nothing of letters without a notice', () => {
  const isFirst = firstOfCopies();
  const letters = ['m1', 'm2', 'm1', undefined, undefined].map((original) => ({ original }));

  expect(letters.map((letter) => isFirst(letter))).toEqual([true, true, false, true, true]);
});
