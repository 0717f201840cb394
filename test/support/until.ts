import { sleep, systemClock } from '../../src/clock.ts';

const LOOK_EVERY_MS = 10;

/**
 * Waits until `fn` gives anything but false, null or undefined, and returns that.
 * @param options `withinMs`: when to give up. It bounds a failing test and says nothing about speed. Unit: ms. @defaultValue 10000
 * @throws an Error that shows the condition when the time is over.
 */
export async function until<Value>(
  fn: () => Value | Promise<Value>,
  options: { withinMs?: number } = {},
): Promise<NonNullable<Exclude<Value, false>>> {
  const withinMs = options.withinMs ?? 10_000;
  const deadlineMs = systemClock.monotonicMs() + withinMs;
  for (;;) {
    const value = await fn();
    if (value !== false && value !== null && value !== undefined) return value as NonNullable<Exclude<Value, false>>;
    if (systemClock.monotonicMs() >= deadlineMs) throw new Error(`not within ${String(withinMs)} ms: ${fn.toString()}`);
    await sleep(systemClock, LOOK_EVERY_MS);
  }
}
