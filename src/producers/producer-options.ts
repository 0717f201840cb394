/** How a producer sends and how long it tries. One place for defaults and rules. */
import type { SQSClient } from '@aws-sdk/client-sqs';
import type { Backoff } from '../backoff.ts';
import { systemClock, systemRandom, type Clock, type Random } from '../clock.ts';
import { ConfigurationError, type OptionFault } from '../errors.ts';
import { isFifo } from '../queues/topology.ts';

/** Where a producer sends, and how long it tries. */
export interface ProducerOptions {
  /** From `createQueueClient`. Its own tries (3 per request) come on top of `maxAttempts`. */
  readonly client: SQSClient;
  /** Of a standard queue, or of a FIFO queue (`.fifo`): then each message goes to the group of its key. */
  readonly queueUrl: string;
  /** How often one entry is sent at most. Unit: tries. Range: 1-20. @defaultValue 5 */
  readonly maxAttempts?: number;
  /**
   * How long the entries of one request are tried, counted from its first try; a try under way is cut off. To bound a
   * whole call, hand in a signal. Unit: ms. Range: 100-900000. @defaultValue 30000
   */
  readonly deadlineMs?: number;
  /**
   * Requests under way at once. With 1 the entries reach the queue in their order, unless one had to be retried.
   * Unit: requests. Range: 1-64, only 1 on a FIFO queue. @defaultValue 4, 1 on a FIFO queue
   */
  readonly maxConcurrentRequests?: number;
  /** The upper bound of the wait before the second try; it doubles each time. Unit: ms. Range: 0-60000. @defaultValue 100 */
  readonly backoffBaseMs?: number;
  /** No wait between two tries is longer. Unit: ms. Range: 0-60000. @defaultValue 5000 */
  readonly backoffCapMs?: number;
  /** @defaultValue the system's clock */
  readonly clock?: Clock;
  /** For the jitter. @defaultValue Math.random */
  readonly random?: Random;
}

export interface ResolvedProducerOptions {
  readonly client: SQSClient;
  readonly queueUrl: string;
  readonly maxAttempts: number;
  readonly deadlineMs: number;
  readonly maxConcurrentRequests: number;
  readonly backoff: Backoff;
  readonly clock: Clock;
  readonly random: Random;
}

/** What `ProducerOptions` leave out. Units: as there. */
export const PRODUCER_DEFAULTS = {
  maxAttempts: 5,
  deadlineMs: 30_000,
  maxConcurrentRequests: 4,
  backoffBaseMs: 100,
  backoffCapMs: 5_000,
} as const;

const RANGES: Readonly<Record<keyof typeof PRODUCER_DEFAULTS, readonly [min: number, max: number, unit: string]>> = {
  maxAttempts: [1, 20, 'tries'],
  deadlineMs: [100, 900_000, 'ms'],
  maxConcurrentRequests: [1, 64, 'requests'],
  backoffBaseMs: [0, 60_000, 'ms'],
  backoffCapMs: [0, 60_000, 'ms'],
};

/** @throws {ConfigurationError} listing every wrong option. */
export function resolveProducerOptions(options: ProducerOptions): ResolvedProducerOptions {
  const given = withDefaults(options);
  const faults = [...faultsOfQueueUrl(options.queueUrl), ...faultsOfNumbers(given)];
  if (given.backoffBaseMs > given.backoffCapMs) {
    faults.push({ name: 'backoffBaseMs', rule: 'not above backoffCapMs', value: given.backoffBaseMs });
  }
  if (isFifo(options.queueUrl) && given.maxConcurrentRequests !== 1) {
    // Two requests at once may reach the queue in either order.
    faults.push({ name: 'maxConcurrentRequests', rule: '1 on a FIFO queue', value: given.maxConcurrentRequests });
  }
  if (faults.length > 0) throw new ConfigurationError('producer', faults);
  return {
    client: options.client,
    queueUrl: options.queueUrl,
    maxAttempts: given.maxAttempts,
    deadlineMs: given.deadlineMs,
    maxConcurrentRequests: given.maxConcurrentRequests,
    backoff: { baseMs: given.backoffBaseMs, capMs: given.backoffCapMs },
    clock: options.clock ?? systemClock,
    random: options.random ?? systemRandom,
  };
}

type Numbers = Record<keyof typeof PRODUCER_DEFAULTS, number>;

function withDefaults(options: ProducerOptions): Numbers {
  return {
    maxAttempts: options.maxAttempts ?? PRODUCER_DEFAULTS.maxAttempts,
    deadlineMs: options.deadlineMs ?? PRODUCER_DEFAULTS.deadlineMs,
    maxConcurrentRequests:
      options.maxConcurrentRequests ?? (isFifo(options.queueUrl) ? 1 : PRODUCER_DEFAULTS.maxConcurrentRequests),
    backoffBaseMs: options.backoffBaseMs ?? PRODUCER_DEFAULTS.backoffBaseMs,
    backoffCapMs: options.backoffCapMs ?? PRODUCER_DEFAULTS.backoffCapMs,
  };
}

function faultsOfNumbers(given: Numbers): OptionFault[] {
  return (Object.keys(RANGES) as (keyof Numbers)[]).flatMap((name): OptionFault[] => {
    const [min, max, unit] = RANGES[name];
    const value = given[name];
    const fits = Number.isInteger(value) && value >= min && value <= max;
    return fits ? [] : [{ name, rule: `a whole number from ${String(min)} to ${String(max)} ${unit}`, value }];
  });
}

function faultsOfQueueUrl(queueUrl: string): OptionFault[] {
  const scheme = URL.canParse(queueUrl) ? new URL(queueUrl).protocol : '';
  if (scheme !== 'http:' && scheme !== 'https:') {
    return [{ name: 'queueUrl', rule: 'the http or https address of a queue', value: queueUrl }];
  }
  return [];
}
