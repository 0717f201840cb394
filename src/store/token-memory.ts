/**
 * For how long a refusal tells of the tries before it. DynamoDB remembers a request token for ten minutes: a repeat of
 * an applied transaction is answered with success, so that one which is refused was not applied before. A process that
 * was stopped in between, or a machine that slept, may come back when the token is forgotten.
 *
 * @see AWS: TransactWriteItems, ClientRequestToken
 */
import type { Clock } from '../clock.ts';

/** Half of what DynamoDB promises: the clocks may differ, and the first try may have arrived late. Unit: ms. */
const TRUSTED_MS = 300_000;

/** Starts now, before the first try. @returns whether a token from now on is surely still remembered. */
export function tokenMemory(clock: Clock): () => boolean {
  const [wallMs, monotonicMs] = [clock.nowMs(), clock.monotonicMs()];
  return () => {
    // The monotonic clock stands still while the machine sleeps; the wall clock may have been set either way.
    const passedMs = [clock.nowMs() - wallMs, clock.monotonicMs() - monotonicMs];
    return passedMs.every((ms) => Math.abs(ms) < TRUSTED_MS);
  };
}
