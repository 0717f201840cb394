/**
 * One named lock while this process holds it.
 *
 * Invariant: a lock that was lost, released or finished never renews, writes or releases as its holder again. That
 * alone makes nothing safe: the fence inside each write does.
 */
import { sleep } from '../../clock.ts';
import type { StoreContext } from '../context.ts';
import type { Change } from '../expressions.ts';
import type { HeldLease } from '../leases/held-lease.ts';
import { LeaseLostError, type LossReason } from '../leases/lease-loss.ts';
import { fenceCheck } from '../leases/leases.ts';
import type { TransactionAction } from '../transactions/transaction.ts';
import type { FencedCommits } from './fenced-commit.ts';
import type { LockEvents } from './lock-events.ts';
import type { ResolvedLockOptions } from './lock-options.ts';
import { LockPulse } from './lock-pulse.ts';

/** What became of giving a lock back. After `unanswered` it is free when its lease is over, if not before. */
export type ReleaseAnswer =
  | 'released'
  /** Another holds it, or it is gone; nothing was written. */
  | 'not owner'
  /** It was lost before, and a last try to give it back got no answer within a second. */
  | 'unanswered';

/**
 * A named lock while this process holds it. It renews itself unless `beats` is `manual`. What only the holder may write
 * goes through `write` or `finish`, or carries `fence` in a transaction of your own.
 */
export interface Lock extends AsyncDisposable {
  readonly name: string;
  /** Grows with each grant, also when the item was deleted in between. For systems that can refuse an older one. */
  readonly fencingToken: number;
  /** Aborts with a LeaseLostError when the lock is lost, and with a LocksClosedError when all are to be given back. */
  readonly signal: AbortSignal;
  /** True while both clocks say that it is ours. Says nothing about the next instant: writes carry the fence. */
  isHeld(): boolean;
  /** Until this process stops believing that it holds the lock. Unit: ms. */
  remainingMs(): number;
  /** @throws {LeaseLostError} with reason `deadline` also after a pause, while it is not known whether it is still ours. */
  assertHeld(): void;
  /** For processes that are frozen between calls. @returns false when it is lost or over. */
  renew(): Promise<boolean>;
  /** The work goes on; only needed with `requireProgressMs`. */
  progress(): void;
  /**
   * Gives the lock back. Safe to repeat; after a loss it is tried once more, for at most a second, where that helps.
   * @throws {BackendError} when the store cannot be reached. The lock is then free when its lease is over.
   */
  release(): Promise<ReleaseAnswer>;
  /** A plain check for a transaction of your own: refuses it as soon as this lock is not ours. Renews nothing. */
  fence(): TransactionAction;
  /**
   * Writes under the fence and renews with the same request.
   * @throws {LeaseLostError} when the lock is no longer ours: nothing was applied.
   * @throws {TransactionCancelledError} when an action's own condition failed, or conflicts did not end.
   * @throws {BackendError} with reason `ambiguous` when no answer came, or a try went unanswered before the lock was lost
   * (that loss is its cause): read before you write it again.
   */
  write(actions: readonly TransactionAction[]): Promise<void>;
  /**
   * The last write: under the fence, and the release with it, all or nothing. A repeated call with the same actions
   * finds out whether an earlier one without an answer was applied.
   * @param change of the lock's own item, for what is to be remembered there.
   * @throws as `write`.
   */
  finish(actions: readonly TransactionAction[], change?: Change): Promise<void>;
  /** As `release`, but never throws: what goes wrong is told by the `releaseFailed` event. */
  [Symbol.asyncDispose](): Promise<void>;
}

export interface HeldLockParts {
  readonly name: string;
  readonly lease: HeldLease;
  readonly context: StoreContext;
  readonly options: ResolvedLockOptions;
  readonly commits: FencedCommits;
  readonly events: LockEvents;
  /** Aborts when all locks are to be given back. */
  readonly closing: AbortSignal;
}

/** Losses by which another may hold it already: there is nothing to give back. */
const GONE: ReadonlySet<LossReason> = new Set<LossReason>(['stolen', 'released', 'deleted']);
const LAST_RELEASE_MS = 1_000;

export class HeldLock implements Lock {
  readonly name: string;
  readonly signal: AbortSignal;
  /** The lease below, for writes under several locks. */
  readonly lease: HeldLease;
  readonly #parts: HeldLockParts;
  readonly #pulse: LockPulse;
  readonly #over = Promise.withResolvers<undefined>();
  readonly #overSignal = new AbortController();
  #released: Promise<ReleaseAnswer> | undefined;
  #releaseFailure: { readonly error: unknown } | undefined;
  #answer: ReleaseAnswer | undefined;

