import { expect, test } from 'vitest';
import type { HeldLease } from '../../src/store/leases/held-lease.ts';
import { startHeartbeat, VisibilityLostError } from '../../src/workers/heartbeat.ts';
import { ManualClock } from '../payments/manual-clock.ts';

const HOUR_MS = 3_600_000;

/** A heartbeat on a clock of the test's, with a lease that is always held: twelve hours cannot be waited for. */
function startBeating(answer: 'changed' | 'gone' | 'failed', chance = 0.5, remainingMs = 24 * HOUR_MS) {
  const clock = new ManualClock();
  const asked: number[] = [];
  const lease = {
    renew: () => Promise.resolve(true),
    remainingMs: () => remainingMs,
    signal: new AbortController().signal,
  };
  const heartbeat = startHeartbeat({
    // Of the lease only these are used; a real one would end on the real clock.
    lease: lease as unknown as HeldLease,
    receiptHandle: 'handle',
    acknowledger: {
      delete: () => Promise.resolve(true),
      changeVisibility: (_handle, seconds) => {
        asked.push(seconds);
        return Promise.resolve(answer);
      },
    },
    heartbeatMs: HOUR_MS,
    visibilityTimeoutSeconds: 6 * 3_600,
    clock,
    random: () => chance,
  });
  const beat = async (): Promise<void> => {
    clock.advance(HOUR_MS);
    await new Promise(setImmediate);
  };
  return { clock, heartbeat, asked, beat };
}

test('never asks for more than is left of the twelve hours after the receive, and tells the loss when they are over', async () => {
  const { heartbeat, asked, beat, clock } = startBeating('changed');

  for (let hour = 1; hour <= 12; hour += 1) await beat();

  expect(asked.map((seconds) => seconds / 3_600)).toEqual([6, 6, 6, 6, 6, 6, 5, 4, 3, 2, 1]);
  expect(heartbeat.isVisibilityLost).toBe(true);
  expect(heartbeat.signal.reason).toBeInstanceOf(VisibilityLostError);
  expect(clock.pendingTimers).toBe(0);
});

test('goes on beating when SQS cannot be reached: the lease decides for how long', async () => {
  const { heartbeat, asked, beat } = startBeating('failed');

  for (let hour = 1; hour <= 3; hour += 1) await beat();

  expect([asked.length, heartbeat.signal.aborted]).toEqual([3, false]);
});

test('beats no more after it was stopped', async () => {
  const { heartbeat, asked, beat, clock } = startBeating('changed');
  await beat();

  await heartbeat.stop();
  await beat();

  expect([asked.length, clock.pendingTimers, heartbeat.signal.aborted]).toEqual([1, 0, false]);
});

test('spreads its beats by a tenth to either side', () => {
  const due = [0, 0.999].map((chance) => {
    const { clock, asked } = startBeating('changed', chance);
    let minutes = 0;
    while (clock.pendingTimers > 0 && asked.length === 0 && minutes < 120) {
      minutes += 1;
      clock.advance(60_000);
    }
    return minutes;
  });

  expect(due).toEqual([54, 66]);
});

test('beats sooner when a slow claim has used up most of the lease', async () => {
  const { clock, asked } = startBeating('changed', 0.5, HOUR_MS);

  clock.advance(HOUR_MS / 2);
  await new Promise(setImmediate);

  expect(asked).toHaveLength(1);
});
