import type { Cancel, Clock } from '../../src/clock.ts';

/** A clock that stands still until it is told to go on. */
export class ManualClock implements Clock {
  #nowMs: number;
  readonly #timers = new Set<{ dueMs: number; fn: () => void }>();

  constructor(startMs = 1_700_000_000_000) {
    this.#nowMs = startMs;
  }

  nowMs(): number {
    return this.#nowMs;
  }

  monotonicMs(): number {
    return this.#nowMs;
  }

  schedule(fn: () => void, delayMs: number): Cancel {
    const timer = { dueMs: this.#nowMs + delayMs, fn };
    this.#timers.add(timer);
    return () => {
      this.#timers.delete(timer);
    };
  }

  /** Timers that have neither run nor been cancelled. */
  get pendingTimers(): number {
    return this.#timers.size;
  }

  /** Moves on and runs what is due. */
  advance(byMs: number): void {
    this.#nowMs += byMs;
    for (const timer of [...this.#timers]) {
      if (timer.dueMs <= this.#nowMs && this.#timers.delete(timer)) timer.fn();
    }
  }
}
