/**
 * Several leases at once, all or none: one TransactWriteItems, then one read for the tokens. Nobody ever holds a part
 * of them while it waits for the rest, so that two groups in any order never block each other.
 */
import { randomUUID } from 'node:crypto';
import { toBackendError } from '../backend-error.ts';
import { conditionalUpdate } from '../conditional-update.ts';
import { equals } from '../conditions.ts';
import type { StoreContext } from '../context.ts';
import type { Item, ItemKey } from '../table.ts';
import { readSnapshot } from '../transactions/snapshot.ts';
import type { TransactionAction } from '../transactions/transaction.ts';
import { TransactionCancelledError } from '../transactions/transaction-writer.ts';
import { HeldLease } from './held-lease.ts';
import { freeToTake, grantChange, releaseChange, retained } from './lease-grant.ts';
import type { LeaseObservations } from './lease-observations.ts';
import { instantOf } from './lease-validity.ts';
import { grantedToken, type LeaseDependencies } from './leases.ts';

export type GroupAcquisition =
  /** In the order of the keys. */
  | { readonly kind: 'acquired'; readonly leases: readonly HeldLease[] }
  /** Those that others hold; nothing was written. */
  | { readonly kind: 'refused'; readonly busy: readonly BusyLease[] };

export interface BusyLease {
  readonly key: ItemKey;
  readonly waitMs: number;
}

export interface GroupDependencies extends LeaseDependencies {
  readonly context: StoreContext;
  readonly observations: LeaseObservations;
}

/**
 * @throws {BackendError} when it cannot be told whether they were granted. What was granted is then free when its
 * lease is over.
 */
export async function acquireTogether(
  deps: GroupDependencies,
  keys: readonly ItemKey[],
  holder: string,
): Promise<GroupAcquisition> {
  const owner = randomUUID();
  const sentAt = instantOf(deps.clock);
  const deadlineMs = (deps.lease.leaseMs - deps.lease.safetyMarginMs) / 2;
  try {
    await deps.context.transactions.write(
      keys.map((key) => grantAction(deps, key, { owner, nowMs: sentAt.wallMs, holder })),
      // Our own nonce on an item says that a try without an answer has landed.
      { deadlineMs, wasApplied: (refusal) => refusal.failures.some(({ item }) => item?.['owner'] === owner) },
    );
  } catch (error) {
    const refusal = refusalOf(deps, keys, error);
    // Without an answer, the items themselves must tell.
    if (refusal !== undefined) return refusal;
    if (toBackendError(error).reason !== 'ambiguous') throw error;
  }
  return grantsOf(deps, keys, { owner, sentAt });
}

function grantAction(
  deps: GroupDependencies,
  key: ItemKey,
  grant: { owner: string; nowMs: number; holder: string },
): TransactionAction {
  const condition = freeToTake({
    nowMs: grant.nowMs,
    maxClockSkewMs: deps.lease.maxClockSkewMs,
    byClock: deps.takeover !== 'observed',
    silent: deps.observations.silent(key),
  });
  const change = retained(grantChange(grant, deps.lease), deps);
  return { kind: 'update', label: `grant of ${key.PK}`, key, change, condition };
}

/** Undefined when the failure is no refusal by another holder. */
function refusalOf(deps: GroupDependencies, keys: readonly ItemKey[], error: unknown): GroupAcquisition | undefined {
  if (!(error instanceof TransactionCancelledError)) return undefined;
  const failed = error.failures.flatMap(({ index, code, item = {} }) => {
    const key = keys[index];
    return key === undefined ? [] : [{ key, item, isHeld: code === 'ConditionalCheckFailed' }];
  });
  // Conflicts pass by themselves, anything else does not.
  if (!error.retryable && failed.every(({ isHeld }) => !isHeld)) throw error;
  const busy = failed.map(({ key, item, isHeld }): BusyLease => {
    const waitMs = isHeld ? deps.observations.record(key, item).waitMs : 0;
    return { key, waitMs };
  });
  return { kind: 'refused', busy };
}

/** Reads the tokens of what was granted. */
async function grantsOf(
  deps: GroupDependencies,
  keys: readonly ItemKey[],
  grant: { readonly owner: string; readonly sentAt: ReturnType<typeof instantOf> },
): Promise<GroupAcquisition> {
  let items: readonly (Item | undefined)[];
  try {
    items = await readSnapshot(deps.context, keys);
  } catch (error) {
    await abandon(deps, keys, grant.owner);
    throw error;
  }
  const strangers = keys.filter((_, index) => items[index]?.['owner'] !== grant.owner);
  if (strangers.length > 0) {
    // Granted so long ago that others took over, or never granted.
    await abandon(deps, keys, grant.owner);
    return { kind: 'refused', busy: strangers.map((key) => ({ key, waitMs: 0 })) };
  }
  const grants = keys.map((key, index) => ({ key, fencingToken: grantedToken(key, items[index]) }));
  return {
    kind: 'acquired',
    leases: grants.map(({ key, fencingToken }) => {
      deps.observations.forget(key);
      return new HeldLease({ key, owner: grant.owner, fencingToken }, grant.sentAt, deps);
    }),
  };
}

/** Gives back what may have been granted to `owner`, as well as that goes. */
async function abandon(deps: GroupDependencies, keys: readonly ItemKey[], owner: string): Promise<void> {
  await Promise.allSettled(
    keys.map((key) =>
      conditionalUpdate(deps.target, {
        key,
        change: releaseChange(retained({}, deps)),
        condition: equals('owner', owner),
      }),
    ),
  );
}
