import { afterAll, expect, test } from 'vitest';
import { ConfigurationError } from '../../src/errors.ts';
import { createQueueClient } from '../../src/queues/client.ts';
import { createStore } from '../../src/store/store.ts';
import { resolveWorkerOptions, WORKER_DEFAULTS, type WorkerOptions } from '../../src/workers/options.ts';
import { createWorker } from '../../src/workers/worker.ts';
import { noteHandler } from '../support/worker-contract.ts';

const client = createQueueClient({ region: 'us-east-1' });
const store = createStore({ region: 'us-east-1' });

afterAll(() => {
  client.destroy();
  store.close();
});

const handler = noteHandler(() => Promise.resolve({ kind: 'rejected', reason: 'never called' }));

function options(changes: Partial<WorkerOptions> = {}): WorkerOptions {
  const urls = { queueUrl: 'https://queue.invalid/1/q', deadLetterQueueUrl: 'https://queue.invalid/1/q-dlq' };
  return { queue: 'q', ...urls, client, pollingClient: client, store, handlers: [handler], ...changes };
}

function faultsOf(changes: Partial<WorkerOptions>): string[] {
  try {
    createWorker(options(changes));
    return [];
  } catch (error) {
    if (!(error instanceof ConfigurationError)) throw error;
    return error.faults.map(({ name }) => name);
  }
}

test('fills in the defaults, which fit together', () => {
  const resolved = resolveWorkerOptions(options());

  expect(resolved).toMatchObject(WORKER_DEFAULTS);
  expect(resolved.lease).toMatchObject({ leaseMs: 20_000, heartbeatMs: 5_000 });
  expect(resolved.visibilityTimeoutSeconds * 1_000).toBeGreaterThanOrEqual(resolved.lease.leaseMs);
});

test('reports every wrong option together, by name', () => {
  const faults = faultsOf({
    queue: 'a#b',
    concurrency: 0,
    maxAttempts: 1.5,
    visibilityTimeoutSeconds: 43_201,
    waitTimeSeconds: 21,
    deleteBatchWindowMs: -1,
    retryBackoff: { baseMs: -1, capMs: Number.NaN },
    handlers: [],
    queueUrl: 'https://queue.invalid/1/q.fifo',
    lease: { leaseMs: 100, heartbeatMs: 10 },
  });

  expect(faults.toSorted()).toEqual(
    [
      'lease.leaseMs',
      'lease.heartbeatMs',
      'lease.safetyMarginMs',
      'queue',
      'concurrency',
      'maxAttempts',
      'visibilityTimeoutSeconds',
      'waitTimeSeconds',
      'deleteBatchWindowMs',
      'retryBackoff.baseMs',
      'retryBackoff.capMs',
      'handlers',
      'deadLetterQueueUrl',
    ].toSorted(),
  );
});

test.each([
  ['the least of each', { concurrency: 1, maxAttempts: 1, waitTimeSeconds: 1, deleteBatchWindowMs: 0 }],
  ['the most of each', { concurrency: 1_000, maxAttempts: 1_000, waitTimeSeconds: 20, deleteBatchWindowMs: 1_000 }],
  ['a visibility of 12 hours', { visibilityTimeoutSeconds: 43_200 }],
  ['a visibility of just a lease and the skew', { visibilityTimeoutSeconds: 22 }],
  ['a queue name of 80 characters', { queue: `Az09-_${'q'.repeat(74)}` }],
] satisfies [string, Partial<WorkerOptions>][])('accepts %s', (_case, changes) => {
  expect(faultsOf(changes)).toEqual([]);
});

test.each([
  ['a message would come back before its lease is over', 'visibilityTimeoutSeconds', { visibilityTimeoutSeconds: 21 }],
  ['beats could not keep the lease', 'lease.leaseMs', { lease: { leaseMs: 20_000, heartbeatMs: 10_000 } }],
  ['two handlers are for one kind', 'handlers', { handlers: [handler, handler] }],
  ['the queue has no name', 'queue', { queue: '' }],
  ['a queue name could be taken for part of a key', 'queue', { queue: 'orders#r1' }],
  ['dead letters come back', 'deadLetterQueueUrl', { deadLetterQueueUrl: 'https://queue.invalid/1/q' }],
  ['a number is not a number', 'concurrency', { concurrency: Number.NaN }],
] satisfies [string, string, Partial<WorkerOptions>][])('refuses options with which %s', (_case, name, changes) => {
  expect(faultsOf(changes)).toEqual([name]);
});

test('names the rule and the value that breaks it', () => {
  expect(() => resolveWorkerOptions(options({ concurrency: 1_001 }))).toThrow(
    'concurrency: a whole number from 1 to 1000 (got 1001)',
  );
});
