/**
 * The lease protocol on one item, as conditions and changes. A lock and an effect record share it: both carry `owner`,
 * `fencingToken`, `heartbeat`, `leaseMs` and `expiresAtMs`.
 *
 * Rules (each is checked by DynamoDB, not by us):
 * - an owner is a fresh nonce per acquisition, so a late request of an earlier one never matches;
 * - the fencing token grows with each grant and stays on the item when it is released; its clock seed keeps it growing
 *   even after the item was deleted, unless that was within a clock's error or a request's flight after it was made;
 * - renewing, finishing and releasing are conditioned on owner and token, so a repeated or late one is harmless.
 */
import type { Clock } from '../../clock.ts';
import { all, any, attributeAbsent, equals, lessThan } from '../conditions.ts';
import { plus, previous, type Change, type Condition } from '../expressions.ts';
import type { LeaseObservation } from './lease-observations.ts';
import type { ResolvedLeaseOptions } from './lease-options.ts';
import { TABLE, type Item, type ItemKey } from '../table.ts';
import { ttlAfterDays } from '../ttl.ts';

/** Proof of one acquisition. */
export interface LeaseGrant {
  readonly key: ItemKey;
  readonly owner: string;
  readonly fencingToken: number;
}

/** What a contender may rely on. */
export interface TakeoverView {
  readonly nowMs: number;
  readonly maxClockSkewMs: number;
  /** Whether the end of the lease by the clock frees it, or observed silence alone. */
  readonly byClock: boolean;
  /** The state that this process has watched without a change for a whole lease, if any. */
  readonly silent: LeaseObservation | undefined;
}

/**
 * Nobody holds it, or its time is over by the clock, or by our own watching it has been silent for a whole lease. The
 * last rule recovers a dead holder whose clock was far ahead.
 */
export function freeToTake(view: TakeoverView): Condition {
  const rules = [attributeAbsent('owner')];
  if (view.byClock) rules.push(lessThan('expiresAtMs', view.nowMs - view.maxClockSkewMs));
  if (view.silent !== undefined) {
    const { owner, fencingToken, heartbeat } = view.silent;
    rules.push(all(equals('owner', owner), equals('fencingToken', fencingToken), equals('heartbeat', heartbeat)));
  }
  return any(...rules);
}

export function heldBy(grant: LeaseGrant): Condition {
  return all(equals('owner', grant.owner), equals('fencingToken', grant.fencingToken));
}

/** Stands in `takenFrom` when the lease was free. */
const NOBODY = 'nobody';

/** A fresh grant. `takenFrom` keeps the owner that was displaced, so that a takeover can be told from a first grant. */
export function grantChange(
  grant: { owner: string; nowMs: number; holder: string },
  lease: ResolvedLeaseOptions,
): Change {
  return {
    set: {
      fencingToken: plus(1, grant.nowMs),
      owner: grant.owner,
      holder: grant.holder,
      takenFrom: previous('owner', NOBODY),
      heartbeat: 0,
      leaseMs: lease.leaseMs,
      expiresAtMs: grant.nowMs + lease.leaseMs,
    },
  };
}

/** True when this grant displaced an owner who had not given the lease back. */
export function wasTakenOver(item: Item): boolean {
  return item['takenFrom'] !== NOBODY;
}

export function renewChange(nowMs: number, leaseMs: number): Change {
  return { set: { heartbeat: plus(1, 0), expiresAtMs: nowMs + leaseMs } };
}

/**
 * Gives the lease back, together with `change` on the same item. The item and its token stay; `expiresAtMs` 0 keeps it
 * takeable also for writers that only look at the expiry.
 */
export function releaseChange(change: Change = {}): Change {
  return { set: { expiresAtMs: 0, ...change.set }, remove: ['owner', ...(change.remove ?? [])] };
}

/** Keeps the item for `retentionDays` from now, where that is asked for. TTL cleans up; it never decides anything. */
export function retained(change: Change, keep: { readonly clock: Clock; readonly retentionDays?: number }): Change {
  if (keep.retentionDays === undefined) return change;
  const ttl = ttlAfterDays(keep.clock, keep.retentionDays);
  return { ...change, set: { ...change.set, [TABLE.ttlAttribute]: ttl } };
}
