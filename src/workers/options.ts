/** What a worker can be told. Filled in and checked once, when it is created; all faults are reported together. */
import type { SQSClient } from '@aws-sdk/client-sqs';
import type { Backoff } from '../backoff.ts';
import { ConfigurationError, type OptionFault } from '../errors.ts';
import { resolveLeaseOptions, type LeaseOptions, type ResolvedLeaseOptions } from '../store/leases/lease-options.ts';
import type { Store } from '../store/store.ts';
import { silentLog, type Log } from '../telemetry/log.ts';
import type { WorkerEvents } from './events.ts';
import type { Handler } from './handler.ts';
import { isFifo } from '../queues/topology.ts';

/** What a worker works on, with what, and how. */
export interface WorkerOptions {
  /** The queue's name. It is part of every effect record's key: the same key on two queues is two effects. */
  readonly queue: string;
  readonly queueUrl: string;
  readonly deadLetterQueueUrl: string;
  /** For deletes, visibility and dead letters. */
  readonly client: SQSClient;
  /** Made by `createPollingClient`, for this worker alone: it is closed when a stop runs out of time. */
  readonly pollingClient: SQSClient;
  readonly store: Store;
  /** One per message type and version. */
  readonly handlers: readonly Handler<unknown>[];
  /** Written into leases, for people who read the table. @defaultValue worker */
  readonly name?: string;
  /** Deliveries at once. Range: 1-1000. @defaultValue 10 */
  readonly concurrency?: number;
  /** Tries of one key before it is dead-lettered; our own count in the effect record. Range: 1-1000. @defaultValue 10, minutes in all */
  readonly maxAttempts?: number;
  /**
   * How long a handler may take. Then its signal aborts, its lease and visibility are renewed no more, and the message is
   * tried again. Unit: ms. Range: 100-42900000. @defaultValue 42900000, the 12 hours of SQS less 5 minutes
   */
  readonly handlerTimeoutMs?: number;
  /**
   * What to do when the queue's own settings do not fit (`maxReceiveCount` not above `maxAttempts`, records forgotten
   * before their messages): refuse to start, warn, or do not ask. @defaultValue refuse
   */
  readonly queueRules?: 'refuse' | 'warn' | 'off';
  /** How long the poll loop may give no sign of life before that is told. Unit: ms. Range: 30000-3600000. @defaultValue 60000 */
  readonly stallAfterMs?: number;
  /** How long a delivery is hidden; each heartbeat starts it anew. Unit: s. Range: 1-43200. @defaultValue 30 */
  readonly visibilityTimeoutSeconds?: number;
  /** How long one receive waits for a message; without a wait it would ask in a hot loop. Unit: s. Range: 1-20. @defaultValue 10 */
  readonly waitTimeSeconds?: number;
  /** Between two tries of a key: exponential with full jitter. Unit: ms. @defaultValue from 2000 up to 300000 */
  readonly retryBackoff?: Backoff;
  /**
   * How long to wait after this error instead, if it can be told; what the error itself carries as `retryAfterMs` goes
   * first. Called with what the handler threw and the number of the attempt. A value out of range is warned about, and
   * the back-off is used. Unit: ms. Range: 0-43200000. @defaultValue always the back-off
   */
  readonly retryDelayMs?: (error: unknown, attempt: number) => number | undefined;
  /**
   * How long a settlement waits for others that are at work to share its request. Shorter frees slots sooner, longer
   * costs fewer requests. Unit: ms. Range: 0-1000. @defaultValue 50
   */
  readonly deleteBatchWindowMs?: number;
  readonly lease?: LeaseOptions;
  /** @defaultValue says nothing */
  readonly log?: Log;
  /** Told about every delivery; what it throws is ignored. */
  readonly events?: WorkerEvents;
}

export type ResolvedWorkerOptions = Required<Omit<WorkerOptions, 'lease'>> & { readonly lease: ResolvedLeaseOptions };

/** What `WorkerOptions` leave out. Units: as there. */
export const WORKER_DEFAULTS = {
  name: 'worker',
  concurrency: 10,
  maxAttempts: 10,
  handlerTimeoutMs: 42_900_000,
  queueRules: 'refuse',
  stallAfterMs: 60_000,
  visibilityTimeoutSeconds: 30,
  waitTimeSeconds: 10,
  retryBackoff: { baseMs: 2_000, capMs: 300_000 },
  deleteBatchWindowMs: 50,
} as const;

