/** What can go wrong with waiting for a lock. A lock that is merely busy is an answer, not an error. */
import { OnlyonceError } from '../../errors.ts';

/** The lock did not become free in time. Nothing is held. */
export class LockTimeoutError extends OnlyonceError {
  readonly code = 'LOCK_TIMEOUT';
  readonly retryable = true;
  readonly lockNames: readonly string[];

  /** @param options `cause`: the last fault of the store while it was waited, if any. */
  constructor(lockNames: readonly string[], waitedMs: number, options?: { cause?: unknown }) {
    super(`${quoted(lockNames)} not free within ${String(waitedMs)} ms`, options);
    this.lockNames = lockNames;
  }
}

/** The work that holds a lock waits for the same lock: it would wait for itself. */
export class LockReentryError extends OnlyonceError {
  readonly code = 'LOCK_REENTRY';
  readonly retryable = false;
  readonly lockNames: readonly string[];

  constructor(lockNames: readonly string[]) {
    super(`${quoted(lockNames)} is already held by this very work, which would wait for itself`);
    this.lockNames = lockNames;
  }
}

/** These locks were closed: none is granted any more. */
export class LocksClosedError extends OnlyonceError {
  readonly code = 'LOCKS_CLOSED';
  readonly retryable = false;

  constructor() {
    super('the locks of this process were closed');
  }
}

function quoted(names: readonly string[]): string {
  const shown = names.slice(0, 3).map((name) => JSON.stringify(name.slice(0, 80)));
  const rest = names.length - shown.length;
  return `lock ${shown.join(', ')}${rest > 0 ? ` and ${String(rest)} more` : ''}`;
}
