/** An item with a version, told from others, and what an edit of it may touch. */
import { ConfigurationError, OnlyonceError, type OptionFault } from '../errors.ts';
import { all, equals } from './conditions.ts';
import type { Change, Condition, SetExpression } from './expressions.ts';
import { faultsOfKey } from './storable.ts';
import { keyText, TABLE, type Item, type ItemKey } from './table.ts';

/** Which state of an item an edit was made on. */
export interface SeenVersion {
  readonly version: number;
  readonly generation: string;
}

/** An item with its version and generation, as it was read. Hand it on as `seen` to edit or remove this very state. */
export type VersionedItem = Item & ItemKey & SeenVersion;

/** The stored item has no version: it was written by somebody who knows nothing of versions, and was left as it is. */
export class UnversionedItemError extends OnlyonceError {
  readonly code = 'UNVERSIONED_ITEM';
  readonly retryable = false;
  readonly key: ItemKey;

  constructor(key: ItemKey) {
    super(`the item ${keyText(key)} has no version and generation: it was written by others, without them`);
    this.key = key;
  }
}

/** Kept by this module alone. */
const OWN_ATTRIBUTES = new Set(['version', 'generation', 'writeId']);
const UNCHANGEABLE = new Set([...OWN_ATTRIBUTES, TABLE.partitionKey, TABLE.sortKey]);

/** A change of the version that was seen. */
export interface Edit {
  readonly key: ItemKey;
  readonly change: Change;
  readonly seen: SeenVersion;
}

export interface GuardedEdit {
  readonly key: ItemKey;
  readonly change: Change;
  readonly condition: Condition;
}

/** @param writeId the nonce of this write. */
export function guardedEdit({ key, change, seen }: Edit, writeId: string): GuardedEdit {
  const set = { ...change.set, version: oneMore, writeId };
  return { key, change: { ...change, set }, condition: unchangedSince(seen) };
}

/** Only ever sent with a condition that the attribute is there. */
const oneMore: SetExpression = (placeholders, path) => `${placeholders.name(path)} + ${placeholders.value(1, path)}`;

export function unchangedSince(seen: SeenVersion): Condition {
  return all(equals('version', seen.version), equals('generation', seen.generation));
}

/** @throws {UnversionedItemError} when it has no version. */
export function versionedItem(key: ItemKey, item: Item | undefined): VersionedItem | undefined {
  if (item === undefined) return undefined;
  const { PK, SK } = key;
  const { version, generation } = item;
  if (!isVersion(version) || typeof generation !== 'string') throw new UnversionedItemError({ PK, SK });
  return { ...item, PK, SK, version, generation };
}

function isVersion(value: unknown): value is number {
  return typeof value === 'number' && Number.isSafeInteger(value) && value >= 1;
}

/** @throws {ConfigurationError} for attributes that a new item may not have. */
export function checkCreated(item: Item): void {
  const faults = Object.keys(item).flatMap((name): OptionFault[] => {
    if (OWN_ATTRIBUTES.has(name)) return [{ name, rule: 'kept by the store, not to be given', value: name }];
    // A dot leads into a map in every change: an attribute with one in its name could never be changed again.
    return name.includes('.') ? [{ name, rule: 'an attribute name without a dot', value: name }] : [];
  });
  if (faults.length > 0) throw new ConfigurationError('versioned item', faults);
}

/** @throws {ConfigurationError} for what an edit may not touch, and for a version that cannot have been seen. */
export function checkEdit({ key, change, seen }: Edit): void {
  const faults = faultsOfKey(key);
  for (const path of [...Object.keys(change.set ?? {}), ...(change.remove ?? [])]) {
    const [attribute = ''] = path.split('.');
    if (UNCHANGEABLE.has(attribute)) {
      faults.push({ name: path, rule: 'kept by the store, not to be changed', value: attribute });
    }
  }
  if (!isVersion(seen.version)) {
    faults.push({ name: 'seen.version', rule: 'a whole number from 1', value: seen.version });
  }
  if (typeof seen.generation !== 'string' || seen.generation === '') {
    faults.push({ name: 'seen.generation', rule: 'a text that is not empty', value: seen.generation });
  }
  if (faults.length > 0) throw new ConfigurationError('versioned change', faults);
}
