import fc from 'fast-check';
import { expect, test } from 'vitest';
import { fullJitterMs } from '../../src/backoff.ts';

const ALMOST_ONE = 1 - Number.EPSILON / 2;

test('the upper bound doubles with each attempt up to the cap', () => {
  // Act
  const longest = [1, 2, 3, 4, 5, 6].map((attempt) =>
    fullJitterMs(attempt, { baseMs: 100, capMs: 1_000 }, () => ALMOST_ONE),
  );

  // Assert
  expect(longest).toEqual([100, 200, 400, 800, 1_000, 1_000]);
});

test('full jitter reaches down to no delay at all', () => {
  expect(fullJitterMs(9, { baseMs: 100, capMs: 1_000 }, () => 0)).toBe(0);
});

test('every delay is a whole number between 0 and the cap, for any attempt', () => {
  fc.assert(
    fc.property(
      fc.integer({ min: 1, max: 1_000_000 }),
      fc.record({ baseMs: fc.integer({ min: 0, max: 10_000 }), capMs: fc.integer({ min: 0, max: 3_600_000 }) }),
      fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true }),
      (attempt, backoff, chance) => {
        const delayMs = fullJitterMs(attempt, backoff, () => chance);
        expect(Number.isInteger(delayMs)).toBe(true);
        expect(delayMs).toBeGreaterThanOrEqual(0);
        expect(delayMs).toBeLessThanOrEqual(backoff.capMs);
      },
    ),
  );
});
