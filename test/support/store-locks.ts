/** Locks as the tests hold them: each machine has a clock of its own, moved by hand. */
import type { Lock } from '../../src/store/locks/lock.ts';
import type { LockEvent } from '../../src/store/locks/lock-events.ts';
import type { LockOptions } from '../../src/store/locks/lock-options.ts';
import type { Locks } from '../../src/store/locks/locks.ts';
import { plus } from '../../src/store/expressions.ts';
import type { StoreOptions } from '../../src/store/store.ts';
import { lockKey, type Item, type ItemKey } from '../../src/store/table.ts';
import type { TransactionAction } from '../../src/store/transactions/transaction.ts';
import type { StoreBench } from './store-bench.ts';
import { StoreClock } from './store-clock.ts';

export const LOCK_LEASE = {
  leaseMs: 10_000,
  heartbeatMs: 2_500,
  safetyMarginMs: 1_000,
  maxClockSkewMs: 500,
  takeoverGraceMs: 250,
} as const;
/** With random 0, a beat comes this long after the last renewal. */
export const BEAT_MS = 2_250;
/** A holder that is unheard of for this long is dead for whoever watches: 1 % drift and the grace on top of the lease. */
export const SILENCE_MS = 10_350;
export const START_MS = 1_800_000_000_000;
export const HOUR_MS = 3_600_000;

export interface Machine {
  readonly clock: StoreClock;
  readonly locks: Locks;
  readonly events: LockEvent[];
}

export interface MachineOptions extends LockOptions {
  /** How far its wall clock is ahead. */
  readonly aheadMs?: number;
  readonly store?: StoreOptions;
}

export interface LockScene {
  readonly name: string;
  machine(options?: MachineOptions): Machine;
  item(): Promise<Item | undefined>;
  /** A machine that holds the lock; the requests for that are forgotten. */
  holder(options?: MachineOptions): Promise<Machine & { readonly lock: Lock }>;
  /** Another takes the lock over, its clock being beyond the end of the lease. */
  takeOver(from: StoreClock): Promise<Lock>;
  /** An effect without a condition of its own: only the fence keeps it from being applied twice. */
  effect(): TransactionAction;
  effects(): Promise<number>;
}

export function lockScene(bench: StoreBench, name: string = bench.unique('lock')): LockScene {
  const effectKey: ItemKey = { PK: `EFFECT#${name}`, SK: 'S' };
  const machine = (options: MachineOptions = {}): Machine => {
    const { aheadMs = 0, store = {}, ...lock } = options;
    const clock = new StoreClock({ startMs: START_MS + aheadMs });
    const locks = bench.store({ clock, ...store }).locks({ ...LOCK_LEASE, ...lock });
    const events: LockEvent[] = [];
    locks.on((event) => events.push(event));
    return { clock, locks, events };
  };
  return {
    name,
    machine,
    item: () => bench.truth.get(lockKey(name)),
    async holder(options) {
      const own = machine(options);
      const lock = await acquired(own.locks, name);
      bench.transport.forget();
      return { ...own, lock };
    },
    async takeOver(from) {
      const aheadMs = from.nowMs() - START_MS + LOCK_LEASE.leaseMs + LOCK_LEASE.maxClockSkewMs + 1;
      const lock = await acquired(machine({ aheadMs }).locks, name);
      bench.transport.forget();
      return lock;
    },
    effect: () => ({ kind: 'update', label: 'effect', key: effectKey, change: { set: { count: plus(1, 0) } } }),
    async effects() {
      return Number((await bench.truth.get(effectKey))?.['count'] ?? 0);
    },
  };
}

export async function acquired(locks: Locks, name: string): Promise<Lock> {
  const attempt = await locks.tryAcquire(name);
  if (attempt.kind === 'acquired') return attempt.lock;
  throw new Error(`${name} is held by ${attempt.holder} for ${String(attempt.waitMs)} ms`);
}
