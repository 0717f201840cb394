/** Several locks that were granted together: one signal, and the fence of each in every write. */
import type { TransactionAction } from '../transactions/transaction.ts';
import type { FencedCommits } from './fenced-commit.ts';
import type { HeldLock, Lock } from './lock.ts';

/** Several locks that were granted together by `acquireAll`, and are written under and given back together. */
export interface LockSet extends AsyncDisposable {
  /** In the order in which everybody takes them, each name once. */
  readonly locks: readonly Lock[];
  /** Aborts when any of them is lost. */
  readonly signal: AbortSignal;
  isHeld(): boolean;
  /** Applies `actions` under the fences of all and renews all: each lock is one action of at most 100. @throws as Lock.write */
  write(actions: readonly TransactionAction[]): Promise<void>;
  /** The last write, and the release of all with it, all or nothing. @throws as Lock.finish */
  finish(actions: readonly TransactionAction[]): Promise<void>;
  /** Gives all back. @throws {BackendError} the first, when some could not be; those are free when their leases are over. */
  release(): Promise<void>;
}

export class HeldLockSet implements LockSet {
  readonly locks: readonly HeldLock[];
  readonly signal: AbortSignal;
  readonly #commits: FencedCommits;

  constructor(locks: readonly HeldLock[], commits: FencedCommits) {
    this.locks = locks;
    this.signal = AbortSignal.any(locks.map((lock) => lock.signal));
    this.#commits = commits;
  }

  isHeld(): boolean {
    return this.locks.every((lock) => lock.isHeld());
  }

  write(actions: readonly TransactionAction[]): Promise<void> {
    return this.#commits.write(this.#leases, actions);
  }

  async finish(actions: readonly TransactionAction[]): Promise<void> {
    await this.#commits.finish(this.#leases, actions);
    for (const lock of this.locks) lock.finished();
  }

  async release(): Promise<void> {
    const answers = await Promise.allSettled(this.locks.map((lock) => lock.release()));
    const failed = answers.find((answer) => answer.status === 'rejected');
    if (failed !== undefined) throw failed.reason;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all(this.locks.map((lock) => lock[Symbol.asyncDispose]()));
  }

  get #leases(): HeldLock['lease'][] {
    return this.locks.map((lock) => lock.lease);
  }
}
