/**
 * Several queues in one process: each has a worker of its own, and the process's slots are shared out by weight.
 *
 * Shares are fixed: a queue with a long backlog never takes the slots of another, and an idle one costs the others what
 * its weight says. Whoever wants all slots for the busy queue runs two processes.
 */
import { ConfigurationError, type OptionFault } from '../errors.ts';
import type { WorkerOptions } from './options.ts';
import { createWorker, type StopReport, type Worker, type WorkerHealth } from './worker.ts';

/** The worker of one queue of a group, with its share of the slots. */
export interface GroupMember extends Omit<WorkerOptions, 'concurrency'> {
  /** Its part of the slots, beside the others' weights. Range: above 0, at most 1000. @defaultValue 1 */
  readonly weight?: number;
}

/** The slots of a process and the queues that share them. */
export interface WorkerGroupOptions {
  /** Deliveries at once, of all queues together. Range: from the number of queues to 1000. */
  readonly concurrency: number;
  /** One per queue. */
  readonly workers: readonly GroupMember[];
}

/** The workers of several queues, started and stopped together. */
export interface WorkerGroup {
  /** In the order of the options; their shares are in `concurrencies`. */
  readonly workers: readonly Worker[];
  readonly concurrencies: readonly number[];
  /** Starts all; when one is refused, the others are stopped again. @throws {ConfigurationError} */
  start(): Promise<void>;
  /** Stops all at once, under one deadline. */
  stop(options?: { readonly deadlineMs?: number }): Promise<StopReport>;
  /** By queue. */
  readonly health: Readonly<Record<string, WorkerHealth>>;
}

/** @throws {ConfigurationError} listing every wrong option, of the group and of its workers. */
export function createWorkerGroup(options: WorkerGroupOptions): WorkerGroup {
  const faults = findFaults(options);
  if (faults.length > 0) throw new ConfigurationError('worker group', faults);
  const concurrencies = sharesOf(
    options.concurrency,
    options.workers.map(({ weight = 1 }) => weight),
  );
  const workers = options.workers.map(({ weight: _weight, ...worker }, index) =>
    createWorker({ ...worker, concurrency: concurrencies[index] ?? 1 }),
  );

  async function stop(limits?: { readonly deadlineMs?: number }): Promise<StopReport> {
    const reports = await Promise.all(workers.map((worker) => worker.stop(limits)));
    return { leftovers: reports.flatMap(({ leftovers }) => leftovers) };
  }

  return {
    workers,
    concurrencies,
    async start() {
      try {
        await Promise.all(workers.map((worker) => worker.start()));
      } catch (error) {
        await stop();
        throw error;
      }
    },
    stop,
    get health() {
      return Object.fromEntries(workers.map((worker, index) => [options.workers[index]?.queue ?? '', worker.health]));
    },
  };
}

/**
 * Whole slots by weight: at least one each, and all of them given out (largest remainder).
 * @param slots at least as many as there are weights.
 */
export function sharesOf(slots: number, weights: readonly number[]): number[] {
  const total = weights.reduce((sum, weight) => sum + weight, 0);
  const spare = slots - weights.length;
  const exact = weights.map((weight) => (spare * weight) / total);
  const shares = exact.map((share) => 1 + Math.floor(share));
  const left = slots - shares.reduce((sum, share) => sum + share, 0);
  const byRemainder = exact
    .map((share, index) => ({ index, remainder: share - Math.floor(share) }))
    .toSorted((one, other) => other.remainder - one.remainder);
  for (const { index } of byRemainder.slice(0, left)) shares[index] = (shares[index] ?? 0) + 1;
  return shares;
}

function findFaults({ concurrency, workers }: WorkerGroupOptions): OptionFault[] {
  const faults: OptionFault[] = [];
  if (workers.length === 0) faults.push({ name: 'workers', rule: 'at least one', value: 0 });
  if (!Number.isInteger(concurrency) || concurrency < Math.max(1, workers.length) || concurrency > 1_000) {
    faults.push({
      name: 'concurrency',
      rule: 'a whole number from the number of workers to 1000',
      value: concurrency,
    });
  }
  for (const [index, { weight = 1 }] of workers.entries()) {
    if (Number.isFinite(weight) && weight > 0 && weight <= 1_000) continue;
    faults.push({ name: `workers[${String(index)}].weight`, rule: 'above 0, at most 1000', value: weight });
  }
  const queues = workers.map(({ queueUrl }) => queueUrl);
  const doubled = queues.find((url, index) => queues.indexOf(url) !== index);
  if (doubled !== undefined) faults.push({ name: 'workers', rule: 'one per queue', value: doubled });
  return faults;
}
