import type { DeleteMessageBatchCommandInput, DeleteMessageBatchCommandOutput } from '@aws-sdk/client-sqs';
import { expect, test } from 'vitest';
import { interceptChanges } from '../support/sqs-batches.ts';
import { interceptCommand, refusedConnection, serviceError } from '../support/worker-faults.ts';
import { workerLab, type Bench } from '../support/worker-fixture.ts';
import { until } from '../support/until.ts';

const lab = workerLab();

type Entries = NonNullable<DeleteMessageBatchCommandInput['Entries']>;

/** What the test makes of the nth DeleteMessageBatch. */
type OnDelete = (
  nth: number,
  entries: Entries,
  send: (entries: Entries) => Promise<DeleteMessageBatchCommandOutput>,
) => Promise<DeleteMessageBatchCommandOutput>;

/** Runs a worker whose deletes go through `onDelete`; tells the handles of each request and the visibilities set. */
function runWithDeletes(bench: Bench, onDelete: OnDelete, options: { deleteBatchWindowMs?: number } = {}) {
  const requests: string[][] = [];
  const visibilities: number[] = [];
  const run = bench.run({
    ...options,
    prepare: ({ client }) => {
      interceptCommand<DeleteMessageBatchCommandInput, DeleteMessageBatchCommandOutput>(
        client,
        'DeleteMessageBatchCommand',
        (input, send) => {
          const entries = input.Entries ?? [];
          requests.push(entries.map((entry) => entry.ReceiptHandle ?? ''));
          return onDelete(requests.length, entries, (some) => send({ ...input, Entries: some }));
        },
      );
      interceptChanges(client, ({ VisibilityTimeout = -1 }) => {
        visibilities.push(VisibilityTimeout);
        return undefined;
      });
    },
  });
  return { run, requests, visibilities };
}

const nothingDeleted = (entries: Entries): DeleteMessageBatchCommandOutput => ({
  $metadata: {},
  Successful: entries.map(({ Id }) => ({ Id })),
  Failed: undefined,
});

const allFailed = (entries: Entries, SenderFault: boolean): DeleteMessageBatchCommandOutput => ({
  $metadata: {},
  Successful: undefined,
  Failed: entries.map(({ Id }) => ({ Id, SenderFault, Code: 'ByTheTest' })),
});

test('M4 a message that comes back after its effect is answered from the record and deleted', async () => {
  const bench = await lab.open({ visibilityTimeoutSeconds: 2 });
  const { run } = runWithDeletes(bench, (nth, entries, send) =>
    nth === 1 ? Promise.resolve(nothingDeleted(entries)) : send(entries),
  );
  await bench.send(bench.chargeBody());

  const [replay] = await run.when('replayed');

  expect(replay?.delivery.receiveCount).toBe(2);
  expect(run.tally()).toEqual({ completed: 1, replayed: 1 });
  expect([bench.provider.calls.entries.length, await bench.balance(), await bench.depth()]).toEqual([1, 1_250, 0]);
});

test('M4 a message that went to the dead-letter queue after its effect is replayed when it is redriven', async () => {
  const bench = await lab.open({ visibilityTimeoutSeconds: 2, maxReceiveCount: 1 });
  const { run } = runWithDeletes(bench, (nth, entries, send) =>
    nth === 1 ? Promise.resolve(nothingDeleted(entries)) : send(entries),
  );
  await bench.send(bench.chargeBody());
  await run.when('completed');
  await until(async () => (await bench.depth(bench.deadLetterQueueUrl)) === 1);
  await bench.redrive();

  await run.when('replayed');

  expect(run.tally()).toEqual({ completed: 1, replayed: 1 });
  expect([bench.provider.calls.entries.length, await bench.balance(), await bench.depth()]).toEqual([1, 1_250, 0]);
});

