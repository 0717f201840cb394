/**
 * What DynamoDB can keep and this client can read back, asked before a request is made: NaN, functions, class
 * instances and numbers beyond 2^53 would otherwise surface as faults of the SDK that name no attribute.
 */
import { marshall, unmarshall } from '@aws-sdk/util-dynamodb';
import { ConfigurationError, messageOf, type OptionFault } from '../errors.ts';
import { itemBytes, MAX_ITEM_BYTES } from './item-size.ts';
import { faultOfName, whyNotKept } from './kept-values.ts';
import type { Item, ItemKey } from './table.ts';

/** @see AWS: DynamoDB quotas, partition keys and sort keys */
const MAX_KEY_BYTES: Readonly<Record<keyof ItemKey, number>> = { PK: 2_048, SK: 1_024 };

/**
 * What is wrong with a value, or nothing. Kept are texts, finite numbers, bigints, booleans, null, bytes (Uint8Array,
 * Buffer), plain lists and objects, and sets of one kind. Fields of an object that are undefined are left out.
 */
export function faultOfValue(name: string, value: unknown): OptionFault | undefined {
  if (value === undefined) return { name, rule: 'a value; an attribute is taken away by `remove`', value };
  const reason = whyNotKept(value) ?? whyNotMarshalled(value);
  // The value itself may be what no message can show: a cycle, a class instance.
  return reason === undefined ? undefined : { name, rule: STORABLE, value: reason };
}

const STORABLE = 'a value that DynamoDB can keep';

function whyNotMarshalled(value: unknown): string | undefined {
  try {
    roundTrip(value);
    return undefined;
  } catch (error) {
    return messageOf(error);
  }
}

/** DynamoDB takes no empty key and none beyond its limits. */
export function faultsOfKey(key: ItemKey): OptionFault[] {
  return (['PK', 'SK'] as const).flatMap((name) => {
    const value: unknown = key[name];
    // Half of a surrogate pair has no UTF-8: two such keys would be one item.
    const bytes = typeof value === 'string' && value.isWellFormed() ? Buffer.byteLength(value) : 0;
    if (bytes >= 1 && bytes <= MAX_KEY_BYTES[name]) return [];
    return [{ name, rule: `a well-formed text of 1 to ${String(MAX_KEY_BYTES[name])} bytes`, value: faultText(value) }];
  });
}

/** What is wrong with an item, besides its size. Attributes that are undefined are left out when it is sent. */
export function faultsOfItem(item: ItemKey & Item): OptionFault[] {
  const faults = Object.entries(item).flatMap(([name, value]) =>
    value === undefined || name === 'PK' || name === 'SK' ? [] : (faultOfName(name) ?? faultOfValue(name, value) ?? []),
  );
  return [...faultsOfKey(item), ...faults];
}

/** An item over the limit of DynamoDB. Only what can be kept can be measured. */
export function faultOfSize(name: string, bytes: number): OptionFault | undefined {
  if (bytes <= MAX_ITEM_BYTES) return undefined;
  return { name, rule: `an item of at most ${String(MAX_ITEM_BYTES)} bytes`, value: bytes };
}

/**
 * The item as a read will bring it back.
 * @throws {ConfigurationError} when DynamoDB cannot keep it; all faults are listed.
 */
export function asStored(item: ItemKey & Item): Item {
  const faults = faultsOfItem(item);
  const tooLarge = faults.length === 0 ? faultOfSize('item', itemBytes(item)) : undefined;
  if (tooLarge !== undefined) faults.push(tooLarge);
  if (faults.length > 0) throw new ConfigurationError('item', faults);
  const kept = Object.entries(item).filter(([, value]) => value !== undefined);
  return Object.fromEntries(kept.map(([name, value]) => [name, roundTrip(value)]));
}

/** @throws {ConfigurationError} */
export function checkKey(key: ItemKey): void {
  const faults = faultsOfKey(key);
  if (faults.length > 0) throw new ConfigurationError('key', faults);
}

function roundTrip(value: unknown): unknown {
  return withPlainBytes(unmarshall(marshall({ value }, { removeUndefinedValues: true }))['value']);
}

/** A Buffer that was sent is read back as a Uint8Array. */
function withPlainBytes(value: unknown): unknown {
  if (value instanceof Uint8Array) return new Uint8Array(value);
  if (value instanceof Set) return new Set([...value].map(withPlainBytes));
  if (Array.isArray(value)) return value.map(withPlainBytes);
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([name, member]) => [name, withPlainBytes(member)]));
}

function faultText(value: unknown): unknown {
  return typeof value === 'string' ? value : typeof value;
}
