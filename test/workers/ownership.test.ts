import type { DeleteMessageBatchCommandInput } from '@aws-sdk/client-sqs';
import { expect, test } from 'vitest';
import { LeaseLostError } from '../../src/store/leases/held-lease.ts';
import { VisibilityLostError } from '../../src/workers/heartbeat.ts';
import { TestClock } from '../support/worker-clock.ts';
import { countEffect, counterKey, noteBody, noteHandler } from '../support/worker-contract.ts';
import { interceptChanges } from '../support/sqs-batches.ts';
import { interceptCommand } from '../support/worker-faults.ts';
import { workerLab, type Bench } from '../support/worker-fixture.ts';
import { Journal } from '../support/worker-journal.ts';
import { until } from '../support/until.ts';

const lab = workerLab();

/** Worker A claims the charge and stalls as a stopped process does; the returned function lets its call end. */
async function stalledOwner(bench: Bench) {
  const clock = new TestClock();
  const stall = Promise.withResolvers<void>();
  bench.provider.beforeCharge = ({ nth }) => {
    if (nth > 1) return;
    clock.freeze();
    return stall.promise;
  };
  await bench.send(bench.chargeBody());
  // With its one slot taken it receives nothing more.
  const owner = bench.run({ name: 'a', clock, concurrency: 1 });
  await bench.provider.calls.when(1);
  return { owner, stall };
}

test('M1 a late loser that fails cannot give back or change what another has finished', async () => {
  const bench = await lab.open({ visibilityTimeoutSeconds: 2 });
  const { owner, stall } = await stalledOwner(bench);
  const next = bench.run({ name: 'b' });
  const [finished] = await next.when('completed');
  const recorded = await bench.record();

  stall.reject(new Error('late failure'));
  const [lost] = await owner.when('lost');
  await bench.send(bench.chargeBody());
  await next.when('replayed');

  expect(finished?.outcome).toMatchObject({ takenOver: true, attempt: 2 });
  expect(lost?.outcome).toEqual({ kind: 'lost', reason: 'stolen' });
  expect(await bench.record()).toEqual(recorded);
  expect([bench.provider.charges.length, await bench.balance()]).toEqual([1, 1_250]);
});

test('M1 a late loser that succeeds cannot commit a second time', async () => {
  const bench = await lab.open({ visibilityTimeoutSeconds: 2 });
  const { owner, stall } = await stalledOwner(bench);
  const next = bench.run({ name: 'b' });
  await next.when('completed');
  const recorded = await bench.record();

  stall.resolve();
  const [lost] = await owner.when('lost');

  expect(lost?.outcome).toEqual({ kind: 'lost', reason: 'stolen' });
  expect(await bench.record()).toEqual(recorded);
  expect([bench.provider.charges.length, await bench.balance()]).toEqual([1, 1_250]);
});

test('M1 a late loser that succeeds cannot apply an effect that has no condition of its own', async () => {
  const bench = await lab.open({ visibilityTimeoutSeconds: 2 });
  const clock = new TestClock();
  const stall = Promise.withResolvers<void>();
  const handlerOf = (before: () => Promise<void> | undefined) =>
    noteHandler(async () => {
      await before();
      return { kind: 'completed', response: null, effects: [countEffect(bench.accountId)] };
    });
  const stallingOnce = (): Promise<void> => {
    clock.freeze();
    return stall.promise;
  };
  await bench.send(noteBody({ id: 'n1', text: '' }));
  const owner = bench.run({ name: 'a', clock, concurrency: 1, handlers: [handlerOf(stallingOnce)] });
  await owner.deliveries.when(1);
  const next = bench.run({ name: 'b', handlers: [handlerOf(() => undefined)] });
  await next.when('completed');

  stall.resolve();
  const [lost] = await owner.when('lost');

  expect(lost?.outcome).toEqual({ kind: 'lost', reason: 'stolen' });
  expect(await bench.store.get(counterKey(bench.accountId))).toMatchObject({ value: 1 });
});

