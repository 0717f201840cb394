/**
 * Until when a holder may act, on two clocks. Pure: it is told the time and does no I/O.
 *
 * The monotonic clock stands still during a machine's suspend and the wall clock can be set; a lease is valid only
 * while both say so. It counts from before the request was sent, so it always ends before a contender's view of it.
 */
import type { Clock } from '../../clock.ts';

/** One moment on both clocks. */
export interface Instant {
  readonly wallMs: number;
  readonly monoMs: number;
}

export function instantOf(clock: Clock): Instant {
  return { wallMs: clock.nowMs(), monoMs: clock.monotonicMs() };
}

export class LeaseValidity {
  readonly #validForMs: number;
  #validUntil: Instant;

  /** @param validForMs the lease less the safety margin. */
  constructor(sentAt: Instant, validForMs: number) {
    this.#validForMs = validForMs;
    this.#validUntil = later(sentAt, validForMs);
  }

  /** A renewal that was sent at `sentAt` has succeeded. */
  renewed(sentAt: Instant): void {
    this.#validUntil = later(sentAt, this.#validForMs);
  }

  /** The time left on the more pessimistic clock; 0 when over. */
  remainingMs(now: Instant): number {
    const left = Math.min(this.#validUntil.wallMs - now.wallMs, this.#validUntil.monoMs - now.monoMs);
    // A wall clock that was set back would promise more than was ever granted.
    return Math.max(0, Math.min(left, this.#validForMs));
  }
}

function later(instant: Instant, byMs: number): Instant {
  return { wallMs: instant.wallMs + byMs, monoMs: instant.monoMs + byMs };
}
