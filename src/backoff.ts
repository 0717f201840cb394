/** Delays between tries: pure arithmetic, with the randomness handed in. */
import type { Random } from './clock.ts';

/** How delays between tries grow. */
export interface Backoff {
  /** The upper bound of the first delay. Unit: ms. */
  readonly baseMs: number;
  /** No delay is longer. Unit: ms. */
  readonly capMs: number;
}

/**
 * Exponential back-off with full jitter: a uniform draw from [0, min(cap, base * 2^(attempt - 1))].
 * @param attempt 1 for the delay after the first failure.
 * @see AWS Builders' Library, "Timeouts, retries, and backoff with jitter"
 */
export function fullJitterMs(attempt: number, backoff: Backoff, random: Random): number {
  const ceiling = Math.min(backoff.capMs, backoff.baseMs * 2 ** Math.min(attempt - 1, 30));
  return Math.round(random() * ceiling);
}
