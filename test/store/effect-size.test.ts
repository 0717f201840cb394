import { describe, expect, test } from 'vitest';
import { StepBudget } from '../../src/store/effects/step-budget.ts';
import { MAX_STORED_BYTES, type StoredValue } from '../../src/store/effects/stored-value.ts';
import { MAX_ITEM_BYTES } from '../../src/store/item-size.ts';
import { useStoreBench } from '../support/store-bench.ts';
import { AFTER_THE_LEASE_MS, claimedOf, effectScene, failureOf } from '../support/store-effects.ts';

const bench = useStoreBench();

const SIXTY_KIB = 'x'.repeat(60 * 1024);
const TEN_STEPS = Array.from({ length: 10 }, (_, index) => `step-${String(index)}`);

describe('An effect record', () => {
  test('takes ten steps of 60 KiB and a response of 64 KiB, and the effects are applied', async () => {
    // Arrange
    const scene = effectScene(bench);
    const { effects } = scene.worker();
    const effect = claimedOf(await effects.claim(scene.request));
    const response = 'y'.repeat(MAX_STORED_BYTES - 2);

    // Act
    const kept: string[] = [];
    for (const step of TEN_STEPS) kept.push(await effects.storeStep(effect, step, SIXTY_KIB));
    await effects.commit(effect, scene.verdict(response));

    // Assert
    expect(kept).toEqual([...Array.from({ length: 4 }, () => 'whole'), ...Array.from({ length: 6 }, () => 'digest')]);
    expect(await scene.charged()).toEqual({ balance: 5, entry: true });
    expect(await effects.claim(scene.request)).toEqual({ kind: 'completed', response });
  });

  test('takes steps that are stored at the same time', async () => {
    // Arrange
    const scene = effectScene(bench);
    const { effects } = scene.worker();
    const effect = claimedOf(await effects.claim(scene.request));

    // Act
    const kept = await Promise.all(TEN_STEPS.map((step) => effects.storeStep(effect, step, SIXTY_KIB)));
    await effects.commit(effect, scene.verdict('y'.repeat(MAX_STORED_BYTES - 2)));

    // Assert
    expect(kept.filter((each) => each === 'whole')).toHaveLength(4);
    expect(await scene.charged()).toEqual({ balance: 5, entry: true });
  });

  test('knows in the next attempt what the steps of earlier ones take, and keeps the small ones', async () => {
    // Arrange
    const scene = effectScene(bench);
    const first = scene.worker();
    const crashed = claimedOf(await first.effects.claim(scene.request));
    for (const step of TEN_STEPS.slice(0, 4)) await first.effects.storeStep(crashed, step, SIXTY_KIB);
    const { effects } = scene.worker(AFTER_THE_LEASE_MS);

    // Act
    const effect = claimedOf(await effects.claim(scene.request));
    const kept: string[] = [];
    for (const step of TEN_STEPS.slice(4)) kept.push(await effects.storeStep(effect, step, SIXTY_KIB));
    kept.push(await effects.storeStep(effect, 'small', 'x'.repeat(10_000)));
    await effects.commit(effect, scene.verdict('y'.repeat(MAX_STORED_BYTES - 2)));

    // Assert
    expect(kept).toEqual([...TEN_STEPS.slice(4).map(() => 'digest'), 'whole']);
    expect(effect.stepResult('step-3')).toEqual({ json: JSON.stringify(SIXTY_KIB) });
    expect(await scene.charged()).toEqual({ balance: 5, entry: true });
  });

  test('takes any number of steps: what has no room even for a digest is not sent', async () => {
    // Arrange
    const scene = effectScene(bench);
    const { effects } = scene.worker();
    const effect = claimedOf(await effects.claim(scene.request));
    // The longest names that a step may have.
    const steps = Array.from({ length: 150 }, (_, index) => `s${String(index).padStart(63, '0')}`);
    for (const step of steps.slice(0, 4)) await effects.storeStep(effect, step, SIXTY_KIB);
    await effects.storeStep(effect, steps[4] ?? '', 'x'.repeat(60_700));

    // Act
    const kept: string[] = [];
    for (const step of steps.slice(5)) kept.push(await effects.storeStep(effect, step, SIXTY_KIB));
    const sent = bench.transport.count('UpdateItem');
    await effects.commit(effect, scene.verdict('y'.repeat(MAX_STORED_BYTES - 2)));

    // Assert
    const digests = kept.filter((each) => each === 'digest').length;
    expect(digests).toBe(86);
    expect(kept.filter((each) => each === 'nothing')).toHaveLength(145 - digests);
    // The claim, five steps, and the digests.
    expect(sent).toBe(6 + digests);
    expect(await scene.charged()).toEqual({ balance: 5, entry: true });
  });

  test('has room for the last error of an attempt beside full steps', async () => {
    // Arrange
    const scene = effectScene(bench);
    const { effects } = scene.worker();
    const effect = claimedOf(await effects.claim(scene.request));
    for (const step of TEN_STEPS) await effects.storeStep(effect, step, SIXTY_KIB);

    // Act
    const released = await effects.release(effect, {
      // A cut in the middle of this character would leave half a surrogate pair.
      error: `x${'😀'.repeat(1_000)}`,
      inDoubt: true,
      startAfresh: false,
    });
    const { lastError } = claimedOf(await effects.claim(scene.request));

    // Assert
    expect(released).toBe(true);
    expect(lastError).toBe(`x${'😀'.repeat(249)}\ufffd`);
  });

  test('refuses a result without JSON before anything is sent', async () => {
    const scene = effectScene(bench);
    const { effects } = scene.worker();
    const effect = claimedOf(await effects.claim(scene.request));

    const error = await failureOf(effects.storeStep(effect, 'charge', { amount: 1n }));

    expect(error).toMatchObject({ code: 'NOT_STORABLE', retryable: false });
    expect(bench.transport.count('UpdateItem')).toBe(1);
  });
});

describe('StepBudget', () => {
  const whole = (bytes: number): StoredValue => ({ json: 'x'.repeat(bytes) });

  test('leaves 64 KiB for the response and 20 KiB for the rest, however the room is used', () => {
    const budget = new StepBudget([]);
    const steps = Array.from({ length: 2_000 }, (_, index) => `step-${String(index)}`);

    const kept = steps.map((step, index) => [step, budget.take(step, whole((index * 7_919) % 65_537))] as const);

    const bytes = kept.reduce((sum, [step, stored]) => {
      if (stored === undefined) return sum;
      // As DynamoDB counts: names, values, and up to 4 bytes for each level and member.
      return sum + step.length + 20 + ('json' in stored ? 4 + stored.json.length : 11 + 64 + 6);
    }, 0);
    expect(bytes).toBeLessThan(MAX_ITEM_BYTES - MAX_STORED_BYTES - 20 * 1024);
    expect(bytes).toBeGreaterThan(290 * 1024);
  });

  test('does not count twice what is replaced', () => {
    const budget = new StepBudget([['a', { sha256: 'x'.repeat(64), bytes: 1 }]]);

    const kept = Array.from({ length: 10 }, () => budget.take('a', whole(65_000)));

    expect(kept.every((stored) => stored !== undefined && 'json' in stored)).toBe(true);
  });

  test('takes a digest for what is too large by itself', () => {
    const digest = { sha256: 'x'.repeat(64), bytes: 100_000 };

    expect(new StepBudget([]).take('a', digest)).toEqual(digest);
  });
});
