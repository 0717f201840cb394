/**
 * The end of all locks of a process: nothing new is granted, the work is asked to stop and waited for, and what nobody
 * works under any more is given back. A lock is never released under running code.
 */
import { sleep, type Clock } from '../../clock.ts';
import { ConfigurationError } from '../../errors.ts';
import type { HeldLease } from '../leases/held-lease.ts';
import type { HeldLock } from './lock.ts';
import { LocksClosedError } from './lock-errors.ts';
import { orAborted } from '../../or-aborted.ts';

/** How patient `locks.close()` is. A wrong `graceMs` is a ConfigurationError, and nothing is closed. */
export interface CloseOptions {
  /** How long the work may go on. Unit: ms. Range: 0-86400000. @defaultValue 10000 */
  readonly graceMs?: number;
}

/** Each name once. */
export interface CloseReport {
  /** Given back since the start of the closing, by the work itself or by us. */
  readonly released: readonly string[];
  /** Could not be given back; free when the lease is over. */
  readonly failed: readonly { readonly name: string; readonly error: unknown }[];
  /** Work that ignored its signal keeps its lock until the lease ends; it is not renewed any more. */
  readonly stillRunning: readonly string[];
  /** Were lost before they could be given back. */
  readonly lost: readonly string[];
}

const DEFAULT_GRACE_MS = 10_000;
const MAX_GRACE_MS = 86_400_000;
/** From here on, those that are only kept for a last try are looked through. */
const MANY_LOCKS = 1_000;

export class LockShutdown {
  readonly #clock: Clock;
  readonly #closing = new AbortController();
  readonly #locks = new Set<HeldLock>();
  /** Work that runs under a lock, until it has ended. */
  readonly #work = new Map<HeldLock, Promise<unknown>>();
  /** Grants that nobody waits for any more, until they are given back. */
  readonly #late = new Set<Promise<unknown>>();
  #report: Promise<CloseReport> | undefined;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Aborts with a LocksClosedError when the closing begins. */
  get signal(): AbortSignal {
    return this.#closing.signal;
  }

  add(lock: HeldLock): void {
    if (this.#locks.size >= MANY_LOCKS) this.#forgetExpired();
    this.#locks.add(lock);
    void lock.over.then(() => {
      this.#forget(lock);
    });
  }

  /** @returns gives the lock back; to be called when the work has ended. Never throws. */
  workUnder(lock: HeldLock): () => Promise<void> {
    const end = Promise.withResolvers<undefined>();
    this.#work.set(lock, end.promise);
    return async () => {
      this.#work.delete(lock);
      end.resolve(undefined);
      await lock[Symbol.asyncDispose]();
      this.#forget(lock);
    };
  }

  /** What `attempt` gives, unless `signal` aborts first: what it grants later is given back then. */
  orGivenBack<Answer>(
    attempt: Promise<Answer>,
    signal: AbortSignal,
    leasesOf: (answer: Answer) => readonly HeldLease[],
  ): Promise<Answer> {
    return orAborted(attempt, signal, () => {
      this.#giveBack(attempt, leasesOf);
    });
  }

  /** Once; a repeated call gives the same report. @throws {ConfigurationError} */
  async close(options: CloseOptions): Promise<CloseReport> {
    const graceMs = options.graceMs ?? DEFAULT_GRACE_MS;
    if (!(graceMs >= 0 && graceMs <= MAX_GRACE_MS)) {
      const rule = `from 0 to ${String(MAX_GRACE_MS)} ms`;
      throw new ConfigurationError('closing locks', [{ name: 'graceMs', rule, value: graceMs }]);
    }
    this.#report ??= this.#close(graceMs);
    return this.#report;
  }

  #giveBack<Answer>(attempt: Promise<Answer>, leasesOf: (answer: Answer) => readonly HeldLease[]): void {
    const late = attempt
      .then((answer) => Promise.allSettled(leasesOf(answer).map((lease) => lease.release())))
      // Never granted, or nobody knows: then it is free when its lease is over.
      .catch(() => undefined)
      .finally(() => this.#late.delete(late));
    this.#late.add(late);
  }

  async #close(graceMs: number): Promise<CloseReport> {
    const locks = [...this.#locks];
    const stop = new AbortController();
    this.#closing.abort(new LocksClosedError());
    const ends = locks.map((lock) => this.#work.get(lock) ?? lock.over);
    await Promise.race([
      Promise.all([...ends, ...this.#late]),
      sleep(this.#clock, graceMs, stop.signal).catch(() => undefined),
    ]);
    stop.abort();
    const stillRunning = locks.filter((lock) => this.#work.has(lock) || !lock.isOver);
    for (const lock of stillRunning) lock.stopBeating();
    const ended = locks.filter((lock) => !stillRunning.includes(lock));
    // Those on their way are waited for, and those that failed when the work ended are tried once more.
    const unanswered = ended.filter((lock) => lock.answer === undefined && !lock.lease.signal.aborted);
    await Promise.allSettled(unanswered.map((lock) => lock.release()));
    return {
      released: ended.filter((lock) => lock.answer === 'released').map((lock) => lock.name),
      failed: ended.flatMap(({ name, releaseFailure }) => (releaseFailure ? [{ name, ...releaseFailure }] : [])),
      stillRunning: stillRunning.map((lock) => lock.name),
      lost: ended.filter((lock) => lock.answer !== 'released' && !lock.releaseFailure).map((lock) => lock.name),
    };
  }

  /** A lock whose release failed is free by now, when its lease is over: no need to try again at the end. */
  #forgetExpired(): void {
    for (const lock of this.#locks) {
      if (lock.releaseFailure !== undefined && lock.lease.remainingMs() === 0) this.#locks.delete(lock);
    }
  }

  /** What is over and not worked under any more is no concern of the closing, unless its release failed. */
  #forget(lock: HeldLock): void {
    if (!this.#work.has(lock) && lock.releaseFailure === undefined) this.#locks.delete(lock);
  }
}
