/**
 * A worker: receives messages of one queue and gets every one of them to its outcome.
 *
 *   start():  check the queue -> poll -> for each message: intake.ts -> deliver (pipeline.ts) -> report
 *   quiet():  no new receive; what runs goes on. resume() receives again
 *   stop():   no new receive -> give back what was not started -> let running deliveries finish -> close
 */
import { ConfigurationError } from '../errors.ts';
import { createAcknowledger } from './acknowledger.ts';
import { createDeadLetters } from './dead-letter.ts';
import { createEventHub, type EventHub, type WorkerEventMap, type WorkerListener } from './events.ts';
import { createIntake, type Intake } from './intake.ts';
import { createLiveness, type Liveness, type LivenessState } from './liveness.ts';
import { resolveWorkerOptions, type ResolvedWorkerOptions, type WorkerOptions } from './options.ts';
import { createPoller, type Poller } from './poller.ts';
import { findQueueRuleFaults, readQueueFacts } from './queue-rules.ts';
import { createScheduler, type Scheduler } from './scheduler.ts';
import type { PipelineDependencies } from './work-context.ts';

/** What a stop could not wait for. */
export interface StopReport {
  /** Message ids whose handlers still ran at the deadline. Their messages come back by themselves. */
  readonly leftovers: readonly string[];
}

/** What a health check wants to know of a worker. */
export interface WorkerHealth {
  readonly state: 'new' | LivenessState | 'stopping';
  /** How long the poll loop gave no sign of life. Unit: ms. */
  readonly silentForMs: number;
  /** Deliveries at work. */
  readonly running: number;
}

/** Receives the messages of one queue and gets each of them to its outcome. */
export interface Worker {
  /**
   * Begins to receive. Calling it again returns the same promise.
   * @throws {ConfigurationError} when the queue's settings and the worker's do not fit; nothing was received then.
   */
  start(): Promise<void>;
  /**
   * Stops receiving and waits for what runs. Calling it again returns the same promise. Safe while it starts.
   * @param options.deadlineMs how long to wait. Unit: ms. @defaultValue 25000
   */
  stop(options?: { readonly deadlineMs?: number }): Promise<StopReport>;
  /** Receives no more until `resume`. Resolves when no receive is open; what runs goes on. */
  quiet(): Promise<void>;
  /** Receives again after `quiet`. */
  resume(): void;
  /** For a health check: a worker that is `stalled` should be replaced. */
  readonly health: WorkerHealth;
  /** @returns ends the listening. */
  on<Name extends keyof WorkerEventMap>(name: Name, listener: WorkerListener<Name>): () => void;
}

const STOP_DEADLINE_MS = 25_000;

/** @throws {ConfigurationError} listing every wrong option. */
export function createWorker(workerOptions: WorkerOptions): Worker {
  const options = resolveWorkerOptions(workerOptions);
  const hub = createEventHub(options.events);
  const scheduler = createScheduler(options.concurrency);
  const intake = createIntake({ options, pipeline: createPipeline(options, scheduler), scheduler, hub });
  let poller: Poller | undefined;
  /** Pollers that were told to stop and may still have a receive open. */
  const ending = new Set<Promise<void>>();
  let starting: Promise<void> | undefined;
  let stopping: Promise<StopReport> | undefined;
  let isQuiet = false;
  const liveness = watchedLoop({ options, scheduler, hub, isQuiet: () => isQuiet || poller === undefined });

  async function receive(): Promise<void> {
    // With no slot free it would ask for none, which the poller takes for one.
    await scheduler.whenFree();
    if (stopping !== undefined || isQuiet || poller !== undefined) return;
    poller = createWorkerPoller({ options, scheduler, hub, intake, liveness });
    poller.start();
    liveness.watch();
  }

  async function start(): Promise<void> {
    await checkQueue(options);
    await receive();
  }

  /** Resolves when no receive is open any more, also none of before. */
  async function endPolling(deadline: AbortSignal): Promise<void> {
    const running = poller;
    poller = undefined;
    if (running !== undefined) {
      const end = running.stop(deadline).finally(() => ending.delete(end));
      ending.add(end);
    }
    await Promise.all(ending);
  }

  async function stop(deadlineMs: number): Promise<StopReport> {
    liveness.close();
    return drain({ options, scheduler, intake, deadlineMs, endPolling });
  }

  return {
    start: () => (starting ??= start()),
    stop: ({ deadlineMs = STOP_DEADLINE_MS } = {}) => (stopping ??= stop(deadlineMs)),
    async quiet() {
      isQuiet = true;
      await endPolling(NEVER);
    },
    resume() {
      isQuiet = false;
      // Before the start has looked at the queue, it is the start that begins to receive.
      if (starting !== undefined) starting.then(receive).catch(() => undefined);
    },
    get health() {
      const state: WorkerHealth['state'] =
        stopping !== undefined ? 'stopping' : starting === undefined ? 'new' : liveness.state;
      return { state, silentForMs: liveness.silentForMs, running: scheduler.running().length };
    },
    on: (name, listener) => hub.on(name, listener),
  };
}

