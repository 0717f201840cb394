import type { ReceiveMessageCommandOutput, Message as SqsMessage } from '@aws-sdk/client-sqs';
import { expect, onTestFinished, test } from 'vitest';
import { systemClock, type Clock } from '../../src/clock.ts';
import { createQueueClient } from '../../src/queues/client.ts';
import { createPoller } from '../../src/workers/poller.ts';
import { Journal } from '../support/worker-journal.ts';
import { interceptCommand, refusedConnection, serviceError } from '../support/worker-faults.ts';

/** Tells every delay that is asked for, and lets it pass at once. */
class HastyClock implements Clock {
  readonly delays: number[] = [];
  readonly nowMs = (): number => systemClock.nowMs();
  readonly monotonicMs = (): number => systemClock.monotonicMs();

  schedule(fn: () => void, delayMs: number): () => void {
    this.delays.push(delayMs);
    return systemClock.schedule(fn, 0);
  }
}

type Receive = (nth: number) => Error | SqsMessage[];

/** A poller whose nth receive is answered by `receive`; a receive that gives nothing more ends the test's polls. */
function startPoller(receive: Receive, settings: { random?: () => number; freeSlots?: () => number } = {}) {
  const clock = new HastyClock();
  const receives = new Journal<{ batchSize: number | undefined }>();
  const failures = new Journal<{ error: Error; nextTryInMs: number }>();
  const received = new Journal<SqsMessage>();
  const client = createQueueClient({
    region: 'us-east-1',
    credentials: { accessKeyId: 'test', secretAccessKey: 'test' },
  });
  interceptCommand<{ MaxNumberOfMessages?: number } & { QueueUrl: string }, ReceiveMessageCommandOutput>(
    client,
    'ReceiveMessageCommand',
    (input) => {
      receives.add({ batchSize: input.MaxNumberOfMessages });
      const answer = receive(receives.entries.length);
      return answer instanceof Error
        ? Promise.reject(answer)
        : Promise.resolve({ $metadata: {}, Messages: answer.length === 0 ? undefined : answer });
    },
  );
  const poller = createPoller({
    client,
    queueUrl: 'https://queue.invalid/000000000000/q',
    waitTimeSeconds: 1,
    visibilityTimeoutSeconds: 30,
    clock,
    random: settings.random ?? (() => 0.5),
    freeSlots: settings.freeSlots ?? (() => 10),
    whenFree: () => Promise.resolve(),
    onSign: () => undefined,
    onMessages: (messages) => {
      for (const message of messages) received.add(message);
    },
    onUnwanted: () => Promise.resolve(),
    onReceiveFailed: (error, nextTryInMs) => {
      failures.add({ error, nextTryInMs });
    },
  });
  onTestFinished(async () => {
    await poller.stop(AbortSignal.abort());
    client.destroy();
  });
  poller.start();
  return { poller, clock, receives, failures, received };
}

test.each([
  ['nobody listens', refusedConnection()],
  ['the credentials are refused', serviceError('UnrecognizedClientException', 403)],
  ['the queue does not exist', serviceError('QueueDoesNotExist', 400)],
  ['the service throttles', serviceError('RequestThrottled', 403)],
])('M18 waits longer after each failed receive, up to a bound, when %s', async (_case, error) => {
  const { clock, receives, failures } = startPoller(() => error);

  await receives.when(6);

  // With chance in the middle, three quarters of 1, 2, 4, 4 ... seconds.
  expect(failures.entries.slice(0, 5).map(({ nextTryInMs }) => nextTryInMs)).toEqual([750, 1_500, 3_000, 3_000, 3_000]);
  expect(clock.delays.slice(0, 5)).toEqual([750, 1_500, 3_000, 3_000, 3_000]);
  expect(failures.entries[0]?.error.message).toContain(error.message);
});

test('M18 spreads its tries by chance, but never asks before half of the delay is over', async () => {
  const draws = [0, 0.999, 0];
  const { clock, receives } = startPoller(() => refusedConnection(), { random: () => draws.shift() ?? 0 });

  await receives.when(4);

  expect(clock.delays.slice(0, 3).map(Math.round)).toEqual([500, 1_999, 2_000]);
});

test('M18 asks again without a delay as soon as a receive succeeds, and starts over at the next failure', async () => {
  const answers: (Error | SqsMessage[])[] = [
    refusedConnection(),
    refusedConnection(),
    [{ MessageId: 'm1' }],
    refusedConnection(),
    [],
    refusedConnection(),
  ];
  const { clock, receives, received } = startPoller((nth) => answers[nth - 1] ?? []);

  await receives.when(8);

  expect(clock.delays).toEqual([750, 1_500, 750, 750]);
  expect(received.entries).toEqual([{ MessageId: 'm1' }]);
});

test('never asks for more messages than have a free slot', async () => {
  let free = 12;
  const { receives } = startPoller(
    (nth) => {
      free = nth === 1 ? 3 : 10;
      return [{ MessageId: String(nth) }];
    },
    { freeSlots: () => free },
  );

  await receives.when(3);

  expect(receives.entries.slice(0, 3).map(({ batchSize }) => batchSize)).toEqual([10, 3, 10]);
});

test('M18 a stop cuts the wait after a failure short', async () => {
  const { poller, failures, receives } = startPoller(() => refusedConnection());
  await failures.when(1);

  await poller.stop(new AbortController().signal);
  const asked = receives.entries.length;
  await new Promise(setImmediate);

  expect(receives.entries).toHaveLength(asked);
});
