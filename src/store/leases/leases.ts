/**
 * Acquires leases: on lock items by name, and on any other item that carries the lease attributes (effect records).
 * One UpdateItem per try; the answer to a refused try already says who holds it.
 */
import { randomUUID } from 'node:crypto';
import { BackendError } from '../../errors.ts';
import { all } from '../conditions.ts';
import { readOnce } from '../consistent-read.ts';
import { repeatedUpdate } from '../conditional-update.ts';
import type { Change, Condition } from '../expressions.ts';
import { HeldLease, type HeldLeaseDependencies } from './held-lease.ts';
import { freeToTake, grantChange, heldBy, releaseChange, renewChange, retained } from './lease-grant.ts';
import { createLeaseObservations, type LeaseObservations } from './lease-observations.ts';
import { instantOf } from './lease-validity.ts';
import { keyText, lockKey, type Item, type ItemKey } from '../table.ts';
import type { TransactionAction } from '../transactions/transaction.ts';

export interface LeaseRequest {
  readonly key: ItemKey;
  /** Who asks, for people who read the table: host, process, worker name. */
  readonly holder: string;
  /** Written together with the grant. */
  readonly change?: Change;
  /** Must hold besides the lease being free. */
  readonly condition?: Condition;
}

export type Acquisition =
  /** `item` is the whole item as the grant left it. */
  | { readonly kind: 'acquired'; readonly lease: HeldLease; readonly item: Item }
  /** `item` is what is stored: the caller reads from it which condition failed. */
  | { readonly kind: 'refused'; readonly item: Item; readonly waitMs: number };

/** What one try at a named lock came to. `waitMs`: until a try may succeed, if its holder is never heard of again. */
export type LockAnswer =
  | { readonly kind: 'acquired'; readonly lease: HeldLease }
  | { readonly kind: 'busy'; readonly holder: string; readonly waitMs: number };

/** What a look at a lease shows. It may be taken once `waitMs` is 0; the write alone decides. */
export interface LeaseLook {
  readonly holder: string;
  readonly waitMs: number;
}

export interface LeaseDependencies extends HeldLeaseDependencies {
  /** By the clock or by observed silence, or by silence alone. @defaultValue expiry-or-observed */
  readonly takeover?: 'expiry-or-observed' | 'observed';
  /** Shared by all who watch the same leases. @defaultValue one of its own */
  readonly observations?: LeaseObservations;
}

/**
 * Leases by name or on any item, with fencing tokens, one try at a time. They are not renewed by themselves; locks that
 * are, and that can be waited for, come from `store.locks()`. Calls throw a BackendError when DynamoDB refuses or cannot
 * be reached.
 */
export interface Leases {
  /** One try at a named lock. Never waits; takes over a lease that is over. */
  tryAcquire(name: string, holder: string): Promise<LockAnswer>;
  acquire(request: LeaseRequest): Promise<Acquisition>;
  /** One consistent read: costs less than a refused try, and never conflicts with what the holder writes. */
  look(key: ItemKey, signal?: AbortSignal): Promise<LeaseLook>;
}

export function createLeases(deps: LeaseDependencies): Leases {
  const { clock, lease } = deps;
  const byClock = deps.takeover !== 'observed';
  const observations = deps.observations ?? createLeaseObservations(clock, lease, byClock);

  async function acquire(request: LeaseRequest): Promise<Acquisition> {
    const owner = randomUUID();
    const sentAt = instantOf(clock);
    const view = {
      nowMs: sentAt.wallMs,
      maxClockSkewMs: lease.maxClockSkewMs,
      byClock,
      silent: observations.silent(request.key),
    };
    const grant = grantChange({ owner, nowMs: sentAt.wallMs, holder: request.holder }, lease);
    const free = freeToTake(view);
    const answer = await repeatedUpdate(deps, {
      key: request.key,
      change: retained({ set: { ...request.change?.set, ...grant.set }, remove: request.change?.remove ?? [] }, deps),
      condition: request.condition === undefined ? free : all(free, request.condition),
    });
    const item = answer.item ?? {};
    // Refused, but the stored owner is our nonce: an earlier try landed and only its answer was lost.
    if (answer.kind === 'refused' && item['owner'] !== owner) {
      return { kind: 'refused', item, waitMs: observations.record(request.key, item).waitMs };
    }
    observations.forget(request.key);
    const fencingToken = grantedToken(request.key, item);
    return { kind: 'acquired', item, lease: new HeldLease({ key: request.key, owner, fencingToken }, sentAt, deps) };
  }

  async function tryAcquire(name: string, holder: string): Promise<LockAnswer> {
    const acquisition = await acquire({ key: lockKey(name), holder });
    if (acquisition.kind === 'acquired') return { kind: 'acquired', lease: acquisition.lease };
    return { kind: 'busy', holder: String(acquisition.item['holder']), waitMs: acquisition.waitMs };
  }

  async function look(key: ItemKey, signal?: AbortSignal): Promise<LeaseLook> {
    const item = await readOnce(deps.target, key, signal);
    if (item?.['owner'] === undefined) return { holder: '', waitMs: 0 };
    return { holder: String(item['holder']), waitMs: observations.record(key, item).waitMs };
  }

  return { acquire, tryAcquire, look };
}

/**
 * The token that a grant gave out. One that is no whole number, or one that never grows any more, fences nothing off.
 * @throws {BackendError} ambiguous: granted or not, nobody may work under it. It is free once its lease is over.
 */
export function grantedToken(key: ItemKey, item: Item | undefined): number {
  const token: unknown = item?.['fencingToken'];
  if (typeof token === 'number' && Number.isSafeInteger(token) && token >= 1) return token;
  const message = `the lease of ${keyText(key)} was answered without a usable fencing token`;
  throw new BackendError(message, { reason: 'ambiguous', retryable: true });
}

/** Checks the fence inside a transaction and changes nothing. */
export function fenceCheck(lease: HeldLease): TransactionAction {
  return { kind: 'check', label: 'fence', role: 'fence', key: lease.grant.key, condition: heldBy(lease.grant) };
}

/** Checks the fence and renews the lease in the same write: costs what the check costs. */
export function fenceAndRenew(lease: HeldLease, nowMs: number, leaseMs: number): TransactionAction {
  return {
    kind: 'update',
    label: 'fence',
    role: 'fence',
    key: lease.grant.key,
    change: renewChange(nowMs, leaseMs),
    condition: heldBy(lease.grant),
  };
}

/** Checks the fence and gives the lease back, together with `change` on the same item: the last write under it. */
export function fenceAndFinish(lease: HeldLease, change: Change = {}): TransactionAction {
  return {
    kind: 'update',
    label: 'fence',
    role: 'fence',
    key: lease.grant.key,
    change: releaseChange(change),
    condition: heldBy(lease.grant),
  };
}
