import { systemClock, type Cancel, type Clock } from '../../src/clock.ts';

/** Stands still; whoever waits moves it on at once by as long as the wait. */
export class JumpingClock implements Clock {
  #passedMs = 0;

  nowMs(): number {
    return 1_700_000_000_000 + this.#passedMs;
  }

  monotonicMs(): number {
    return this.#passedMs;
  }

  schedule(fn: () => void, delayMs: number): Cancel {
    return systemClock.schedule(() => {
      this.#passedMs += delayMs;
      fn();
    }, 0);
  }

  jump(byMs: number): void {
    this.#passedMs += byMs;
  }
}
