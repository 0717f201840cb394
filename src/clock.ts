/**
 * The only user of Date, performance, timers and Math.random, so that a test can put its own in their place and a run
 * can be repeated from a seed.
 */

/** Ends a scheduled call; harmless when it already ran. */
export type Cancel = () => void;

/** Where the time comes from. */
export interface Clock {
  /** Wall clock, ms since the epoch. May jump either way. */
  nowMs(): number;
  /** Never goes back, ms from an arbitrary start. Stands still while the machine is suspended (Linux). */
  monotonicMs(): number;
  /** Calls `fn` once after `delayMs`. `background` timers do not keep the process alive. */
  schedule(fn: () => void, delayMs: number, options?: { background?: boolean }): Cancel;
}

/** Where chance comes from: a number in [0, 1). */
export type Random = () => number;

/** The longest delay that setTimeout keeps; a longer one would fire at once. */
const MAX_DELAY_MS = 2_147_483_647;

export const systemClock: Clock = {
  nowMs: () => Date.now(),
  monotonicMs: () => performance.now(),
  schedule(fn, delayMs, options = {}) {
    const timer = setTimeout(fn, Math.min(Math.max(0, delayMs), MAX_DELAY_MS));
    if (options.background === true) timer.unref();
    return () => {
      clearTimeout(timer);
    };
  },
};

export const systemRandom: Random = () => Math.random();

/** A moment for people and logs: `2026-11-30T12:00:00.000Z`. */
export function isoTime(epochMs: number): string {
  return new Date(epochMs).toISOString();
}

/**
 * Waits `delayMs`, or less when `signal` aborts.
 * @throws the signal's reason when it aborts first.
 */
export function sleep(clock: Clock, delayMs: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    if (signal?.aborted === true) {
      reject(signal.reason as Error);
      return;
    }
    const onAbort = (): void => {
      cancel();
      reject(signal?.reason as Error);
    };
    const cancel = clock.schedule(() => {
      signal?.removeEventListener('abort', onAbort);
      resolve();
    }, delayMs);
    signal?.addEventListener('abort', onAbort, { once: true });
  });
}

/**
 * Repeatable randomness (mulberry32): the same seed gives the same numbers on every machine.
 * Not for secrets.
 */
export function seededRandom(seed: number): Random {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296;
  };
}
