import type { Clock } from '../../src/clock.ts';

/** A clock whose time stands still, except that waits are skipped: the time jumps to their end. */
export interface SkippingClock extends Clock {
  /** The waits that were asked for. Unit: ms. */
  readonly waitsMs: readonly number[];
  /** Lets time pass: fires the background timers that are due. */
  advance(byMs: number): void;
}

export function createSkippingClock(): SkippingClock {
  const waitsMs: number[] = [];
  const background = new Map<() => void, number>();
  let nowMs = 1_000;

  function advance(byMs: number): void {
    nowMs += byMs;
    for (const [fn, dueMs] of [...background]) {
      if (dueMs > nowMs) continue;
      background.delete(fn);
      fn();
    }
  }

  return {
    waitsMs,
    advance,
    nowMs: () => nowMs,
    monotonicMs: () => nowMs,
    schedule(fn, delayMs, options = {}) {
      if (options.background === true) {
        background.set(fn, nowMs + delayMs);
        return () => void background.delete(fn);
      }
      waitsMs.push(delayMs);
      const immediate = setImmediate(() => {
        advance(delayMs);
        fn();
      });
      return () => {
        clearImmediate(immediate);
      };
    },
  };
}
