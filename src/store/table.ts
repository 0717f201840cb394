/**
 * The one table: keys, attributes, index and TTL. Everything that must know them (code, bootstrap, docs, tests) reads
 * them here.
 */

/** The primary key of an item. */
export interface ItemKey {
  readonly PK: string;
  readonly SK: string;
}

/** An item as plain JavaScript values. */
export type Item = Record<string, unknown>;

export const TABLE = {
  partitionKey: 'PK',
  sortKey: 'SK',
  /** Epoch seconds. Cleans up long after the fact; never decides anything, and never is a lease. */
  ttlAttribute: 'ttl',
  /** For listings only: it lags behind the table. */
  index: { name: 'GSI1', partitionKey: 'GSI1PK', sortKey: 'GSI1SK' },
} as const;

export function effectRecordKey(queue: string, key: string): ItemKey {
  return { PK: `IDEMPOTENCY#${queue}#${key}`, SK: 'RECORD' };
}

export function lockKey(name: string): ItemKey {
  return { PK: `LOCK#${name}`, SK: 'LOCK' };
}

export function accountKey(accountId: string): ItemKey {
  return { PK: `ACCOUNT#${accountId}`, SK: 'META' };
}

export function ledgerEntryKey(accountId: string, requestId: string): ItemKey {
  return { PK: `ACCOUNT#${accountId}`, SK: `CHARGE#${requestId}` };
}

export function counterKey(name: string): ItemKey {
  return { PK: `COUNTER#${name}`, SK: 'COUNTER' };
}

/** In front of the number in a shard's sort key. */
export const SHARD_PREFIX = 'SHARD#';

export function counterShardKey(name: string, shard: number): ItemKey {
  return { PK: `COUNTER#${name}`, SK: `${SHARD_PREFIX}${String(shard)}` };
}

/**
 * Says that a key has counted. One key attribute for each of the two, so that no # in them makes two markers one; the
 * counted key leads, so that the markers of a busy counter spread over all partitions.
 */
export function countMarkerKey(name: string, key: string): ItemKey {
  return { PK: `COUNTED#${key}`, SK: `COUNTER#${name}` };
}

/** In front of the scope in a sentinel's partition key. */
export const UNIQUE_PREFIX = 'UNIQUE#';

/** The sort key of every sentinel. */
export const UNIQUE_SORT_KEY = 'UNIQUE';

/** The sentinel of a value that may exist once. A scope holds no #, so that no two values share a key; a value may. */
export function uniqueKey(scope: string, normalisedValue: string): ItemKey {
  return { PK: `${UNIQUE_PREFIX}${scope}#${normalisedValue}`, SK: UNIQUE_SORT_KEY };
}

/** Why a message was dead-lettered, where its copy had no room to say so. */
export function deadLetterKey(queue: string, bodySha256: string): ItemKey {
  return { PK: `DEADLETTER#${queue}#${bodySha256}`, SK: 'REASON' };
}

/** What an item is, read from its key. */
export type ItemIdentity =
  | { readonly kind: 'effectRecord'; readonly queue: string; readonly key: string }
  | { readonly kind: 'account'; readonly accountId: string }
  | { readonly kind: 'ledgerEntry'; readonly accountId: string; readonly sortKey: string }
  | { readonly kind: 'other' };

export function identify(item: Item): ItemIdentity {
  const [prefix = '', ...rest] = String(item[TABLE.partitionKey]).split('#');
  const sortKey = String(item[TABLE.sortKey]);
  // A queue's name holds no #, a business key may.
  if (prefix === 'IDEMPOTENCY') return { kind: 'effectRecord', queue: rest[0] ?? '', key: rest.slice(1).join('#') };
  if (prefix !== 'ACCOUNT') return { kind: 'other' };
  const accountId = rest.join('#');
  return sortKey === 'META' ? { kind: 'account', accountId } : { kind: 'ledgerEntry', accountId, sortKey };
}

/** One text per key, for maps and messages. The length in front keeps `a|b` + `c` apart from `a` + `b|c`. */
export function keyText(key: ItemKey): string {
  return `${String(key.PK.length)}:${key.PK}|${key.SK}`;
}
