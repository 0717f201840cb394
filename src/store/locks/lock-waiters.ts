/**
 * Waiting for locks: in line within the process, in front of the table, so that any number of waiters of one lock cost
 * one poller. Between processes no order is promised.
 */
import { sleep, type Clock, type Random } from '../../clock.ts';
import { orAborted } from '../../or-aborted.ts';
import { ConfigurationError, type BackendError } from '../../errors.ts';
import { toBackendError } from '../backend-error.ts';
import type { Leases } from '../leases/leases.ts';
import type { ItemKey } from '../table.ts';
import { LockTimeoutError } from './lock-errors.ts';
import type { ResolvedLockOptions } from './lock-options.ts';

/** How long a lock is waited for, and what ends the wait. A wrong `maxWaitMs` is a ConfigurationError. */
export interface WaitOptions {
  /**
   * For all of the wait; 0: one try. Unit: ms. Range: 0-2147483647, or Infinity.
   * @defaultValue Infinity when a signal is given, else 60000
   */
  readonly maxWaitMs?: number;
  /** Ends the wait with the signal's reason. A try that was under way and succeeds is given back. */
  readonly signal?: AbortSignal;
}

const DEFAULT_WAIT_MS = 60_000;
const MAX_WAIT_MS = 2_147_483_647;

/** @throws {ConfigurationError} */
export function checkedMaxWaitMs(wait: WaitOptions): number {
  const maxWaitMs = wait.maxWaitMs ?? (wait.signal === undefined ? DEFAULT_WAIT_MS : Infinity);
  const isIn = maxWaitMs === Infinity || (maxWaitMs >= 0 && maxWaitMs <= MAX_WAIT_MS);
  if (isIn) return maxWaitMs;
  const rule = `from 0 to ${String(MAX_WAIT_MS)} ms, or Infinity`;
  throw new ConfigurationError('waiting for a lock', [{ name: 'maxWaitMs', rule, value: maxWaitMs }]);
}

/** Whoever is first in line for a key may try; all others wait without a request. */
export class Lines {
  readonly #lines = new Map<string, (() => void)[]>();

  /**
   * Resolves when it is the caller's turn, which ends with the disposal of what is returned.
   * @throws the signal's reason.
   */
  async enter(key: string, signal: AbortSignal): Promise<Disposable> {
    signal.throwIfAborted();
    const line = this.#lines.get(key) ?? [];
    this.#lines.set(key, line);
    const turn = Promise.withResolvers<undefined>();
    const place = (): void => {
      turn.resolve(undefined);
    };
    line.push(place);
    const leave = (): void => {
      const wasFirst = line[0] === place;
      line.splice(line.indexOf(place), 1);
      if (wasFirst) line[0]?.();
      if (line.length === 0) this.#lines.delete(key);
    };
    try {
      if (line[0] !== place) await orAborted(turn.promise, signal);
      return { [Symbol.dispose]: leave };
    } catch (error) {
      leave();
      throw error;
    }
  }
}

/** Resolves when `over` aborts. @throws the reason of `signal` when that aborts first; nothing stays behind on either. */
async function untilOver(over: AbortSignal, signal: AbortSignal): Promise<void> {
  const ended = Promise.withResolvers<undefined>();
  const onOver = (): void => {
    ended.resolve(undefined);
  };
  if (over.aborted) return;
  over.addEventListener('abort', onOver, { once: true });
  try {
    await orAborted(ended.promise, signal);
  } finally {
    over.removeEventListener('abort', onOver);
  }
}

export interface WaitParts {
  readonly clock: Clock;
  readonly random: Random;
  readonly leases: Leases;
  readonly options: ResolvedLockOptions;
  /** Aborts when this very process gives the lock up; undefined when it does not hold it. */
  heldHere(key: ItemKey): AbortSignal | undefined;
}

const MAX_EXTRA_MS = 200;

/** One wait for one or several locks: its end, its line, and what went wrong meanwhile. */
export class LockWait implements Disposable {
  /** No wait at all was asked for. */
  readonly isOneTry: boolean;
  readonly signal: AbortSignal;
  readonly #parts: WaitParts;
  readonly #end: () => void;
  #lastFault: BackendError | undefined;

  constructor(
    parts: WaitParts,
    names: readonly string[],
    wait: { readonly maxWaitMs: number; readonly signals: readonly AbortSignal[] },
  ) {
    this.#parts = parts;
    const deadline = new AbortController();
    this.signal = AbortSignal.any([...wait.signals, deadline.signal]);
    this.isOneTry = wait.maxWaitMs === 0;
    // One try has the time that it needs.
    const isBounded = wait.maxWaitMs !== Infinity && !this.isOneTry;
    // Somebody waits for this timer: it keeps the process alive.
    this.#end = isBounded
      ? parts.clock.schedule(() => {
          deadline.abort(new LockTimeoutError(names, wait.maxWaitMs, { cause: this.#lastFault }));
        }, wait.maxWaitMs)
      : () => undefined;
  }

  [Symbol.dispose](): void {
    this.#end();
  }

  /**
   * What `fn` gives; undefined after a passing fault of the store, which is waited out like a busy lock.
   * @throws the reason of the signal, and what does not pass by itself. One try outlasts nothing.
   */
  async outlasting<Result>(fn: () => Promise<Result>): Promise<Result | undefined> {
    try {
      return await fn();
    } catch (error) {
      this.signal.throwIfAborted();
      const fault = toBackendError(error);
      if (this.isOneTry || !fault.retryable) throw error;
      this.#lastFault = fault;
      return undefined;
    }
  }

  /**
   * Resolves when a try may succeed.
   * @param waitMs what the last refusal promised.
   * @throws the reason of the signal.
   */
  async untilFree(key: ItemKey, waitMs: number): Promise<void> {
    let leftMs = waitMs;
    do {
      const here = this.#parts.heldHere(key);
      if (here !== undefined) {
        // No need to ask the table what this process knows first.
        await untilOver(here, this.signal);
        return;
      }
      await sleep(this.#parts.clock, this.#nextLookMs(leftMs), this.signal);
      const look = await this.outlasting(() => this.#parts.leases.look(key, this.signal));
      leftMs = look?.waitMs ?? Infinity;
    } while (leftMs > 0);
  }

  #nextLookMs(leftMs: number): number {
    const { random, options } = this.#parts;
    const pollMs = options.pollMinMs + random() * (options.pollMaxMs - options.pollMinMs);
    const extraMs = random() * Math.min(MAX_EXTRA_MS, options.pollMaxMs);
    return Math.max(1, Math.ceil(Math.min(pollMs, leftMs) + extraMs));
  }
}
