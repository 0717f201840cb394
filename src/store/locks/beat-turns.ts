/** Beats of different locks run side by side, so that a slow one delays no other; but not all of a thousand at once. */
import type { BeatTurn } from '../leases/held-lease.ts';

const MAX_BEATS_AT_ONCE = 32;

export function createBeatTurns(maxAtOnce: number = MAX_BEATS_AT_ONCE): BeatTurn {
  const waiting: (() => void)[] = [];
  let running = 0;
  return async (beat) => {
    if (running >= maxAtOnce) {
      await new Promise<void>((resolve) => {
        waiting.push(resolve);
      });
    } else {
      running += 1;
    }
    try {
      return await beat();
    } finally {
      // The place goes on to the next in line, without being free in between.
      const next = waiting.shift();
      if (next === undefined) running -= 1;
      else next();
    }
  };
}
