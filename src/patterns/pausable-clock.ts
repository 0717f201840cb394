/** A process that stands still, as after SIGSTOP: time goes on, and none of its timers runs until it wakes up. */
import type { Cancel, Clock } from '../clock.ts';

export interface PausableClock extends Clock {
  pause(): void;
  /** What fell due meanwhile runs now. */
  resume(): void;
}

export function createPausableClock(clock: Clock): PausableClock {
  let isPaused = false;
  const due = new Set<() => void>();
  return {
    nowMs: () => clock.nowMs(),
    monotonicMs: () => clock.monotonicMs(),
    schedule(fn, delayMs, options): Cancel {
      const cancel = clock.schedule(
        () => {
          if (isPaused) due.add(fn);
          else fn();
        },
        delayMs,
        options,
      );
      return () => {
        cancel();
        due.delete(fn);
      };
    },
    pause() {
      isPaused = true;
    },
    resume() {
      isPaused = false;
      const late = [...due];
      due.clear();
      for (const fn of late) fn();
    },
  };
}
