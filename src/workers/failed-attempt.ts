/** What a failed attempt means for its message: whose fault it was, whether it counts, and when it is tried again. Pure. */
import { BackendError, isOnlyonceError, messageOf } from '../errors.ts';
import { TransactionCancelledError } from '../store/transactions/transaction-failures.ts';
import type { Outcome } from './outcome.ts';
import { retryAfterOf, type RetryPolicy } from './retry-policy.ts';
import { RetryLater } from './retry.ts';

export interface Failure {
  /** For the record and the log. */
  readonly error: string;
  /** False when the message is not to blame: the store failed, or the handler only waits. */
  readonly countsAsAttempt: boolean;
  /** True when the store failed: an outage is waited out longer and longer. */
  readonly isStoreFault: boolean;
  /** True when no later attempt can succeed. */
  readonly isHopeless: boolean;
  /** What was thrown. */
  readonly cause: unknown;
}

export function failureOf(error: unknown): Failure {
  const isStoreFault = isFaultOfStore(error);
  return {
    // The code is what people search for and match on.
    error: isOnlyonceError(error) ? `${error.code}: ${error.message}` : messageOf(error),
    countsAsAttempt: error instanceof RetryLater ? error.countsAsAttempt : !isStoreFault,
    isStoreFault,
    isHopeless: !isStoreFault && isOnlyonceError(error) && !error.retryable,
    cause: error,
  };
}

/** An outage, throttling, or contention that outlasted every try: nothing about the message itself. */
function isFaultOfStore(error: unknown): boolean {
  if (error instanceof TransactionCancelledError) return error.retryable;
  return error instanceof BackendError && error.reason !== 'validation';
}

/** The outcome of a failure that is tried again, after what its error or the worker's policy asks for. */
export function retryOutcome(failure: Failure, attempt: number, policy: RetryPolicy): Outcome {
  const { error, isStoreFault, countsAsAttempt } = failure;
  const retryAfterMs = retryAfterOf(failure.cause, attempt, policy);
  return {
    kind: 'retry',
    error,
    attempt,
    ...(isStoreFault && { isStoreFault }),
    ...(!countsAsAttempt && { countsAsAttempt }),
    ...(retryAfterMs !== undefined && { retryAfterMs }),
  };
}
