/**
 * Receives messages, and nothing else: `sqs-consumer` polls; deleting, visibility and errors are ours.
 *
 * What its safe use needs, each learnt from its source: it never deletes (`shouldDeleteMessages: false`), its handler
 * never throws, one object serves one start, errors are answered with a back-off of ours (its own would poll again at
 * once), and a stop waits for the open poll and gives back what that still brings.
 */
import type { Message as SqsMessage, SQSClient } from '@aws-sdk/client-sqs';
import { Consumer } from 'sqs-consumer';
import type { Backoff } from '../backoff.ts';
import { sleep, type Clock, type Random } from '../clock.ts';
import { MAX_BATCH_ENTRIES } from '../messages/limits.ts';

export interface PollerOptions {
  /** For polling alone: long polls would starve other requests of sockets. */
  readonly client: SQSClient;
  readonly queueUrl: string;
  readonly waitTimeSeconds: number;
  readonly visibilityTimeoutSeconds: number;
  readonly clock: Clock;
  readonly random: Random;
  /** Called whenever the loop does something: the sign that it lives. */
  onSign(): void;
  /** Slots that are free now; never called with a stop under way. */
  freeSlots(): number;
  whenFree(): Promise<void>;
  /** Called with messages that fit into the free slots. */
  onMessages(messages: readonly SqsMessage[]): void;
  /** Called with messages that arrived after the stop: they were never started. */
  onUnwanted(messages: readonly SqsMessage[]): Promise<void>;
  onReceiveFailed(error: Error, nextTryInMs: number): void;
}

export interface Poller {
  start(): void;
  /** Resolves when no poll is open any more; cuts it off, and the client with it, when `deadline` aborts. */
  stop(deadline: AbortSignal): Promise<void>;
}

const ERROR_BACKOFF: Backoff = { baseMs: 500, capMs: 4_000 };
const STATE_CHECK_MS = 20;
const SYSTEM_ATTRIBUTES = [
  'ApproximateReceiveCount',
  'SentTimestamp',
  'ApproximateFirstReceiveTimestamp',
  'AWSTraceHeader',
  'MessageGroupId',
] as const;

export function createPoller(options: PollerOptions): Poller {
  const { clock, random } = options;
  const stopping = new AbortController();
  const backoff = createReceiveBackoff(random);

  const consumer = Consumer.create({
    sqs: options.client,
    queueUrl: options.queueUrl,
    waitTimeSeconds: options.waitTimeSeconds,
    visibilityTimeout: options.visibilityTimeoutSeconds,
    batchSize: Math.min(MAX_BATCH_ENTRIES, options.freeSlots()),
    messageAttributeNames: ['All'],
    messageSystemAttributeNames: [...SYSTEM_ATTRIBUTES],
    shouldDeleteMessages: false,
    authenticationErrorTimeout: 0,
    extendedAWSErrors: true,
    // Order is kept by group-lanes.ts, not by the poller.
    suppressFifoWarning: true,
    preReceiveMessageCallback: async () => {
      options.onSign();
      if (backoff.pauseMs > 0) await sleep(clock, backoff.pauseMs, stopping.signal);
      stopping.signal.throwIfAborted();
    },
    handleMessageBatch: async (messages) => {
      options.onSign();
      backoff.succeeded();
      if (stopping.signal.aborted) {
        await options.onUnwanted(messages);
        return;
      }
      options.onMessages(messages);
      await options.whenFree();
      askForFreeSlots();
    },
  });

  /** The next receive asks for no more than can start at once, so nothing waits in memory while its visibility runs. */
  function askForFreeSlots(): void {
    consumer.updateOption('batchSize', Math.min(MAX_BATCH_ENTRIES, options.freeSlots()));
  }

  consumer.on('empty', () => {
    options.onSign();
    backoff.succeeded();
    askForFreeSlots();
  });
  consumer.on('error', (error) => {
    options.onSign();
    if (stopping.signal.aborted) return;
    backoff.failed();
    options.onReceiveFailed(error, Math.round(backoff.pauseMs));
  });

  return {
    start() {
      consumer.start();
    },
    stop(deadline) {
      stopping.abort();
      return endPolls(consumer, options, deadline);
    },
  };
}

async function endPolls(consumer: Consumer, options: PollerOptions, deadline: AbortSignal): Promise<void> {
  consumer.stop();
  try {
    // The object tells no end of its last poll that could be awaited without a gap, so its state is looked at.
    while (consumer.status.isPolling) await sleep(options.clock, STATE_CHECK_MS, deadline);
  } catch {
    // A poll that is cut off may take a message along for one visibility time-out: only when no time is left.
    options.client.destroy();
  }
}

/** How long to wait before the next receive: nothing after a good one, longer with each failure in a row. */
function createReceiveBackoff(random: Random): { readonly pauseMs: number; succeeded(): void; failed(): void } {
  let failuresInARow = 0;
  let pauseMs = 0;
  return {
    get pauseMs() {
      return pauseMs;
    },
    succeeded() {
      failuresInARow = 0;
      pauseMs = 0;
    },
    failed() {
      failuresInARow += 1;
      const ceiling = Math.min(ERROR_BACKOFF.capMs, ERROR_BACKOFF.baseMs * 2 ** Math.min(failuresInARow, 10));
      // At least half of it: a queue that is down must not be asked more often because chance was kind.
      pauseMs = ceiling / 2 + (random() * ceiling) / 2;
    },
  };
}