/** A quiet worker has time: its open poll may bring messages, which are given back. */
const NEVER: AbortSignal = new AbortController().signal;

function createPipeline(options: ResolvedWorkerOptions, scheduler: Scheduler): PipelineDependencies {
  const { client, queueUrl, deadLetterQueueUrl, queue, store, deleteBatchWindowMs, name: worker } = options;
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
      inFlight: () => options.concurrency - scheduler.freeSlots,
    }),
    deadLetters: createDeadLetters({ client, deadLetterQueueUrl, queue, store, clock, random, worker }),
  };
}

interface PollingParts {
  readonly options: ResolvedWorkerOptions;
  readonly scheduler: Scheduler;
  readonly hub: EventHub;
}

function createWorkerPoller(parts: PollingParts & { readonly intake: Intake; readonly liveness: Liveness }): Poller {
  const { options, scheduler, hub, intake, liveness } = parts;
  return createPoller({
    client: options.pollingClient,
    queueUrl: options.queueUrl,
    waitTimeSeconds: options.waitTimeSeconds,
    visibilityTimeoutSeconds: options.visibilityTimeoutSeconds,
    clock: options.store.clock,
    random: options.store.random,
    freeSlots: () => scheduler.freeSlots,
    whenFree: () => scheduler.whenFree(),
    onSign: () => {
      liveness.sign();
    },
    onMessages: (messages) => {
      intake.take(messages);
    },
    onUnwanted: (messages) => intake.giveBack(messages),
    onReceiveFailed(error, nextTryInMs) {
      options.log.warn({ err: error, nextTryInMs }, 'receiving failed');
      hub.tell('receiveFailed', { error, nextTryInMs });
    },
  });
}

function watchedLoop(parts: PollingParts & { readonly isQuiet: () => boolean }): Liveness {
  const { options, scheduler, hub } = parts;
  return createLiveness({
    clock: options.store.clock,
    stallAfterMs: options.stallAfterMs,
    isFull: () => scheduler.freeSlots === 0,
    isQuiet: parts.isQuiet,
    onStalled(silentForMs) {
      options.log.error({ silentForMs }, 'the poll loop gives no sign of life: this worker receives nothing any more');
      hub.tell('stalled', { silentForMs });
    },
  });
}

/** A queue that cannot be asked is no reason not to start: receiving waits for it, and tells. */
async function checkQueue(options: ResolvedWorkerOptions): Promise<void> {
  if (options.queueRules === 'off') return;
  const facts = await readQueueFacts(options.client, options.queueUrl).catch((error: unknown) => {
    options.log.warn({ err: error }, 'the queue could not be asked for its settings; they are not checked');
    return undefined;
  });
  if (facts === undefined) return;
  const faults = findQueueRuleFaults(options, facts);
  if (faults.length === 0) return;
  const error = new ConfigurationError(`worker on queue ${options.queue}`, faults);
  if (options.queueRules === 'refuse') throw error;
  options.log.warn({ err: error }, 'the queue and the worker do not fit together');
}

async function drain(context: {
  readonly options: ResolvedWorkerOptions;
  readonly scheduler: Scheduler;
  readonly intake: Intake;
  readonly deadlineMs: number;
  readonly endPolling: (deadline: AbortSignal) => Promise<void>;
}): Promise<StopReport> {
  const { scheduler, intake } = context;
  const deadline = new AbortController();
  const reached = new Promise<void>((resolve) => {
    deadline.signal.addEventListener('abort', () => {
      resolve();
    });
  });
  const cancel = context.options.store.clock.schedule(() => {
    deadline.abort();
  }, context.deadlineMs);
  const ended = Promise.all([context.endPolling(deadline.signal), intake.close(), scheduler.whenIdle()]);
  await Promise.race([ended, reached]);
  cancel();
  return { leftovers: scheduler.running() };
}
