import { expect, test } from 'vitest';
import type { Charge } from '../../src/messages/charge.ts';
import { processLab, type Scene } from '../support/process-bench.ts';
import { workUntilKilled, type CrashPoint } from '../support/process-crash.ts';
import { until } from '../support/until.ts';

/** The effects are committed, the message is not acknowledged. */
const BEFORE_DELETE: CrashPoint = { point: 'delete', phase: 'before' };

const lab = processLab();

test('M2 a charge whose worker was killed after its claim is taken over and costs no more than two receives', async () => {
  // Arrange
  const scene = await lab.open({ visibilityTimeoutSeconds: 5, maxReceiveCount: 3 });
  const charge = scene.charge();
  await scene.sendCharge(charge);
  // So few receives leave no room for the default attempts.
  const flags = ['--visibility-seconds', '5', '--queue-rules', 'warn'];
  await workUntilKilled(scene, { point: 'claim', phase: 'after' }, flags);
  const claimed = await scene.record(charge.requestId);

  // Act
  const survivor = scene.work(flags);
  const outcome = await survivor.event({ event: 'outcome', key: charge.requestId });

  // Assert
  expect(claimed).toMatchObject({ status: 'IN_PROGRESS' });
  expect(outcome).toMatchObject({ outcome: 'completed', takenOver: true, attempt: 2 });
  expect(outcome['receiveCount']).toBeLessThanOrEqual(2);
  await expectChargedOnce(scene, charge);
});

test('M4 a message that comes back after its worker was killed between commit and delete is answered like a later duplicate', async () => {
  // Arrange
  const scene = await lab.open({ visibilityTimeoutSeconds: 3 });
  const charge = scene.charge();
  await scene.sendCharge(charge);
  await workUntilKilled(scene, BEFORE_DELETE);
  const completed = await scene.record(charge.requestId);

  // Act
  const survivor = scene.work();
  const outcome = await survivor.event({ event: 'outcome', key: charge.requestId });
  const duplicateId = await scene.sendCharge(charge);
  const later = await survivor.event({ event: 'outcome', messageId: duplicateId });

  // Assert
  expect(completed).toMatchObject({ status: 'COMPLETED' });
  expect(outcome).toMatchObject({ outcome: 'replayed', receiveCount: 2 });
  expect(outcome['answer']).toMatch(/^[0-9a-f]{16}$/);
  expect(later).toMatchObject({ outcome: 'replayed', answer: outcome['answer'] });
  await expectChargedOnce(scene, charge);
});

test('M4 a message that the queue itself dead-lettered after its commit is replayed when it is redriven', async () => {
  // Arrange
  const scene = await lab.open({ visibilityTimeoutSeconds: 3, maxReceiveCount: 1 });
  const charge = scene.charge();
  await scene.sendCharge(charge);
  const flags = ['--queue-rules', 'warn'];
  await workUntilKilled(scene, BEFORE_DELETE, flags);
  const survivor = scene.work(flags);
  await until(async () => (await scene.deadLetterDepth()) === 1);
  const listed = await scene.run(['dlq', 'ls', 'charges', '--json']);

  // Act
  const left = await scene.run(['dlq', 'redrive', 'charges', '--yes', '--json']);
  const redriven = await scene.run(['dlq', 'redrive', 'charges', '--include-applied', '--yes', '--json']);
  const outcome = await survivor.event({ event: 'outcome', key: charge.requestId });

  // Assert
  expect(listed.json()).toMatchObject([{ reason: 'maxReceiveCount (moved by the queue itself)', count: 1 }]);
  expect(left.json()).toMatchObject([{ moved: 0, left: 1, verdicts: { applied: { left: 1 } } }]);
  expect(redriven.json()).toMatchObject([{ moved: 1 }]);
  expect(outcome).toMatchObject({ outcome: 'replayed' });
  await expectChargedOnce(scene, charge);
});

async function expectChargedOnce(scene: Scene, { requestId, accountId, amountMinor }: Charge): Promise<void> {
  const providerCharges = await scene.providerCharges(requestId);
  const ledger = await scene.ledger(requestId);
  expect(providerCharges).toHaveLength(1);
  expect(ledger).toMatchObject([{ amountMinor, providerChargeId: providerCharges[0]?.chargeId }]);
  expect(await scene.balance(accountId)).toBe(amountMinor);
  expect(await scene.record(requestId)).toMatchObject({ status: 'COMPLETED' });
  expect(await scene.depth()).toBe(0);
  expect(await scene.deadLetterDepth()).toBe(0);
}
