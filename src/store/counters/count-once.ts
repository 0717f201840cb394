/**
 * Counts once per key: the key's marker and the addition are one transaction, so that a replay of any kind (a second
 * delivery, a repeat after a lost answer, a request that the network delivers again) finds the marker.
 */
import { randomUUID } from 'node:crypto';
import type { StoreContext } from '../context.ts';
import { absent } from '../conditions.ts';
import { countMarkerKey, type ItemKey } from '../table.ts';
import { TransactionCancelledError } from '../transactions/transaction-failures.ts';
import type { TransactionAction } from '../transactions/transaction.ts';
import { counterValue } from './counter-value.ts';
import { ttlAfterDays } from '../ttl.ts';

/**
 * What counting once came to. `added`: by this call, or by a try of it whose answer was lost. `refused`: a bound would
 * have been broken, nothing was written, and `value` is the counter as it is.
 */
export type CountOnceAnswer =
  | { readonly kind: 'added' }
  /** This key has counted before; nothing was written. */
  | { readonly kind: 'replayed' }
  | { readonly kind: 'refused'; readonly value: number };

export interface CountOnceRequest {
  readonly name: string;
  /** What counts, for example the key of a message. */
  readonly key: string;
  /** The item that holds the value: the counter, or a shard of it. */
  readonly counter: ItemKey;
  readonly addition: TransactionAction;
  readonly retentionDays: number;
}

export async function countOnce(context: StoreContext, request: CountOnceRequest): Promise<CountOnceAnswer> {
  const countedBy = randomUUID();
  const ttl = ttlAfterDays(context.clock, request.retentionDays);
  const marker: TransactionAction = {
    kind: 'put',
    label: 'marker',
    role: 'record',
    item: { ...countMarkerKey(request.name, request.key), countedBy, ttl },
    condition: absent(),
  };
  try {
    // Our own nonce: an earlier try landed, and the server has forgotten its request token.
    const wasApplied = (refusal: TransactionCancelledError): boolean =>
      refusal.conditionFailure('marker')?.item?.['countedBy'] === countedBy;
    await context.transactions.write([marker, request.addition], { wasApplied });
    return { kind: 'added' };
  } catch (error) {
    if (!(error instanceof TransactionCancelledError)) throw error;
    // The marker speaks first: a key that has counted is a replay, also when by now there is no room for it.
    if (error.conditionFailure('marker') !== undefined) return { kind: 'replayed' };
    const bounded = error.conditionFailure(request.addition.label);
    if (bounded === undefined) throw error;
    return { kind: 'refused', value: counterValue(request.counter, bounded.item) };
  }
}
