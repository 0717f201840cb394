/**
 * Named locks: leases that renew themselves while the process lives, and whose loss reaches the work by an AbortSignal.
 * What is written under a lock carries its fence, so that a holder who was paused beyond its lease writes nothing.
 *
 * Clocks and waits decide only who tries; the condition inside each write decides who wins.
 */
import { AsyncLocalStorage } from 'node:async_hooks';
import type { StoreContext } from '../context.ts';
import type { HeldLock, Lock } from './lock.ts';
import { LockAcquirer, type LockTry } from './lock-acquirer.ts';
import { LockEvents, type LockListener } from './lock-events.ts';
import { LockReentryError } from './lock-errors.ts';
import { checkName, inLockOrder } from './lock-names.ts';
import { checkedLockOptions, type LockOptions, type ResolvedLockOptions } from './lock-options.ts';
import type { LockSet } from './lock-set.ts';
import { LockShutdown, type CloseOptions, type CloseReport } from './lock-shutdown.ts';
import type { WaitOptions } from './lock-waiters.ts';

export type { LockOptions } from './lock-options.ts';

/** What one try at a lock came to. `busy`: nothing was written, and `holder` is who has it. */
export type LockAttempt =
  | { readonly kind: 'acquired'; readonly lock: Lock }
  /** `waitMs`: until a try may succeed, if its holder is never heard of again. */
  | { readonly kind: 'busy'; readonly holder: string; readonly waitMs: number };

/**
 * Named locks. One holder at a time, but for one that was paused and does not know yet that its lease is over: its
 * fenced writes are refused. Names: well-formed texts of 1 to 2,043 bytes. Wrong arguments are a ConfigurationError.
 */
export interface Locks {
  /**
   * One request; never waits, not even for those of this process who wait in line; takes over a lock whose lease is
   * over. Call it again and again to take over a lock by observed silence: each call is a look.
   * @throws {BackendError} when the store cannot be reached. @throws {LocksClosedError}
   */
  tryAcquire(name: string): Promise<LockAttempt>;
  /**
   * Waits its turn: first in, first out within the process; no order is promised between processes.
   * @throws {LockTimeoutError} after `maxWaitMs`. @throws the signal's reason when it aborts. @throws {LocksClosedError}
   * @throws {LockReentryError} when the work of `using` waits for a lock that it holds itself; after a plain `acquire`
   * that cannot be told, and the wait ends by `maxWaitMs`.
   */
  acquire(name: string, wait?: WaitOptions): Promise<Lock>;
  /**
   * Several locks, all or none, in one order for everybody: no deadlock. Two requests when they are free.
   * @param names 1-99, in any order; what occurs twice is taken once.
   * @throws as `acquire`.
   */
  acquireAll(names: readonly string[], wait?: WaitOptions): Promise<LockSet>;
  /**
   * Acquires, runs, releases. The work's own error always wins over a failed release, which is told by an event.
   * @throws as `acquire`, and what the work throws.
   */
  using<Result>(name: string, work: (lock: Lock) => Promise<Result>, wait?: WaitOptions): Promise<Result>;
  /** @returns ends it. */
  on(listener: LockListener): () => void;
  /**
   * Stops waiting, aborts the work, waits for it up to `graceMs`, and releases what is no longer worked under. A lock
   * that was taken by `acquire` or `tryAcquire` counts as worked under until it is released or finished.
   */
  close(options?: CloseOptions): Promise<CloseReport>;
}

/** @throws {ConfigurationError} when an option is wrong; all are listed. */
export function createLocks(context: StoreContext, options: LockOptions = {}): Locks {
  return new ProcessLocks(context, checkedLockOptions(options));
}

class ProcessLocks implements Locks {
  readonly #events = new LockEvents();
  readonly #shutdown: LockShutdown;
  readonly #acquirer: LockAcquirer;
  /** What the work that runs now is inside of. */
  readonly #inside = new AsyncLocalStorage<readonly HeldLock[]>();

  constructor(context: StoreContext, options: ResolvedLockOptions) {
    this.#shutdown = new LockShutdown(context.clock);
    this.#acquirer = new LockAcquirer(context, options, { events: this.#events, shutdown: this.#shutdown });
  }

  async tryAcquire(name: string): Promise<LockTry> {
    checkName(name);
    return this.#acquirer.tryOne(name, this.#shutdown.signal);
  }

  acquire(name: string, wait: WaitOptions = {}): Promise<HeldLock> {
    return this.#acquireOne(name, wait);
  }

  async acquireAll(names: readonly string[], wait: WaitOptions = {}): Promise<LockSet> {
    const ordered = inLockOrder(names);
    this.#refuseReentry(ordered);
    return this.#acquirer.all(ordered, wait);
  }

  async using<Result>(name: string, work: (lock: Lock) => Promise<Result>, wait: WaitOptions = {}): Promise<Result> {
    const lock = await this.#acquireOne(name, wait);
    const endWork = this.#shutdown.workUnder(lock);
    const inside = [...(this.#inside.getStore() ?? []), lock];
    try {
      // Work that is not async may throw before it gives a promise.
      return await this.#inside.run(inside, async () => work(lock));
    } finally {
      await endWork();
    }
  }

  on(listener: LockListener): () => void {
    return this.#events.on(listener);
  }

  close(options: CloseOptions = {}): Promise<CloseReport> {
    return this.#shutdown.close(options);
  }

  async #acquireOne(name: string, wait: WaitOptions): Promise<HeldLock> {
    checkName(name);
    this.#refuseReentry([name]);
    return this.#acquirer.one(name, wait);
  }

  /** @throws {LockReentryError} */
  #refuseReentry(names: readonly string[]): void {
    const inside = this.#inside.getStore() ?? [];
    // A lock that was lost or given back is one that others, and so this work as well, may wait for.
    const own = inside.filter((lock) => names.includes(lock.name) && !lock.isOver).map((lock) => lock.name);
    if (own.length > 0) throw new LockReentryError(own);
  }
}
