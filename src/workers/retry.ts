/** How a handler says "not now" from anywhere in its code. */
import { OnlyonceError } from '../errors.ts';

/** Thrown by a handler: nothing is applied, and the message comes back after `retryAfterMs`. */
export class RetryLater extends OnlyonceError {
  readonly code = 'RETRY_LATER';
  readonly retryable = true;
  /** Unit: ms. Undefined: the worker's back-off. */
  readonly retryAfterMs: number | undefined;
  /** False for waiting that is nobody's fault. */
  readonly countsAsAttempt: boolean;

  /** @param reason for people: it becomes the attempt's error. */
  constructor(
    reason: string,
    options: { readonly retryAfterMs?: number; readonly countsAsAttempt?: boolean; readonly cause?: unknown } = {},
  ) {
    super(reason, { cause: options.cause });
    this.retryAfterMs = options.retryAfterMs;
    this.countsAsAttempt = options.countsAsAttempt ?? true;
  }
}
