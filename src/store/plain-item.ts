/**
 * Items inside errors are raw attribute values even through the document client (aws-sdk-js-v3 issue 6723), so that
 * `error.Item.owner === me` would silently never be true. They are unmarshalled here.
 */
import { unmarshall } from '@aws-sdk/util-dynamodb';
import type { Item } from './table.ts';

type RawItem = Parameters<typeof unmarshall>[0];

/** The item as plain values; undefined when there was none. */
export function plainItem(raw: unknown): Item | undefined {
  if (!isRawItem(raw) || Object.keys(raw).length === 0) return undefined;
  return unmarshall(raw);
}

/** The stored item that a failed condition brought along. */
export function itemOfFailedCondition(error: unknown): Item | undefined {
  return typeof error === 'object' && error !== null && 'Item' in error ? plainItem(error.Item) : undefined;
}

// Only the SDK fills these fields, and it fills them with attribute values; the shape is not checked deeper.
function isRawItem(raw: unknown): raw is Exclude<RawItem, { $unknown: unknown }> {
  return typeof raw === 'object' && raw !== null;
}

/** A numeric attribute, or `otherwise` where it is absent. */
export function numberOf(value: unknown, otherwise: number): number {
  return typeof value === 'number' ? value : otherwise;
}
