import fc from 'fast-check';
import { expect, onTestFinished, test } from 'vitest';
import { ConfigurationError } from '../../src/errors.ts';
import { createPollingClient } from '../../src/queues/client.ts';
import { createWorkerGroup, sharesOf, type GroupMember } from '../../src/workers/worker-group.ts';
import { noteBody, noteHandler } from '../support/worker-contract.ts';
import { workerLab, type Bench } from '../support/worker-fixture.ts';

const lab = workerLab();

function memberOf(bench: Bench, member: Pick<GroupMember, 'handlers' | 'weight'>): GroupMember {
  const pollingClient = createPollingClient({
    region: 'us-east-1',
    credentials: { accessKeyId: 'test', secretAccessKey: 'test' },
    endpoint: lab.sqsEndpoint,
  });
  onTestFinished(() => {
    pollingClient.destroy();
  });
  return {
    queue: bench.queue,
    queueUrl: bench.queueUrl,
    deadLetterQueueUrl: bench.deadLetterQueueUrl,
    client: bench.client,
    pollingClient,
    store: bench.store,
    waitTimeSeconds: 1,
    queueRules: 'off',
    ...member,
  };
}

test('gives out all slots by weight, at least one to each', () => {
  const cases = fc
    .array(fc.double({ min: 0.01, max: 1_000, noNaN: true }), { minLength: 1, maxLength: 12 })
    .chain((weights) => fc.tuple(fc.constant(weights), fc.integer({ min: weights.length, max: 1_000 })));

  fc.assert(
    fc.property(cases, ([weights, slots]) => {
      const shares = sharesOf(slots, weights);

      expect(shares.reduce((sum, share) => sum + share, 0)).toBe(slots);
      expect(Math.min(...shares)).toBeGreaterThanOrEqual(1);
      // A heavier queue never has fewer slots than a lighter one.
      const byWeight = shares
        .map((share, index) => ({ share, weight: weights[index] ?? 0 }))
        .toSorted((one, other) => one.weight - other.weight || one.share - other.share)
        .map(({ share }) => share);
      expect(byWeight).toEqual(byWeight.toSorted((one, other) => one - other));
    }),
  );
});

test('a queue whose handlers hang does not keep the messages of another waiting', async () => {
  const [stuck, lively] = [await lab.open(), await lab.open()];
  const over = Promise.withResolvers<void>();
  const done: string[] = [];
  const allDone = Promise.withResolvers<void>();
  const group = createWorkerGroup({
    concurrency: 4,
    workers: [
      memberOf(stuck, {
        weight: 3,
        handlers: [noteHandler(() => over.promise.then(() => ({ kind: 'completed', response: null, effects: [] })))],
      }),
      memberOf(lively, {
        handlers: [
          noteHandler(({ key }) => {
            done.push(key);
            if (done.length === 10) allDone.resolve();
            return Promise.resolve({ kind: 'completed', response: null, effects: [] });
          }),
        ],
      }),
    ],
  });
  await stuck.sendAll(Array.from({ length: 10 }, (_, nth) => noteBody({ id: `s${String(nth)}`, text: '' })));
  await lively.sendAll(Array.from({ length: 10 }, (_, nth) => noteBody({ id: `l${String(nth)}`, text: '' })));
  await group.start();

  await allDone.promise;

  over.resolve();
  expect(await group.stop()).toEqual({ leftovers: [] });
  expect(group.concurrencies).toEqual([3, 1]);
  expect(Object.values(group.health).map(({ state }) => state)).toEqual(['stopping', 'stopping']);
});

test('reports all wrong options of a group together', async () => {
  const bench = await lab.open();
  const member = memberOf(bench, { handlers: [], weight: 0 });
  const faultsOf = (make: () => unknown): readonly string[] => {
    try {
      make();
      return [];
    } catch (error) {
      return error instanceof ConfigurationError ? error.faults.map(({ name }) => name) : [String(error)];
    }
  };

  expect(faultsOf(() => createWorkerGroup({ concurrency: 1, workers: [member, member] }))).toEqual([
    'concurrency',
    'workers[0].weight',
    'workers[1].weight',
    'workers',
  ]);
  expect(faultsOf(() => createWorkerGroup({ concurrency: 1, workers: [] }))).toEqual(['workers']);
});
