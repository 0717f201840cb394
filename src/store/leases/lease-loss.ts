/** Why a lease is no longer ours, read from the item that refused us. */
import { OnlyonceError } from '../../errors.ts';
import { numberOf } from '../plain-item.ts';
import type { Item } from '../table.ts';
import type { LeaseGrant } from './lease-grant.ts';

/** Why a lease or a lock is no longer ours. After the last three it may be nobody else's yet. */
export type LossReason =
  /** Another was granted a higher token. */
  | 'stolen'
  /** The item says that this lease was given back. */
  | 'released'
  /** The item is gone. */
  | 'deleted'
  /** No renewal succeeded in time. */
  | 'deadline'
  /** It was held for as long as it may be held at most. */
  | 'maxHold'
  /** The work under it did not report progress in time. */
  | 'noProgress';

/** The lease is no longer ours: stop at once, write nothing, delete nothing. */
export class LeaseLostError extends OnlyonceError {
  readonly code = 'LEASE_LOST';
  readonly retryable = true;
  readonly reason: LossReason;
  readonly fencingToken: number;
  /** The token that was seen on the item instead, if any. */
  readonly observedToken: number | undefined;

  constructor(reason: LossReason, grant: LeaseGrant, observedToken?: number) {
    super(`lease on ${grant.key.PK} lost (${reason}), token ${String(grant.fencingToken)}`);
    this.reason = reason;
    this.fencingToken = grant.fencingToken;
    this.observedToken = observedToken;
  }
}

export function lossReason(item: Item | undefined, grant: LeaseGrant): LossReason {
  if (item === undefined) return 'deleted';
  return tokenOf(item) === grant.fencingToken && item['owner'] === undefined ? 'released' : 'stolen';
}

export function tokenOf(item: Item | undefined): number | undefined {
  const token = numberOf(item?.['fencingToken'], Number.NaN);
  return Number.isNaN(token) ? undefined : token;
}