test.each([
  ['the request cannot be sent', () => Promise.reject(refusedConnection())],
  ['the service has a fault', () => Promise.reject(serviceError('InternalFailure', 500))],
  ['the entry fails at the service', (entries: Entries) => Promise.resolve(allFailed(entries, false))],
] satisfies [string, (entries: Entries) => Promise<DeleteMessageBatchCommandOutput>][])(
  'M5 repeats a delete when %s, and never makes the finished message visible',
  async (_case, fail) => {
    const bench = await lab.open();
    const { run, requests, visibilities } = runWithDeletes(bench, (nth, entries, send) =>
      nth <= 3 ? fail(entries) : send(entries),
    );
    await bench.send(bench.chargeBody());

    const [report] = await run.when('completed');

    const handle = report?.delivery.receiptHandle;
    expect(requests).toEqual([[handle], [handle], [handle], [handle]]);
    expect([visibilities, await bench.depth(), run.deliveries.entries.length]).toEqual([[], 0, 1]);
  },
);

test('M5 gives up a delete after a bounded number of tries and leaves the rest to the replay', async () => {
  const bench = await lab.open({ visibilityTimeoutSeconds: 2 });
  const { run, requests, visibilities } = runWithDeletes(bench, (nth, entries, send) =>
    nth <= 6 ? Promise.resolve(allFailed(entries, false)) : send(entries),
  );
  await bench.send(bench.chargeBody());

  await run.when('replayed');

  expect(requests).toHaveLength(7);
  expect([run.tally(), visibilities, await bench.depth()]).toEqual([{ completed: 1, replayed: 1 }, [], 0]);
});

test('does not repeat a delete whose handle is refused for good', async () => {
  const bench = await lab.open({ visibilityTimeoutSeconds: 2 });
  const { run, requests } = runWithDeletes(bench, (nth, entries, send) =>
    nth === 1 ? Promise.resolve(allFailed(entries, true)) : send(entries),
  );
  await bench.send(bench.chargeBody());

  const [replay] = await run.when('replayed');

  expect(requests).toEqual([[run.deliveries.entries[0]?.receiptHandle], [replay?.delivery.receiptHandle]]);
  expect(await bench.balance()).toBe(1_250);
});

test('M16 repeats only the three of ten deletes that failed, also when the next request fails as a whole', async () => {
  const bench = await lab.open();
  const atWork = Promise.withResolvers<void>();
  bench.provider.beforeCharge = () => atWork.promise;
  const onDelete: OnDelete = async (nth, entries, send) => {
    if (nth === 2) throw serviceError('ServiceUnavailable', 503);
    if (nth > 2) return send(entries);
    const done = await send(entries.slice(0, 7));
    return { ...done, Failed: allFailed(entries.slice(7), false).Failed };
  };
  // Nothing is sent before ten wait.
  const { run, requests } = runWithDeletes(bench, onDelete, { deleteBatchWindowMs: 1_000 });
  await bench.sendAll(Array.from({ length: 10 }, (_, index) => bench.chargeBody({ requestId: `r${String(index)}` })));
  await bench.provider.calls.when(10);
  atWork.resolve();

  await run.when('completed', 10);

  const failed = requests[0]?.slice(7);
  const later = requests.slice(1).flat();
  expect(requests[0]).toHaveLength(10);
  expect(later.filter((handle) => !failed?.includes(handle))).toEqual([]);
  for (const handle of failed ?? []) expect(later).toContain(handle);
  expect([await bench.depth(), run.deliveries.entries.length]).toEqual([0, 10]);
});

test('deletes up to ten messages with one request', async () => {
  const bench = await lab.open();
  const { run, requests } = runWithDeletes(bench, (_nth, entries, send) => send(entries), {
    deleteBatchWindowMs: 1_000,
  });
  const atWork = Promise.withResolvers<void>();
  bench.provider.beforeCharge = () => atWork.promise;
  await bench.sendAll(Array.from({ length: 10 }, (_, index) => bench.chargeBody({ requestId: `r${String(index)}` })));
  await bench.provider.calls.when(10);
  atWork.resolve();

  await run.when('completed', 10);

  expect(requests.map((handles) => handles.length)).toEqual([10]);
});
