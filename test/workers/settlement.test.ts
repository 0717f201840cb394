import fc from 'fast-check';
import { expect, test } from 'vitest';
import { settlementOf, type Outcome, type SettlementPolicy } from '../../src/workers/outcome.ts';

const retryBackoff = { baseMs: 1_000, capMs: 300_000 };

function policy(chance: number): SettlementPolicy {
  return { retryBackoff, random: () => chance };
}

function secondsOf(outcome: Outcome, receiveCount: number, how: SettlementPolicy): number {
  const settlement = settlementOf(outcome, receiveCount, how);
  if (settlement.kind !== 'hide') throw new Error(`${outcome.kind} does not hide`);
  return settlement.seconds;
}

const chances = fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true });
const waits = fc.integer({ min: 0, max: 10 * 86_400_000 });
const counts = fc.integer({ min: 0, max: 1_000_000 });

const deleted: Outcome[] = [
  { kind: 'completed', response: null, attempt: 1, takenOver: false },
  { kind: 'replayed', answer: { status: 'COMPLETED', response: null } },
  { kind: 'rejected', reason: 'no stock', attempt: 1, takenOver: false },
];

test.each(deleted.map((outcome) => [outcome.kind, outcome] as const))('deletes what is %s', (_kind, outcome) => {
  expect(settlementOf(outcome, 99, policy(0.5))).toEqual({ kind: 'delete' });
});

const parked: [Outcome, string, string][] = [
  [{ kind: 'conflict', payloadHash: 'aa', recordedHash: 'bb' }, 'conflict', 'payload hash aa, recorded bb'],
  [{ kind: 'exhausted', error: 'down', attempts: 5 }, 'exhausted', 'down'],
  [{ kind: 'invalid', code: 'SCHEMA', reason: 'payload.a: wrong' }, 'invalid', 'SCHEMA: payload.a: wrong'],
];

test.each(parked)('dead-letters $kind with a reason and a detail', (outcome, reason, detail) => {
  expect(settlementOf(outcome, 1, policy(0.5))).toEqual({ kind: 'deadLetter', reason, detail });
});

test('touches nothing after a loss', () => {
  expect(settlementOf({ kind: 'lost', reason: 'stolen' }, 1, policy(0.5))).toEqual({ kind: 'leave' });
});

test('hides for whole seconds from 0 to 12 hours, whatever the outcome, the count and the chance', () => {
  const hidden = fc.oneof(
    waits.map((waitMs): Outcome => ({ kind: 'busy', holder: 'other', waitMs })),
    fc.integer({ min: 0, max: 100_000 }).map((attempt): Outcome => ({ kind: 'retry', error: '', attempt })),
  );
  const backoffs = fc.record({ baseMs: fc.integer({ min: 1, max: 1e9 }), capMs: fc.integer({ min: 1, max: 1e12 }) });
  const policies = fc.record({ retryBackoff: backoffs, random: chances.map((chance) => () => chance) });
  fc.assert(
    fc.property(hidden, counts, policies, (outcome, receiveCount, how) => {
      const seconds = secondsOf(outcome, receiveCount, how);
      expect(Number.isInteger(seconds) && seconds >= 0 && seconds <= 43_200).toBe(true);
    }),
  );
});

test('a busy key is never looked at before its lease is over, unless that is more than an hour away', () => {
  fc.assert(
    fc.property(waits, counts, chances, (waitMs, receiveCount, chance) => {
      const seconds = secondsOf({ kind: 'busy', holder: 'other', waitMs }, receiveCount, policy(chance));
      expect(seconds * 1_000).toBeGreaterThanOrEqual(Math.min(waitMs, 3_600_000));
    }),
  );
});

test('a busy key is looked at less often with each receive, but at least once an hour', () => {
  fc.assert(
    fc.property(waits, counts, chances, (waitMs, receiveCount, chance) => {
      const outcome: Outcome = { kind: 'busy', holder: 'other', waitMs };
      const seconds = secondsOf(outcome, receiveCount, policy(chance));
      expect(secondsOf(outcome, receiveCount + 1, policy(chance))).toBeGreaterThanOrEqual(seconds);
      expect(seconds).toBeLessThanOrEqual(3_601);
    }),
  );
});

test('waiting for a lease of 20 s takes 20 receives and more than 12 hours before it reaches a count of 30', () => {
  const seconds = Array.from({ length: 30 }, (_, index) =>
    secondsOf({ kind: 'busy', holder: 'other', waitMs: 20_000 }, index + 1, policy(0)),
  );

  expect(seconds.slice(0, 6)).toEqual([20, 20, 20, 40, 80, 160]);
  expect(seconds.at(-1)).toBe(3_600);
  expect(seconds.reduce((sum, each) => sum + each)).toBeGreaterThan(43_200);
});

test('tries again after a delay drawn from a range that doubles with each attempt up to the cap', () => {
  const longest = [1, 2, 3, 9, 10, 1_000].map((attempt) =>
    secondsOf({ kind: 'retry', error: '', attempt }, 1, policy(1)),
  );

  expect(longest).toEqual([1, 2, 4, 256, 300, 300]);
  expect(secondsOf({ kind: 'retry', error: '', attempt: 10 }, 1, policy(0))).toBe(0);
  expect(secondsOf({ kind: 'retry', error: '', attempt: 10 }, 1, policy(0.5))).toBe(150);
});
