import { systemClock, type Cancel, type Clock } from '../../src/clock.ts';

/** The system's clock, until a test sets its wall clock or lets it stand still. */
export class TestClock implements Clock {
  #aheadMs = 0;
  #frozen: { readonly wallMs: number; readonly monoMs: number } | undefined;
  readonly #due: (() => void)[] = [];

  nowMs(): number {
    return (this.#frozen?.wallMs ?? systemClock.nowMs()) + this.#aheadMs;
  }

  monotonicMs(): number {
    return this.#frozen?.monoMs ?? systemClock.monotonicMs();
  }

  schedule(fn: () => void, delayMs: number, options?: { background?: boolean }): Cancel {
    let isCancelled = false;
    const run = (): void => {
      if (!isCancelled) fn();
    };
    const cancel = systemClock.schedule(
      () => {
        if (this.#frozen === undefined) run();
        else this.#due.push(run);
      },
      delayMs,
      options,
    );
    return () => {
      isCancelled = true;
      cancel();
    };
  }

  /** Sets the wall clock forward; the monotonic clock does not notice. */
  setAhead(byMs: number): void {
    this.#aheadMs += byMs;
  }

  /** No time passes and no timer fires, as in a process that is stopped. */
  freeze(): void {
    this.#frozen = { wallMs: systemClock.nowMs(), monoMs: systemClock.monotonicMs() };
  }

  /** Goes on at the time it is by now; what was due meanwhile runs. */
  thaw(): void {
    this.#frozen = undefined;
    for (const run of this.#due.splice(0)) run();
  }
}
