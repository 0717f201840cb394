/** Gets locks: one try, one after a wait, or several together. Whatever is granted too late is given back. */
import type { StoreContext } from '../context.ts';
import { acquireTogether, type GroupDependencies } from '../leases/lease-group.ts';
import type { HeldLease } from '../leases/held-lease.ts';
import { createLeaseObservations } from '../leases/lease-observations.ts';
import { createLeases, type Leases } from '../leases/leases.ts';
import { keyText, lockKey, type ItemKey } from '../table.ts';
import { createBeatTurns } from './beat-turns.ts';
import { createFencedCommits, type FencedCommits } from './fenced-commit.ts';
import { HeldLock } from './lock.ts';
import type { LockEvents } from './lock-events.ts';
import { LockTimeoutError } from './lock-errors.ts';
import type { ResolvedLockOptions } from './lock-options.ts';
import { HeldLockSet, type LockSet } from './lock-set.ts';
import type { LockShutdown } from './lock-shutdown.ts';
import { checkedMaxWaitMs, Lines, LockWait, type WaitOptions } from './lock-waiters.ts';

export type LockTry =
  | { readonly kind: 'acquired'; readonly lock: HeldLock }
  | { readonly kind: 'busy'; readonly holder: string; readonly waitMs: number };

type SetTry =
  | { readonly kind: 'acquired'; readonly locks: readonly HeldLock[] }
  | { readonly kind: 'busy'; readonly key: ItemKey; readonly waitMs: number };

export interface AcquirerParts {
  readonly events: LockEvents;
  readonly shutdown: LockShutdown;
}

export class LockAcquirer {
  readonly #context: StoreContext;
  readonly #options: ResolvedLockOptions;
  readonly #parts: AcquirerParts;
  readonly #deps: GroupDependencies;
  readonly #leases: Leases;
  readonly #commits: FencedCommits;
  readonly #lines = new Lines();
  /** What this process holds, by key. */
  readonly #heldHere = new Map<string, HeldLock>();

  constructor(context: StoreContext, options: ResolvedLockOptions, parts: AcquirerParts) {
    const { target, clock, random } = context;
    const { lease, takeover, onStall, retentionDays } = options;
    const observations = createLeaseObservations(clock, lease, takeover !== 'observed');
    const beatTurn = createBeatTurns();
    this.#context = context;
    this.#options = options;
    this.#parts = parts;
    this.#deps = { context, target, clock, random, lease, takeover, onStall, retentionDays, observations, beatTurn };
    this.#leases = createLeases(this.#deps);
    this.#commits = createFencedCommits(context, { leaseMs: lease.leaseMs, retentionDays });
  }

  /** One request. @throws the reason of `signal`; what is granted later is given back then. */
  async tryOne(name: string, signal: AbortSignal): Promise<LockTry> {
    signal.throwIfAborted();
    const attempt = this.#leases.acquire({ key: lockKey(name), holder: this.#options.holder });
    const answer = await this.#parts.shutdown.orGivenBack(attempt, signal, (late) =>
      late.kind === 'acquired' ? [late.lease] : [],
    );
    if (answer.kind === 'acquired') return { kind: 'acquired', lock: this.#hold(name, answer.lease) };
    return { kind: 'busy', holder: String(answer.item['holder']), waitMs: answer.waitMs };
  }

  one(name: string, wait: WaitOptions): Promise<HeldLock> {
    const key = lockKey(name);
    return this.#waiting([name], wait, async (waiting) => {
      if (waiting.isOneTry) {
        const answer = await this.tryOne(name, waiting.signal);
        if (answer.kind === 'acquired') return answer.lock;
        throw new LockTimeoutError([name], 0);
      }
      using _turn = await this.#lines.enter(keyText(key), waiting.signal);
      if (this.#heldHere.has(keyText(key))) await waiting.untilFree(key, 0);
      for (;;) {
        const answer = await waiting.outlasting(() => this.tryOne(name, waiting.signal));
        if (answer?.kind === 'acquired') return answer.lock;
        await waiting.untilFree(key, answer?.waitMs ?? Infinity);
      }
    });
  }

  /** @param names in lock order. */
  all(names: readonly string[], wait: WaitOptions): Promise<LockSet> {
    return this.#waiting(names, wait, async (waiting) => {
      let answer = await this.#tryAll(names, waiting);
      while (answer.kind === 'busy') {
        if (waiting.isOneTry) throw new LockTimeoutError(names, 0);
        // In one line at a time: who waits here holds nothing that another could wait for.
        using _turn = await this.#lines.enter(keyText(answer.key), waiting.signal);
        await waiting.untilFree(answer.key, answer.waitMs);
        answer = await this.#tryAll(names, waiting);
      }
      return new HeldLockSet(answer.locks, this.#commits);
    });
  }

  async #tryAll(names: readonly string[], waiting: LockWait): Promise<SetTry> {
    const keys = names.map((name) => lockKey(name));
    const [first = lockKey('')] = keys;
    const answer = await waiting.outlasting(() => {
      waiting.signal.throwIfAborted();
      const attempt = acquireTogether(this.#deps, keys, this.#options.holder);
      return this.#parts.shutdown.orGivenBack(attempt, waiting.signal, (late) =>
        late.kind === 'acquired' ? late.leases : [],
      );
    });
    if (answer === undefined) return { kind: 'busy', key: first, waitMs: Infinity };
    if (answer.kind === 'acquired') {
      const locks = answer.leases.map((lease, index) => this.#hold(names[index] ?? '', lease));
      return { kind: 'acquired', locks };
    }
    // The one that is held longest: all must be free.
    const [busiest] = answer.busy.toSorted((left, right) => right.waitMs - left.waitMs);
    return { kind: 'busy', key: busiest?.key ?? first, waitMs: busiest?.waitMs ?? 0 };
  }

  async #waiting<Result>(
    names: readonly string[],
    wait: WaitOptions,
    fn: (waiting: LockWait) => Promise<Result>,
  ): Promise<Result> {
    const maxWaitMs = checkedMaxWaitMs(wait);
    const { clock, random } = this.#context;
    const signals = [this.#parts.shutdown.signal, ...(wait.signal === undefined ? [] : [wait.signal])];
    for (const signal of signals) signal.throwIfAborted();
    const heldHere = (key: ItemKey): AbortSignal | undefined => this.#heldHere.get(keyText(key))?.overSignal;
    const parts = { clock, random, leases: this.#leases, options: this.#options, heldHere };
    using waiting = new LockWait(parts, names, { maxWaitMs, signals });
    return await fn(waiting);
  }

  #hold(name: string, lease: HeldLease): HeldLock {
    const { events, shutdown } = this.#parts;
    const lock = new HeldLock({
      name,
      lease,
      context: this.#context,
      options: this.#options,
      commits: this.#commits,
      events,
      closing: shutdown.signal,
    });
    const key = keyText(lease.grant.key);
    this.#heldHere.set(key, lock);
    void lock.over.then(() => {
      if (this.#heldHere.get(key) === lock) this.#heldHere.delete(key);
    });
    shutdown.add(lock);
    return lock;
  }
}
