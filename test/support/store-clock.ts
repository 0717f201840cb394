import { setImmediate } from 'node:timers';
import type { Cancel, Clock } from '../../src/clock.ts';

export interface StoreClockOptions {
  /** The wall clock at the start. Unit: ms. */
  readonly startMs?: number;
  /** `jump`: every wait that somebody awaits ends at once, and the time moves to its end. @defaultValue `stand` */
  readonly waits?: 'jump' | 'stand';
}

interface Timer {
  readonly dueMonoMs: number;
  readonly fn: () => void;
}

/**
 * Time by hand, on two clocks that can be moved apart as in real life: a wall clock that is set, a suspended machine, a
 * stalled process. A wait of 0 ms ends by itself, like setTimeout(fn, 0).
 */
export class StoreClock implements Clock {
  readonly #waits: 'jump' | 'stand';
  readonly #timers = new Set<Timer>();
  #wallMs: number;
  #monoMs = 1_000;

  constructor(options: StoreClockOptions = {}) {
    this.#wallMs = options.startMs ?? 1_800_000_000_000;
    this.#waits = options.waits ?? 'stand';
  }

  nowMs(): number {
    return this.#wallMs;
  }

  monotonicMs(): number {
    return this.#monoMs;
  }

  schedule(fn: () => void, delayMs: number, options: { background?: boolean } = {}): Cancel {
    const timer: Timer = { dueMonoMs: this.#monoMs + delayMs, fn };
    this.#timers.add(timer);
    const endsByItself = delayMs <= 0 || (this.#waits === 'jump' && options.background !== true);
    if (endsByItself) {
      setImmediate(() => {
        this.#moveTo(timer.dueMonoMs);
        this.#run(timer);
      });
    }
    return () => {
      this.#timers.delete(timer);
    };
  }

  /** Both clocks move on; each timer runs at its time. */
  advance(byMs: number): void {
    const endMs = this.#monoMs + byMs;
    for (let timer = this.#nextDue(endMs); timer !== undefined; timer = this.#nextDue(endMs)) {
      this.#moveTo(timer.dueMonoMs);
      this.#run(timer);
    }
    this.#moveTo(endMs);
  }

  /** The process does nothing for a while (SIGSTOP, a blocked loop): both clocks move, and its timers run late. */
  stall(byMs: number): void {
    this.#moveTo(this.#monoMs + byMs);
    this.runDue();
  }

  /** As `stall`, but what is due has not run yet: the code that was under way goes on first. */
  stallBeforeTimers(byMs: number): void {
    this.#moveTo(this.#monoMs + byMs);
  }

  /** Runs what is due. */
  runDue(): void {
    for (let timer = this.#nextDue(this.#monoMs); timer !== undefined; timer = this.#nextDue(this.#monoMs)) {
      this.#run(timer);
    }
  }

  /** The machine sleeps, or somebody sets the clock: the wall clock alone moves, either way. */
  moveWallClock(byMs: number): void {
    this.#wallMs += byMs;
  }

  /** Timers that have neither run nor been cancelled. */
  get pendingTimers(): number {
    return this.#timers.size;
  }

  #nextDue(untilMonoMs: number): Timer | undefined {
    return [...this.#timers]
      .filter((timer) => timer.dueMonoMs <= untilMonoMs)
      .toSorted((left, right) => left.dueMonoMs - right.dueMonoMs)[0];
  }

  #moveTo(monoMs: number): void {
    const byMs = Math.max(0, monoMs - this.#monoMs);
    this.#monoMs += byMs;
    this.#wallMs += byMs;
  }

  #run(timer: Timer): void {
    if (this.#timers.delete(timer)) timer.fn();
  }
}
