import fc from 'fast-check';
import { expect, test } from 'vitest';
import { WORKER_DEFAULTS } from '../../src/workers/options.ts';
import { settlementOf, type DeadLetterCause, type Outcome, type SettlementPolicy } from '../../src/workers/outcome.ts';

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

const parked: [Outcome, DeadLetterCause][] = [
  [
    { kind: 'conflict', payloadHash: 'aa', recordedHash: 'bb' },
    { reason: 'conflict', detail: 'payload hash aa, recorded bb', payloadHash: 'aa', recordedHash: 'bb' },
  ],
  [
    { kind: 'exhausted', error: 'down', attempts: 5 },
    { reason: 'exhausted', detail: 'down', attempts: 5 },
  ],
  [
    { kind: 'exhausted', error: 'down', attempts: 5, payloadHash: 'aa' },
    { reason: 'exhausted', detail: 'down', attempts: 5, payloadHash: 'aa' },
  ],
  [
    { kind: 'invalid', code: 'SCHEMA', reason: 'payload.a: wrong' },
    { reason: 'invalid', detail: 'SCHEMA: payload.a: wrong' },
  ],
];

test.each(parked)('dead-letters $kind with a reason and what is known about it', (outcome, cause) => {
  expect(settlementOf(outcome, 1, policy(0.5))).toEqual({ kind: 'deadLetter', ...cause });
});

test('touches nothing after a loss', () => {
  expect(settlementOf({ kind: 'lost', reason: 'stolen' }, 1, policy(0.5))).toEqual({ kind: 'leave' });
});

test('hides for whole seconds from 0 to 12 hours, whatever the outcome, the count and the chance', () => {
  const hidden = fc.oneof(
    waits.map((waitMs): Outcome => ({ kind: 'busy', holder: 'other', waitMs })),
    fc
      .record(
        {
          attempt: fc.integer({ min: 0, max: 100_000 }),
          // Also what only code without types can ask for.
          retryAfterMs: fc.oneof(fc.integer({ min: 0, max: 43_200_000 }), fc.double()),
          isStoreFault: fc.boolean(),
          countsAsAttempt: fc.boolean(),
        },
        { requiredKeys: ['attempt'] },
      )
      .map((retry): Outcome => ({ kind: 'retry', error: '', ...retry })),
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

test('waits as long as a handler asks for, never less, and hardly more', () => {
  const asked = fc.integer({ min: 0, max: 43_199_000 });
  fc.assert(
    fc.property(asked, counts, chances, (retryAfterMs, receiveCount, chance) => {
      const seconds = secondsOf({ kind: 'retry', error: '', attempt: 1, retryAfterMs }, receiveCount, policy(chance));
      expect(seconds * 1_000).toBeGreaterThanOrEqual(retryAfterMs);
      expect(seconds * 1_000).toBeLessThan(retryAfterMs + 1_500);
    }),
  );
  expect(secondsOf({ kind: 'retry', error: '', attempt: 1, retryAfterMs: 0 }, 1, policy(0.9))).toBe(0);
});

test.each([Number.NaN, -1, Number.POSITIVE_INFINITY, 43_200_001])(
  'uses the back-off instead of a delay of %d ms, which no queue can keep',
  (retryAfterMs) => {
    expect(secondsOf({ kind: 'retry', error: '', attempt: 3, retryAfterMs }, 1, policy(1))).toBe(4);
  },
);

/** How long a message lasts on its queue when the store is down all the time. Unit: s. */
function outageSeconds(receives: number, chance: number): number {
  const waits = Array.from({ length: receives }, (_, index) =>
    secondsOf({ kind: 'retry', error: '', attempt: index + 1, isStoreFault: true }, index + 1, {
      retryBackoff: WORKER_DEFAULTS.retryBackoff,
      random: () => chance,
    }),
  );
  return waits.reduce((sum, each) => sum + each);
}

test('an outage of the store may last more than three days before it has used up 100 receives', () => {
  for (const chance of [0, 0.5, 0.999]) expect(outageSeconds(100, chance)).toBeGreaterThan(3 * 86_400);
});

test('an outage of the store of four hours costs a message no more than 20 receives', () => {
  for (const chance of [0, 0.5, 0.999]) expect(outageSeconds(20, chance)).toBeGreaterThan(4 * 3_600);
});

test('a message is back within an hour and about as long as the outage has lasted', () => {
  fc.assert(
    fc.property(fc.integer({ min: 4, max: 1_000 }), chances, (receiveCount, chance) => {
      const outcome: Outcome = { kind: 'retry', error: '', attempt: receiveCount, isStoreFault: true };
      const how = { retryBackoff: WORKER_DEFAULTS.retryBackoff, random: () => chance };
      const seconds = secondsOf(outcome, receiveCount, how);
      expect(seconds).toBeLessThanOrEqual(Math.min(3_600, 2 * 2 ** (receiveCount - 1)));
      expect(seconds).toBeGreaterThanOrEqual(0.85 * Math.min(3_600, 2 * 2 ** (receiveCount - 1)));
    }),
  );
});

test('the first failures of the store are tried again as soon as any other', () => {
  const outcome: Outcome = { kind: 'retry', error: '', attempt: 2, isStoreFault: true };

  expect([secondsOf(outcome, 3, policy(0)), secondsOf(outcome, 3, policy(1))]).toEqual([0, 2]);
});

test('waiting that is no attempt does not use up the receives either, however short the delay that is asked for', () => {
  const outcome: Outcome = { kind: 'retry', error: '', attempt: 1, retryAfterMs: 1_000, countsAsAttempt: false };
  const seconds = Array.from({ length: 100 }, (_, index) => secondsOf(outcome, index + 1, policy(1)));

  expect(seconds.slice(0, 6)).toEqual([2, 2, 2, 7, 14, 28]);
  expect(seconds.reduce((sum, each) => sum + each)).toBeGreaterThan(3 * 86_400);
});