test('M1 a late loser does not free the record while the new owner works', async () => {
  const bench = await lab.open({ visibilityTimeoutSeconds: 2 });
  const { owner, stall } = await stalledOwner(bench);
  const atWork = Promise.withResolvers<void>();
  bench.provider.beforeAnswer = () => atWork.promise;
  const next = bench.run({ name: 'b' });
  await bench.provider.calls.when(2);

  stall.reject(new Error('late failure'));
  await owner.when('lost');
  const recorded = await bench.record();
  atWork.resolve();
  await next.when('completed');

  expect(recorded).toMatchObject({ status: 'IN_PROGRESS', holder: 'b', owner: expect.any(String) as string });
  expect([bench.provider.charges.length, await bench.balance()]).toEqual([1, 1_250]);
});

test('L9 a stopped process that was taken over from makes no outside call when it goes on', async () => {
  const bench = await lab.open({ visibilityTimeoutSeconds: 2 });
  const clock = new TestClock();
  const stall = Promise.withResolvers<void>();
  const calls: string[] = [];
  const lateErrors = new Journal<unknown>();
  const handlerOf = (name: string) =>
    noteHandler(async (_message, { step }) => {
      if (name === 'a') {
        clock.freeze();
        await stall.promise;
      }
      const call = (): Promise<number> => Promise.resolve(calls.push(name));
      await step('call', call, { idempotentForMs: 3_600_000 }).catch((error: unknown) => {
        lateErrors.add(error);
        throw error;
      });
      return { kind: 'completed', response: name, effects: [] };
    });
  await bench.send(noteBody({ id: 'n1', text: '' }));
  const owner = bench.run({ name: 'a', clock, concurrency: 1, handlers: [handlerOf('a')] });
  await owner.deliveries.when(1);
  const next = bench.run({ name: 'b', handlers: [handlerOf('b')] });
  await next.when('completed');

  clock.thaw();
  const [lost] = await owner.when('lost');
  stall.resolve();
  const [lateError] = await lateErrors.when(1);

  expect(lost?.outcome.kind).toBe('lost');
  expect(lateError).toBeInstanceOf(LeaseLostError);
  expect(calls).toEqual(['b']);
});

test('L25 a wall clock that jumps past the lease costs a renewal and not the charge', async () => {
  const bench = await lab.open();
  const clock = new TestClock();
  bench.provider.beforeCharge = () => {
    clock.setAhead(3_600_000);
  };
  await bench.send(bench.chargeBody());
  const run = bench.run({ clock });

  const [report] = await run.when('completed');

  expect(report?.outcome).toMatchObject({ attempt: 1 });
  expect(await bench.balance()).toBe(1_250);
});

test('M6 hides five concurrent copies while the owner works, and spends no attempt on them', async () => {
  const bench = await lab.open();
  const atWork = Promise.withResolvers<void>();
  bench.provider.beforeCharge = () => atWork.promise;
  await bench.sendAll(Array.from({ length: 5 }, () => bench.chargeBody()));
  const run = bench.run({ maxAttempts: 1 });
  const busy = await run.when('busy', 4);
  atWork.resolve();

  await run.when('replayed', 4);

  expect(busy[0]?.outcome).toMatchObject({ kind: 'busy', holder: 'worker' });
  expect(run.tally()).toMatchObject({ completed: 1, replayed: 4 });
  expect([bench.provider.calls.entries.length, await bench.balance()]).toEqual([1, 1_250]);
  expect([await bench.depth(), await bench.deadLetters()]).toEqual([0, []]);
});

test('M11 a duplicate that finds the owner at work writes nothing', async () => {
  const bench = await lab.open();
  const atWork = Promise.withResolvers<void>();
  bench.provider.beforeCharge = () => atWork.promise;
  await bench.send(bench.chargeBody());
  // So long a lease that no beat changes the record during the test.
  const run = bench.run({ lease: { leaseMs: 20_000 } });
  await bench.provider.calls.when(1);
  const recorded = await bench.record();
  await bench.send(bench.chargeBody());
  await run.when('busy');

  const afterwards = await bench.record();
  atWork.resolve();
  const [report] = await run.when('completed');

  expect(afterwards).toEqual(recorded);
  expect(report?.outcome).toMatchObject({ attempt: 1 });
});

