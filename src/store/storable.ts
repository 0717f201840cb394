/**
 * What DynamoDB can keep and this client can read back, asked before a request is made: NaN, functions, class
 * instances and numbers beyond 2^53 would otherwise surface as faults of the SDK that name no attribute.
 */
import { marshall, unmarshall } from '@aws-sdk/util-dynamodb';
import { ConfigurationError, messageOf, type OptionFault } from '../errors.ts';
import { itemBytes, MAX_ITEM_BYTES } from './item-size.ts';
import type { Item, ItemKey } from './table.ts';

/** @see AWS: DynamoDB quotas, partition keys and sort keys */
const MAX_KEY_BYTES: Readonly<Record<keyof ItemKey, number>> = { PK: 2_048, SK: 1_024 };

/** What is wrong with a value, or nothing. */
export function faultOfValue(name: string, value: unknown): OptionFault | undefined {
  if (value === undefined) return { name, rule: 'a value; an attribute is taken away by `remove`', value };
  try {
    roundTrip({ value });
  } catch (error) {
    // The value itself may be what no message can show: a cycle, a bigint.
    return { name, rule: STORABLE, value: messageOf(error) };
  }
  return isLeftOut(value) ? { name, rule: STORABLE, value: 'a function, or undefined in a list' } : undefined;
}

const STORABLE = 'a value that DynamoDB can keep';

/** The marshaller drops these without a word, and a list would close the gap. */
function isLeftOut(value: unknown): boolean {
  if (Array.isArray(value)) return value.some((member) => member === undefined || isLeftOut(member));
  if (typeof value !== 'object' || value === null) return typeof value === 'function';
  const isMap = !ArrayBuffer.isView(value) && !(value instanceof Set);
  return isMap && Object.values(value).some(isLeftOut);
}

/** DynamoDB takes no empty key and none beyond its limits. */
export function faultsOfKey(key: ItemKey): OptionFault[] {
  return (['PK', 'SK'] as const).flatMap((name) => {
    const value: unknown = key[name];
    const bytes = typeof value === 'string' ? Buffer.byteLength(value) : 0;
    if (bytes >= 1 && bytes <= MAX_KEY_BYTES[name]) return [];
    return [{ name, rule: `a text of 1 to ${String(MAX_KEY_BYTES[name])} bytes`, value: faultText(value) }];
  });
}

/** What is wrong with an item, besides its size. Attributes that are undefined are left out when it is sent. */
export function faultsOfItem(item: ItemKey & Item): OptionFault[] {
  const faults = Object.entries(item).flatMap(([name, value]) =>
    value === undefined ? [] : (faultOfValue(name, value) ?? []),
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
  return roundTrip(item);
}

/** @throws {ConfigurationError} */
export function checkKey(key: ItemKey): void {
  const faults = faultsOfKey(key);
  if (faults.length > 0) throw new ConfigurationError('key', faults);
}

function roundTrip(item: Item): Item {
  return unmarshall(marshall(item, { removeUndefinedValues: true }));
}

function faultText(value: unknown): unknown {
  return typeof value === 'string' ? value : typeof value;
}
