import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { isoTime, seededRandom, sleep, systemClock, systemRandom } from '../../src/clock.ts';
import { StoreClock } from '../support/store-clock.ts';

describe('sleep', () => {
  test('resolves when its time is over and not before', async () => {
    // Arrange
    const clock = new StoreClock();
    let isOver = false;
    const slept = sleep(clock, 100).then(() => {
      isOver = true;
    });

    // Act
    clock.advance(99);
    await Promise.resolve();
    const early = isOver;
    clock.advance(1);
    await slept;

    // Assert
    expect([early, isOver]).toEqual([false, true]);
  });

  test('rejects with the reason of the signal and leaves no timer behind', async () => {
    // Arrange
    const clock = new StoreClock();
    const caller = new AbortController();
    const slept = sleep(clock, 100, caller.signal);

    // Act
    caller.abort(new Error('changed my mind'));

    // Assert
    await expect(slept).rejects.toThrow('changed my mind');
    expect(clock.pendingTimers).toBe(0);
  });

  test('does not even start under a signal that has aborted', async () => {
    // Arrange
    const clock = new StoreClock();

    // Act
    const slept = sleep(clock, 100, AbortSignal.abort(new Error('too late')));

    // Assert
    await expect(slept).rejects.toThrow('too late');
    expect(clock.pendingTimers).toBe(0);
  });

  test('an abort after its end changes nothing', async () => {
    // Arrange
    const clock = new StoreClock();
    const caller = new AbortController();
    const slept = sleep(clock, 100, caller.signal);
    clock.advance(100);

    // Act
    caller.abort();

    // Assert
    await expect(slept).resolves.toBeUndefined();
  });
});

describe('the system clock', () => {
  test('its monotonic side never goes back', () => {
    const first = systemClock.monotonicMs();
    expect(systemClock.monotonicMs()).toBeGreaterThanOrEqual(first);
  });

  test('runs what was scheduled, also for a time that is over', async () => {
    await expect(sleep(systemClock, -5)).resolves.toBeUndefined();
  });

  test('a cancelled call does not run, and cancelling twice is harmless', async () => {
    // Arrange
    let ran = false;
    const cancel = systemClock.schedule(() => {
      ran = true;
    }, 0);

    // Act
    cancel();
    cancel();
    await sleep(systemClock, 1);

    // Assert
    expect(ran).toBe(false);
  });

  test('a delay longer than timers can hold does not fire at once', async () => {
    // Arrange
    let ran = false;
    const cancel = systemClock.schedule(
      () => {
        ran = true;
      },
      3_000_000_000,
      { background: true },
    );

    // Act
    await sleep(systemClock, 2);
    cancel();

    // Assert
    expect(ran).toBe(false);
  });
});

describe('randomness', () => {
  test('the same seed gives the same numbers', () => {
    // Act
    const [left, right] = [seededRandom(42), seededRandom(42)].map((random) => Array.from({ length: 20 }, random));

    // Assert
    expect(left).toEqual(right);
  });

  test('another seed gives other numbers', () => {
    expect(seededRandom(1)()).not.toBe(seededRandom(2)());
  });

  test('every number is from 0 up to but without 1, for any seed', () => {
    fc.assert(
      fc.property(fc.integer(), (seed) => {
        for (const value of Array.from({ length: 50 }, seededRandom(seed))) {
          expect(value).toBeGreaterThanOrEqual(0);
          expect(value).toBeLessThan(1);
        }
      }),
    );
  });

  test('seeded numbers are spread evenly enough for jitter', () => {
    // Act
    const values = Array.from({ length: 10_000 }, seededRandom(7));
    const counts = Array.from(
      { length: 10 },
      (_, tenth) => values.filter((value) => Math.floor(value * 10) === tenth).length,
    );

    // Assert
    for (const count of counts) expect(Math.abs(count - 1_000)).toBeLessThan(150);
  });

  test('the system gives numbers from 0 up to but without 1', () => {
    const value = systemRandom();
    expect(value >= 0 && value < 1).toBe(true);
  });
});

test('a moment is written for people in UTC', () => {
  expect(isoTime(0)).toBe('1970-01-01T00:00:00.000Z');
});