test('M14 a dead receipt handle stops the beats and the handler, and nothing is deleted', async () => {
  const bench = await lab.open({ visibilityTimeoutSeconds: 2 });
  const beats: string[] = [];
  const deletes: string[] = [];
  bench.provider.beforeCharge = ({ nth, signal }) => {
    if (nth > 1) return;
    return new Promise((_resolve, reject) => {
      signal?.addEventListener('abort', () => {
        reject(signal.reason as Error);
      });
    });
  };
  await bench.send(bench.chargeBody());
  const run = bench.run({
    prepare: ({ client }) => {
      interceptChanges(client, ({ ReceiptHandle = '' }) => {
        beats.push(ReceiptHandle);
        return beats.length === 1 ? 'ReceiptHandleIsInvalid' : undefined;
      });
      interceptCommand<DeleteMessageBatchCommandInput, never>(client, 'DeleteMessageBatchCommand', (input, send) => {
        deletes.push(...(input.Entries ?? []).map((entry) => entry.ReceiptHandle ?? ''));
        return send();
      });
    },
  });

  const [lost] = await run.when('lost');
  const [completed] = await run.when('completed');

  const deadHandle = lost?.delivery.receiptHandle;
  expect(lost?.outcome).toEqual({ kind: 'lost', reason: 'visibility' });
  expect(bench.provider.calls.entries[0]?.signal?.reason).toBeInstanceOf(VisibilityLostError);
  expect(beats.filter((handle) => handle === deadHandle)).toHaveLength(1);
  expect(deletes).toEqual([completed?.delivery.receiptHandle]);
  expect([completed?.outcome, await bench.balance()]).toMatchObject([{ takenOver: true, attempt: 2 }, 1_250]);
});

test('a message that was deleted while its handler works is told as lost', async () => {
  const bench = await lab.open({ visibilityTimeoutSeconds: 2 });
  const atWork = Promise.withResolvers<void>();
  bench.provider.beforeCharge = () => atWork.promise;
  await bench.send(bench.chargeBody());
  const run = bench.run();
  const [delivery] = await run.deliveries.when(1);
  await bench.discard(delivery?.receiptHandle);

  const [lost] = await run.when('lost');
  atWork.resolve();

  expect(lost?.outcome).toEqual({ kind: 'lost', reason: 'visibility' });
  expect([await bench.depth(), await bench.ledgerEntry()]).toEqual([0, undefined]);
});

test('a beat that is under way is over before the message is settled', async () => {
  const bench = await lab.open({ visibilityTimeoutSeconds: 2 });
  const order: string[] = [];
  const atWork = Promise.withResolvers<void>();
  bench.provider.beforeCharge = ({ nth }) => (nth === 1 ? atWork.promise : undefined);
  await bench.send(bench.chargeBody());
  const run = bench.run({
    prepare: ({ client }) => {
      const onChange = async ({
        VisibilityTimeout,
      }: {
        VisibilityTimeout?: number | undefined;
      }): Promise<undefined> => {
        if (VisibilityTimeout !== 2) order.push('settlement');
        else if (order.length === 0) {
          order.push('beat begins');
          atWork.reject(new Error('the handler fails while the beat is on its way'));
          await until(async () => (await bench.record())?.['status'] === 'FAILED');
        }
      };
      const onAnswer = ({ VisibilityTimeout }: { VisibilityTimeout?: number | undefined }): void => {
        if (VisibilityTimeout === 2) order.push('beat ends');
      };
      interceptChanges(client, onChange, { onAnswer });
    },
  });

  await run.when('completed');

  expect(order).toEqual(['beat begins', 'beat ends', 'settlement']);
});

test('M15 keeps a message hidden for as long as its handler works, with few changes of its visibility', async () => {
  const bench = await lab.open({ visibilityTimeoutSeconds: 2 });
  let beats = 0;
  const atWork = Promise.withResolvers<void>();
  bench.provider.beforeCharge = () => atWork.promise;
  await bench.send(bench.chargeBody());
  const run = bench.run({
    prepare: ({ client }) => {
      interceptChanges(client, () => {
        beats += 1;
        // Three beats of a second: longer than the lease and the visibility time-out would last by themselves.
        if (beats === 3) atWork.resolve();
        return undefined;
      });
    },
  });

  const [report] = await run.when('completed');

  expect(report?.outcome).toMatchObject({ attempt: 1, takenOver: false });
  expect([run.deliveries.entries.length, beats]).toEqual([1, 3]);
});