  constructor(parts: HeldLockParts) {
    const { name, lease, context, options, events } = parts;
    this.name = name;
    this.lease = lease;
    this.#parts = parts;
    this.signal = AbortSignal.any([lease.signal, parts.closing]);
    const { clock, random } = context;
    this.#pulse = new LockPulse({
      lease,
      clock,
      random,
      options,
      onDanger: () => {
        events.emit({ kind: 'danger', name, remainingMs: lease.remainingMs() });
      },
      onStall: (pausedMs) => {
        events.emit({ kind: 'stall', name, pausedMs });
      },
    });
    lease.watch({
      renewed: () => {
        this.#pulse.renewed();
      },
      beatRefused: (error) => {
        events.emit({ kind: 'heartbeatError', name, error, remainingMs: lease.remainingMs() });
      },
      stalled: () => {
        this.#pulse.noticeStall();
      },
    });
    lease.signal.addEventListener('abort', () => {
      this.#onLoss();
    });
    // The grant may have taken longer than the lease lasts.
    if (lease.signal.aborted) this.#onLoss();
  }

  get fencingToken(): number {
    return this.lease.grant.fencingToken;
  }

  /** Resolves when it is given back, finished or lost; a release that failed counts as well. */
  get over(): Promise<undefined> {
    return this.#over.promise;
  }

  /** Aborts when it is over: for those who may stop waiting for it, which a promise would not forget. */
  get overSignal(): AbortSignal {
    return this.#overSignal.signal;
  }

  #end(): void {
    this.#over.resolve(undefined);
    this.#overSignal.abort();
  }

  /** How it was given back; undefined while it was not. */
  get answer(): ReleaseAnswer | undefined {
    return this.#answer;
  }

  /** Why the last try to give it back failed, if it did. */
  get releaseFailure(): { readonly error: unknown } | undefined {
    return this.#releaseFailure;
  }

  get isOver(): boolean {
    return this.lease.isEnded || this.lease.signal.aborted;
  }

  isHeld(): boolean {
    this.#pulse.noticeStall();
    return this.lease.isHeld();
  }

  remainingMs(): number {
    this.#pulse.noticeStall();
    return this.isOver ? 0 : this.lease.remainingMs();
  }

  assertHeld(): void {
    if (this.isHeld()) return;
    this.lease.signal.throwIfAborted();
    throw new LeaseLostError(this.lease.isEnded ? 'released' : 'deadline', this.lease.grant);
  }

  renew(): Promise<boolean> {
    this.#pulse.noticeStall();
    return this.lease.renew();
  }

  progress(): void {
    this.#pulse.progress();
  }

  fence(): TransactionAction {
    return { ...fenceCheck(this.lease), label: `fence of ${this.lease.grant.key.PK}` };
  }

  write(actions: readonly TransactionAction[]): Promise<void> {
    this.#pulse.noticeStall();
    return this.#parts.commits.write([this.lease], actions);
  }

  async finish(actions: readonly TransactionAction[], change?: Change): Promise<void> {
    this.#pulse.noticeStall();
    await this.#parts.commits.finish([this.lease], actions, change);
    this.finished();
  }

  /** It was given back together with a write. */
  finished(): void {
    this.#pulse.stop();
    this.#settle('released');
    this.#released = Promise.resolve('released');
  }

  /** Leaves it to the end of its lease: nobody knows that the work under it has ended. */
  stopBeating(): void {
    this.#pulse.stopBeating();
  }

  release(): Promise<ReleaseAnswer> {
    this.#released ??= this.#release().then(
      (answer) => {
        this.#settle(answer);
        return answer;
      },
      (error: unknown) => {
        // The next call tries again.
        this.#released = undefined;
        this.#releaseFailure = { error };
        this.#end();
        throw error;
      },
    );
    return this.#released;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.release().catch((error: unknown) => {
      this.#parts.events.emit({ kind: 'releaseFailed', name: this.name, error });
    });
  }

  async #release(): Promise<ReleaseAnswer> {
    this.#pulse.stop();
    const loss: unknown = this.lease.signal.reason;
    if (!(loss instanceof LeaseLostError)) return (await this.lease.release()) ? 'released' : 'not owner';
    if (GONE.has(loss.reason)) return 'not owner';
    return this.#releaseAfterLoss();
  }

  /** Nobody may have taken it yet: the next holder need not wait for the end of the lease then. */
  async #releaseAfterLoss(): Promise<ReleaseAnswer> {
    const limit = new AbortController();
    const stop = new AbortController();
    const timeIsUp = sleep(this.#parts.context.clock, LAST_RELEASE_MS, stop.signal).then(
      (): ReleaseAnswer => {
        limit.abort();
        return 'unanswered';
      },
      (): ReleaseAnswer => 'unanswered',
    );
    const last = this.lease.release({}, limit.signal).then(
      (isReleased): ReleaseAnswer => (isReleased ? 'released' : 'not owner'),
      (): ReleaseAnswer => 'unanswered',
    );
    const answer = await Promise.race([last, timeIsUp]);
    stop.abort();
    return answer;
  }

  #settle(answer: ReleaseAnswer): void {
    this.#answer = answer;
    this.#releaseFailure = undefined;
    this.#end();
  }

  #onLoss(): void {
    this.#pulse.stop();
    const loss: unknown = this.lease.signal.reason;
    if (loss instanceof LeaseLostError) {
      this.#parts.events.emit({ kind: 'lost', name: this.name, reason: loss.reason });
    }
    this.#end();
  }
}
