import { ChangeMessageVisibilityCommand } from '@aws-sdk/client-sqs';
import { expect, test } from 'vitest';
import { interceptChanges } from '../support/sqs-batches.ts';
import { workerLab } from '../support/worker-fixture.ts';

const lab = workerLab();
const LEASE = { leaseMs: 20_000, heartbeatMs: 5_000 } as const;

test('L26 a redelivery while the first copy runs is put off until the lease ends, and is no failed attempt', async () => {
  // Arrange
  const bench = await lab.open();
  const atWork = Promise.withResolvers<void>();
  bench.provider.beforeCharge = () => atWork.promise;
  await bench.send(bench.chargeBody());
  const first = bench.run({ name: 'a', lease: LEASE, concurrency: 1, maxAttempts: 1 });
  const [delivery] = await first.deliveries.when(1);
  await bench.provider.calls.when(1);
  const hiddenFor: number[] = [];
  const second = bench.run({
    name: 'b',
    lease: LEASE,
    maxAttempts: 1,
    prepare: ({ client }) => {
      interceptChanges(client, ({ VisibilityTimeout = -1 }) => {
        hiddenFor.push(VisibilityTimeout);
        return undefined;
      });
    },
  });

  // Act: the message becomes visible too early.
  await bench.client.send(
    new ChangeMessageVisibilityCommand({
      QueueUrl: bench.queueUrl,
      ReceiptHandle: delivery?.receiptHandle,
      VisibilityTimeout: 0,
    }),
  );
  const [busy] = await second.when('busy');
  const record = await bench.record();
  atWork.resolve();
  await first.outcomes.when(1);

  // Assert
  expect(busy).toMatchObject({ outcome: { kind: 'busy', holder: 'a' }, delivery: { receiveCount: 2 } });
  expect(hiddenFor).toHaveLength(1);
  expect(hiddenFor[0]).toBeGreaterThanOrEqual(LEASE.leaseMs / 2_000);
  expect(hiddenFor[0]).toBeLessThanOrEqual((LEASE.leaseMs / 1_000) * 1.5);
  expect(record).toMatchObject({ status: 'IN_PROGRESS', attempts: 1 });
  expect(first.tally()).toEqual({ completed: 1 });
  expect(second.tally()).toEqual({ busy: 1 });
  expect([bench.provider.calls.entries.length, await bench.balance()]).toEqual([1, 1_250]);
});
