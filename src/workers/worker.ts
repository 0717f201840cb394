/**
 * A worker: receives messages of one queue and gets every one of them to its outcome.
 *
 *   start():  poll -> for each message: deliver (pipeline.ts) -> report
 *   stop():   no new receive -> give back what was not started -> let running deliveries finish -> close
 */
import { ChangeMessageVisibilityBatchCommand, type Message as SqsMessage } from '@aws-sdk/client-sqs';
import { messageOf } from '../errors.ts';
import { createAcknowledger } from './acknowledger.ts';
import { createDeadLetters } from './dead-letter.ts';
import { isIntact, toDelivery, type Delivery } from './delivery.ts';
import { resolveWorkerOptions, type ResolvedWorkerOptions, type WorkerOptions } from './options.ts';
import type { Outcome } from './outcome.ts';
import { deliver } from './pipeline.ts';
import type { PipelineDependencies } from './work-context.ts';
import { createPoller, type Poller } from './poller.ts';
import { createScheduler, type Scheduler } from './scheduler.ts';

export interface StopReport {
  /** Message ids whose handlers still ran at the deadline. Their messages come back by themselves. */
  readonly leftovers: readonly string[];
}

export interface Worker {
  /** Begins to receive. Once per worker. */
  start(): void;
  /**
   * Stops receiving and waits for what runs. Calling it again returns the same promise.
   * @param options.deadlineMs how long to wait. Unit: ms. @defaultValue 25000
   */
  stop(options?: { readonly deadlineMs?: number }): Promise<StopReport>;
}

const STOP_DEADLINE_MS = 25_000;

/** @throws {ConfigurationError} listing every wrong option. */
export function createWorker(workerOptions: WorkerOptions): Worker {
  const options = resolveWorkerOptions(workerOptions);
  const scheduler = createScheduler(options.concurrency);
  const pipeline = createPipeline(options);
  const poller = createWorkerPoller(options, scheduler, (messages) => {
    for (const message of messages) {
      if (!isIntact(message)) {
        // As good as a receive that got lost: it comes back, and until then nobody acts on what nobody sent.
        options.log.warn(
          { messageId: message.MessageId },
          'a message was corrupted on its way and is left to come back',
        );
        continue;
      }
      const delivery = toDelivery(message);
      scheduler.start(delivery.messageId, () => deliverAndReport(delivery, options, pipeline));
    }
  });
  let stopping: Promise<StopReport> | undefined;

  return {
    start() {
      if (stopping === undefined) poller.start();
    },
    stop({ deadlineMs = STOP_DEADLINE_MS } = {}) {
      stopping ??= drain({ options, scheduler, poller, deadlineMs });
      return stopping;
    },
  };
}

function createPipeline(options: ResolvedWorkerOptions): PipelineDependencies {
  const { client, queueUrl, deadLetterQueueUrl, queue, store, deleteBatchWindowMs } = options;
  const { clock, random } = store;
  return {
    options,
    effects: store.effectRecords(options.lease),
    directEffects: store.directEffects(options.lease),
    acknowledger: createAcknowledger({
      client,
      queueUrl,
      clock,
      random,
      batchWindowMs: deleteBatchWindowMs,
      visibilityAnswerMs: options.lease.heartbeatMs,
    }),
    deadLetters: createDeadLetters({ client, deadLetterQueueUrl, queue, store, clock, random }),
  };
}

function createWorkerPoller(
  options: ResolvedWorkerOptions,
  scheduler: Scheduler,
  onMessages: (messages: readonly SqsMessage[]) => void,
): Poller {
  const { log, events } = options;
  return createPoller({
    client: options.pollingClient,
    queueUrl: options.queueUrl,
    waitTimeSeconds: options.waitTimeSeconds,
    visibilityTimeoutSeconds: options.visibilityTimeoutSeconds,
    clock: options.store.clock,
    random: options.store.random,
    freeSlots: () => scheduler.freeSlots,
    whenFree: () => scheduler.whenFree(),
    onMessages,
    onUnwanted: (messages) => giveBackUnstarted(messages, options),
    onReceiveFailed(error, nextTryInMs) {
      log.warn({ err: error, nextTryInMs }, 'receiving failed');
      tell(() => events.onReceiveFailed?.(error, nextTryInMs));
    },
  });
}

async function deliverAndReport(
  delivery: Delivery,
  options: ResolvedWorkerOptions,
  pipeline: PipelineDependencies,
): Promise<void> {
  const { clock } = options.store;
  const startedMonoMs = clock.monotonicMs();
  tell(() => options.events.onDelivery?.(delivery));
  const { key, outcome, handlerEnded } = await deliver(delivery, pipeline);
  const durationMs = Math.round(clock.monotonicMs() - startedMonoMs);
  const fields = { key, messageId: delivery.messageId, outcome: outcome.kind, durationMs, ...reasonOf(outcome) };
  options.log[levelOf(outcome)](fields, 'delivery settled');
  tell(() => options.events.onOutcome?.({ delivery, key, outcome, durationMs }));
  // A handler that ignores its signal keeps its slot: otherwise such handlers would pile up without a bound.
  await handlerEnded;
}

async function drain(context: {
  readonly options: ResolvedWorkerOptions;
  readonly scheduler: Scheduler;
  readonly poller: Poller;
  readonly deadlineMs: number;
}): Promise<StopReport> {
  const { scheduler, poller } = context;
  const deadline = new AbortController();
  const reached = new Promise<void>((resolve) => {
    deadline.signal.addEventListener('abort', () => {
      resolve();
    });
  });
  const cancel = context.options.store.clock.schedule(() => {
    deadline.abort();
  }, context.deadlineMs);
  await Promise.race([Promise.all([poller.stop(deadline.signal), scheduler.whenIdle()]), reached]);
  cancel();
  return { leftovers: scheduler.running() };
}

/** Makes messages that were never started visible at once, for another worker to take. */
async function giveBackUnstarted(messages: readonly SqsMessage[], options: ResolvedWorkerOptions): Promise<void> {
  const Entries = messages.map((message, index) => ({
    Id: String(index),
    ReceiptHandle: message.ReceiptHandle ?? '',
    VisibilityTimeout: 0,
  }));
  try {
    await options.client.send(new ChangeMessageVisibilityBatchCommand({ QueueUrl: options.queueUrl, Entries }));
  } catch (error) {
    options.log.warn({ err: error }, 'unstarted messages could not be given back; they come back by themselves');
  }
}

function levelOf(outcome: Outcome): 'debug' | 'warn' {
  const isQuiet = outcome.kind === 'completed' || outcome.kind === 'replayed' || outcome.kind === 'busy';
  return isQuiet ? 'debug' : 'warn';
}

/** What people want to read in the log. Responses and payloads stay out of it. */
function reasonOf(outcome: Outcome): Record<string, unknown> {
  if ('error' in outcome) return { error: outcome.error };
  if ('code' in outcome) return { code: outcome.code, reason: outcome.reason };
  return 'reason' in outcome ? { reason: outcome.reason } : {};
}

function tell(listener: () => unknown): void {
  try {
    // A listener that was declared void may be async all the same: its rejection would end the process.
    void Promise.resolve(listener()).catch(warnOf);
  } catch (error) {
    warnOf(error);
  }
}

/** A listener is a guest: what it does wrong must not touch a delivery. */
function warnOf(error: unknown): void {
  queueMicrotask(() => {
    process.emitWarning(`a worker listener threw: ${messageOf(error)}`);
  });
}
