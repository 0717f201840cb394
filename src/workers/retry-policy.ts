/** When a failed attempt is tried again, if its error or the worker's policy says so. */
import type { Log } from '../telemetry/log.ts';

/** The longest that SQS hides a message. Unit: ms. @see AWS: ChangeMessageVisibility */
const MAX_RETRY_DELAY_MS = 43_200_000;

export interface RetryPolicy {
  /** @see WorkerOptions.retryDelayMs */
  readonly retryDelayMs: (error: unknown, attempt: number) => number | undefined;
  readonly log: Log;
}

/** A delay that SQS can keep: 0 to 12 hours. */
export function isRetryDelayMs(value: unknown): value is number {
  return typeof value === 'number' && value >= 0 && value <= MAX_RETRY_DELAY_MS;
}

/**
 * What the error itself asks for (`retryAfterMs`, as a `RetryLater` carries it), else what the policy says about it. Both
 * are the user's code: a value out of range, and a policy that throws, are warned about and count for nothing.
 * @returns undefined for the usual back-off.
 */
export function retryAfterOf(error: unknown, attempt: number, policy: RetryPolicy): number | undefined {
  const asked = askedBy(error);
  return (
    checked(asked, 'retryAfterMs', policy.log) ?? checked(policyOn(error, attempt, policy), 'retryDelayMs', policy.log)
  );
}

/** Reading a property of what a user threw may throw too. */
function askedBy(error: unknown): unknown {
  try {
    return typeof error === 'object' && error !== null && 'retryAfterMs' in error ? error.retryAfterMs : undefined;
  } catch {
    return undefined;
  }
}

function policyOn(error: unknown, attempt: number, { retryDelayMs, log }: RetryPolicy): unknown {
  try {
    return retryDelayMs(error, attempt);
  } catch (fault) {
    log.warn({ err: fault }, 'retryDelayMs threw; the usual back-off is used');
    return undefined;
  }
}

function checked(value: unknown, name: string, log: Log): number | undefined {
  if (value === undefined || isRetryDelayMs(value)) return value;
  const rule = `a number of ms from 0 to ${String(MAX_RETRY_DELAY_MS)}`;
  log.warn({ name, rule, value }, 'a delay that cannot be kept; the usual back-off is used');
  return undefined;
}
