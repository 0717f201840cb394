/**
 * A worker of notes in a process of its own, to be stopped or killed at any moment. What it is to do comes as JSON in its
 * first argument; what it did goes to stdout, one line of JSON each. SIGTERM stops it.
 */
import { sleep, systemClock, systemRandom } from '../../src/clock.ts';
import { createPollingClient, createQueueClient } from '../../src/queues/client.ts';
import { createStore } from '../../src/store/store.ts';
import { createLogger } from '../../src/telemetry/logger.ts';
import type { LeaseOptions } from '../../src/store/leases/lease-options.ts';
import type { HandlerContext, HandlerResult } from '../../src/workers/handler.ts';
import { createWorker } from '../../src/workers/worker.ts';
import { countEffect, noteHandler } from './worker-contract.ts';
import { interceptCommand } from './worker-faults.ts';

export interface StormInput {
  readonly sqsEndpoint: string;
  readonly dynamodbEndpoint: string;
  readonly queue: string;
  readonly queueUrl: string;
  readonly deadLetterQueueUrl: string;
  readonly name: string;
  readonly commit: 'claimed' | 'direct';
  readonly concurrency: number;
  readonly visibilityTimeoutSeconds: number;
  readonly lease: LeaseOptions;
  /** Tells each receive and delivery. @defaultValue false */
  readonly isTelling?: boolean;
  /** How long a handler takes at most; chance decides. Unit: ms. @defaultValue 0 */
  readonly handleMs?: number;
  /** Ends by itself after so many deliveries. @defaultValue only when it is told to */
  readonly stopAfter?: number;
  /** How long a stop may take. Unit: ms. @defaultValue 10000 */
  readonly stopDeadlineMs?: number;
}

/** One line of its stdout. */
export type StormLine =
  /** From here on SIGTERM stops it; it has not begun to start. */
  | { readonly event: 'booted' }
  | { readonly event: 'receive' }
  | { readonly event: 'delivery' }
  /** Asked for by SIGUSR2. What is in use after a collection of garbage. */
  | { readonly event: 'memory'; readonly usedBytes: number }
  | { readonly event: 'stop' }
  | {
      readonly event: 'stopped';
      readonly leftovers: number;
      readonly durationMs: number;
      readonly outcomes: Readonly<Record<string, number>>;
    };

/** Notes with this text fail each time. */
export const POISON = 'poison';

const CREDENTIALS = { region: 'us-east-1', credentials: { accessKeyId: 'test', secretAccessKey: 'test' } };

function tell(line: StormLine): void {
  process.stdout.write(`${JSON.stringify(line)}\n`);
}

/** What was waited for weakly is dropped a turn after the collection that found it unused, and is free after the next. */
async function tellMemory(): Promise<void> {
  for (let turn = 0; turn < 4; turn += 1) {
    // Only with --expose-gc, which whoever asks has set.
    globalThis.gc?.();
    await sleep(systemClock, 20);
  }
  const { heapUsed, external } = process.memoryUsage();
  tell({ event: 'memory', usedBytes: heapUsed + external });
}

/** A counter of its own for each key, without any condition: an effect that happens twice is seen. */
async function count(input: StormInput, key: string, { step }: HandlerContext): Promise<HandlerResult> {
  const { queue, commit, handleMs = 0 } = input;
  if (handleMs > 0) await sleep(systemClock, systemRandom() * handleMs);
  if (commit === 'claimed') await step('call', () => Promise.resolve('called'), { idempotentForMs: 86_400_000 });
  return { kind: 'completed', response: { key }, effects: [countEffect(`${queue}/${key}`)] };
}

function build(input: StormInput, onSettled: () => void) {
  const outcomes: Record<string, number> = {};
  const pollingClient = createPollingClient({ ...CREDENTIALS, endpoint: input.sqsEndpoint });
  const journal = input.isTelling === true ? tell : () => undefined;
  interceptCommand(pollingClient, 'ReceiveMessageCommand', (_input, send) => {
    journal({ event: 'receive' });
    return send();
  });
  const worker = createWorker({
    queue: input.queue,
    queueUrl: input.queueUrl,
    deadLetterQueueUrl: input.deadLetterQueueUrl,
    client: createQueueClient({ ...CREDENTIALS, endpoint: input.sqsEndpoint }),
    pollingClient,
    store: createStore({ ...CREDENTIALS, endpoint: input.dynamodbEndpoint }),
    handlers: [
      {
        ...noteHandler((message, context) => {
          if (message.payload.text === POISON) throw new Error('this note fails each time');
          return count(input, message.key, context);
        }),
        commit: input.commit,
      },
    ],
    name: input.name,
    concurrency: input.concurrency,
    visibilityTimeoutSeconds: input.visibilityTimeoutSeconds,
    waitTimeSeconds: 1,
    maxAttempts: 5,
    retryBackoff: { baseMs: 100, capMs: 1_000 },
    lease: input.lease,
    log: createLogger({ level: 'error', name: input.name }),
    events: {
      onDelivery: () => {
        journal({ event: 'delivery' });
      },
      onOutcome: ({ outcome }) => {
        outcomes[outcome.kind] = (outcomes[outcome.kind] ?? 0) + 1;
        onSettled();
      },
    },
  });
  return { worker, outcomes };
}

async function run(input: StormInput): Promise<void> {
  const stopAsked = Promise.withResolvers<void>();
  let left = input.stopAfter ?? Number.POSITIVE_INFINITY;
  const { worker, outcomes } = build(input, () => {
    left -= 1;
    if (left === 0) stopAsked.resolve();
  });
  process.once('SIGTERM', () => {
    stopAsked.resolve();
  });
  process.on('SIGUSR2', () => void tellMemory());
  tell({ event: 'booted' });
  void worker.start();

  await stopAsked.promise;
  tell({ event: 'stop' });
  const stopMonoMs = systemClock.monotonicMs();
  const { leftovers } = await worker.stop({ deadlineMs: input.stopDeadlineMs ?? 10_000 });
  const durationMs = Math.round(systemClock.monotonicMs() - stopMonoMs);
  tell({ event: 'stopped', leftovers: leftovers.length, durationMs, outcomes });
}

// Imported for its types, it does nothing.
if (process.argv[1] === import.meta.filename) await run(JSON.parse(process.argv[2] ?? '{}') as StormInput);