/** @throws {ConfigurationError} listing every wrong option and every broken relation between two. */
export function resolveWorkerOptions(options: WorkerOptions): ResolvedWorkerOptions {
  const { lease, faults: leaseFaults } = resolveLeaseOptions(options.lease);
  const resolved: ResolvedWorkerOptions = {
    ...WORKER_DEFAULTS,
    log: silentLog,
    events: {},
    retryDelayMs: () => undefined,
    ...options,
    lease,
  };
  const faults = [
    ...leaseFaults.map(inLease),
    ...findRangeFaults(resolved),
    ...findBackoffFaults(resolved.retryBackoff),
    ...findPolicyFaults(resolved),
    ...findQueueFaults(resolved),
    ...findRelationFaults(resolved),
  ];
  if (faults.length > 0) throw new ConfigurationError('worker', faults);
  return resolved;
}

function findRangeFaults(options: ResolvedWorkerOptions): OptionFault[] {
  const ranges = {
    concurrency: [1, 1_000],
    maxAttempts: [1, 1_000],
    handlerTimeoutMs: [100, 42_900_000],
    stallAfterMs: [30_000, 3_600_000],
    visibilityTimeoutSeconds: [1, 43_200],
    waitTimeSeconds: [1, 20],
    deleteBatchWindowMs: [0, 1_000],
  } as const;
  return (Object.keys(ranges) as (keyof typeof ranges)[]).flatMap((name): OptionFault[] => {
    const [min, max] = ranges[name];
    const value = options[name];
    if (Number.isInteger(value) && value >= min && value <= max) return [];
    return [{ name, rule: `a whole number from ${String(min)} to ${String(max)}`, value }];
  });
}

function findBackoffFaults(backoff: Backoff): OptionFault[] {
  return (['baseMs', 'capMs'] as const).flatMap((name): OptionFault[] => {
    const value = backoff[name];
    if (Number.isFinite(value) && value >= 0) return [];
    return [{ name: `retryBackoff.${name}`, rule: 'a number of ms, 0 or more', value }];
  });
}

function findPolicyFaults({ retryDelayMs }: { readonly retryDelayMs: unknown }): OptionFault[] {
  if (typeof retryDelayMs === 'function') return [];
  return [{ name: 'retryDelayMs', rule: 'a function', value: retryDelayMs }];
}

/** What SQS takes as a name. It stands in front of the key in a record: with a `#` in it, two keys could be one. */
const QUEUE_NAME = /^(?=.{1,80}$)[\w-]+(\.fifo)?$/;

function findQueueFaults({ queue, queueUrl, deadLetterQueueUrl }: ResolvedWorkerOptions): OptionFault[] {
  const faults: OptionFault[] = [];
  if (!QUEUE_NAME.test(queue)) {
    faults.push({ name: 'queue', rule: 'from 1 to 80 letters, digits, - and _', value: queue });
  }
  if (isFifo(queueUrl) !== isFifo(deadLetterQueueUrl)) {
    const rule = 'a FIFO queue if, and only if, queueUrl is one';
    faults.push({ name: 'deadLetterQueueUrl', rule, value: deadLetterQueueUrl });
  }
  if (deadLetterQueueUrl === queueUrl) {
    faults.push({ name: 'deadLetterQueueUrl', rule: 'another queue than queueUrl', value: deadLetterQueueUrl });
  }
  return faults;
}

function findRelationFaults(options: ResolvedWorkerOptions): OptionFault[] {
  const faults: OptionFault[] = [];
  const { lease, visibilityTimeoutSeconds } = options;
  // A message that comes back while its dead owner's lease still counts would only be hidden again.
  const neededMs = lease.leaseMs + lease.maxClockSkewMs;
  if (visibilityTimeoutSeconds * 1_000 < neededMs) {
    const rule = `at least leaseMs + maxClockSkewMs (${String(neededMs)} ms)`;
    faults.push({ name: 'visibilityTimeoutSeconds', rule, value: visibilityTimeoutSeconds });
  }
  if (options.handlers.length === 0) faults.push({ name: 'handlers', rule: 'at least one', value: 0 });
  const kinds = options.handlers.map((handler) => `${handler.contract.type} v${String(handler.contract.version)}`);
  const doubled = kinds.find((kind, index) => kinds.indexOf(kind) !== index);
  if (doubled !== undefined)
    faults.push({ name: 'handlers', rule: 'one per message type and version', value: doubled });
  return faults;
}

function inLease(fault: OptionFault): OptionFault {
  return { ...fault, name: `lease.${fault.name}` };
}
