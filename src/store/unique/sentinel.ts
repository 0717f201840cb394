/**
 * The item that stands for a value that may exist once. Its key is the value; it names its owner, and remembers enough
 * for a repair to tell whether the owner still has the value.
 */
import { ConfigurationError } from '../../errors.ts';
import { absent, all, any, attributeAbsent, attributeType, equals, not, notEquals, present } from '../conditions.ts';
import type { Condition } from '../expressions.ts';
import { faultsOfKey } from '../storable.ts';
import { TABLE, UNIQUE_PREFIX, UNIQUE_SORT_KEY, uniqueKey, type Item, type ItemKey } from '../table.ts';
import { NORMALISERS, type Normalise } from './normalise.ts';

/** @see AWS: DynamoDB quotas, partition keys */
const MAX_PARTITION_KEY_BYTES = 2_048;

/** Says who owns a sentinel. */
const REF = 'ref';
/** A nonce per claim: by it a writer whose answer was lost knows its own claim again. */
export const CLAIM_ID = 'claimId';

/** What a constraint says about its sentinels. */
export interface SentinelRule {
  readonly scope: string;
  readonly attribute: string;
  readonly normalise: Normalise;
}

export interface Claim {
  /** As people wrote it. */
  readonly raw: string;
  /** Normalised. */
  readonly value: string;
  readonly owner: ItemKey;
  readonly claimId: string;
}

/**
 * It never carries a TTL: DynamoDB may delete a sentinel long before its item, and the value would be given out twice.
 * An item that ends by its TTL leaves an orphan, which a repair removes.
 */
export function sentinelItem({ scope, attribute, normalise }: SentinelRule, claim: Claim): ItemKey & Item {
  const rule = Object.keys(NORMALISERS).find((name) => NORMALISERS[name] === normalise);
  return {
    ...uniqueKey(scope, claim.value),
    [REF]: keyOf(claim.owner),
    scope,
    attribute,
    value: claim.value,
    raw: claim.raw,
    ...(rule !== undefined && { rule }),
    [CLAIM_ID]: claim.claimId,
  };
}

/** A sentinel as it is stored, by whomever it was written. */
export interface Sentinel {
  readonly key: ItemKey;
  readonly scope: string;
  readonly value: string;
  /** Undefined when it names none, or none that can be a key. */
  readonly owner: ItemKey | undefined;
  readonly attribute: string | undefined;
  readonly raw: string | undefined;
  /** Undefined for a constraint with a rule of its own. */
  readonly rule: string | undefined;
  readonly claimId: string | undefined;
  readonly item: Item;
}

export function isSentinel(item: Item): item is Item & ItemKey {
  const { [TABLE.partitionKey]: partition, [TABLE.sortKey]: sort } = item;
  return typeof partition === 'string' && partition.startsWith(UNIQUE_PREFIX) && sort === UNIQUE_SORT_KEY;
}

/** @param item whose key is a sentinel's. */
export function readSentinel(item: Item): Sentinel {
  const PK = String(item[TABLE.partitionKey]);
  const SK = String(item[TABLE.sortKey]);
  const [scope = '', ...value] = PK.slice(UNIQUE_PREFIX.length).split('#');
  const attribute = textOf(item['attribute']);
  return {
    key: { PK, SK },
    scope,
    value: value.join('#'),
    owner: ownerIn(item, { PK, SK }),
    attribute: attribute !== undefined && isAttributeName(attribute) ? attribute : undefined,
    raw: textOf(item['raw']),
    rule: textOf(item['rule']),
    claimId: textOf(item[CLAIM_ID]),
    item,
  };
}

function ownerIn(item: Item, self: ItemKey): ItemKey | undefined {
  const ref = item[REF];
  if (typeof ref !== 'object' || ref === null || !('PK' in ref) || !('SK' in ref)) return undefined;
  const { PK, SK } = ref;
  if (typeof PK !== 'string' || typeof SK !== 'string') return undefined;
  const isSelf = PK === self.PK && SK === self.SK;
  return isSelf || faultsOfKey({ PK, SK }).length > 0 ? undefined : { PK, SK };
}

/** An attribute of the item itself: a dot would lead into a map, and the key is unique anyway. */
export function isAttributeName(name: string): boolean {
  const keys: readonly string[] = [TABLE.partitionKey, TABLE.sortKey];
  return name !== '' && name !== '__proto__' && !name.includes('.') && !keys.includes(name);
}

/** The item's own: every object inherits a `constructor`. */
export function attributeOf(item: Item | undefined, name: string): unknown {
  return item !== undefined && Object.hasOwn(item, name) ? item[name] : undefined;
}

/** Nobody has the value, or its owner claims it once more. */
export function claimable(owner: ItemKey): Condition {
  return any(absent(), ownedBy(owner));
}

/** Only the owner's change frees a value. */
export function ownedBy(owner: ItemKey): Condition {
  return equals(REF, keyOf(owner));
}

/** There is nothing of this owner's to free, and there still is not when the transaction is applied. */
export function notOwnedBy(owner: ItemKey): Condition {
  return notEquals(REF, keyOf(owner));
}

/** The very claim that was looked at: neither freed since, nor claimed again. */
export function unchangedSince(sentinel: Sentinel): Condition {
  const sameAs = (name: string): Condition =>
    sentinel.item[name] === undefined ? attributeAbsent(name) : equals(name, sentinel.item[name]);
  return all(present(), sameAs(REF), sameAs(CLAIM_ID));
}

/**
 * The item's attribute is still what was read. Only a text can have a sentinel, so that all other values, and none, are
 * alike here.
 */
export function stillHas(attribute: string, raw: unknown): Condition {
  if (typeof raw === 'string') return equals(attribute, raw);
  const isNoText = raw === undefined ? attributeAbsent(attribute) : not(attributeType(attribute, 'S'));
  // Both hold for an item that does not exist, and an update would make one.
  return all(present(), isNoText);
}

/**
 * The key's part that a value becomes.
 * @throws {ConfigurationError} when the rule refuses the value, or no key can hold what it made of it.
 */
export function normalisedValue(rule: Pick<SentinelRule, 'scope' | 'normalise'>, raw: string): string {
  const value: unknown = rule.normalise(raw);
  if (typeof value === 'string' && value !== '' && value.isWellFormed()) {
    const bytes = Buffer.byteLength(uniqueKey(rule.scope, value).PK);
    if (bytes <= MAX_PARTITION_KEY_BYTES) return value;
    refuse(`at most ${String(MAX_PARTITION_KEY_BYTES)} bytes as a key`, bytes);
  }
  return refuse('a text that is well-formed and not empty once it is normalised', typeof value);
}

/** The same for a value that was stored by others; undefined when it can have no sentinel. */
export function storedValue(rule: Pick<SentinelRule, 'scope' | 'normalise'>, raw: unknown): string | undefined {
  if (typeof raw !== 'string') return undefined;
  try {
    return normalisedValue(rule, raw);
  } catch (error) {
    if (error instanceof ConfigurationError) return undefined;
    throw error;
  }
}

/** The key alone, of something that may carry more. */
export function keyOf({ PK, SK }: ItemKey): ItemKey {
  return { PK, SK };
}

function textOf(value: unknown): string | undefined {
  return typeof value === 'string' ? value : undefined;
}

function refuse(rule: string, value: unknown): never {
  throw new ConfigurationError('unique value', [{ name: 'value', rule, value }]);
}
