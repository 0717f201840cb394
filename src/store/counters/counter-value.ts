/** What a counter holds: a whole number that JavaScript keeps exactly, and so does every sum that is formed with it. */
import { OnlyonceError } from '../../errors.ts';
import { attributeAbsent, all, any, atLeast, atMost } from '../conditions.ts';
import { plus, type Change, type Condition } from '../expressions.ts';
import { keyText, type Item, type ItemKey } from '../table.ts';

/** The attribute that holds it. */
export const VALUE = 'value';

/**
 * No amount, bound or value goes beyond it in either direction: half of what JavaScript keeps exactly, so that a bound
 * minus an amount is exact too. DynamoDB itself would count on, to 38 digits, where nobody here could read it.
 */
export const COUNTER_LIMIT: number = 2 ** 52 - 1;

/** The counter holds what is no counter's value (it was written by others), or has no next number. */
export class CounterValueError extends OnlyonceError {
  readonly code = 'COUNTER_VALUE';
  readonly retryable = false;
}

/** The value stays within them: an addition that would lead out of them is refused. */
export interface CounterBounds {
  /** @defaultValue none but the limit of all counters, -(2^52 - 1) */
  readonly floor?: number;
  /** @defaultValue none but the limit of all counters, 2^52 - 1 */
  readonly ceiling?: number;
}

/** 0 where there is no counter yet. @throws {CounterValueError} */
export function counterValue(key: ItemKey, item: Item | undefined): number {
  const value = item?.[VALUE];
  if (value === undefined) return 0;
  if (typeof value === 'number' && isCounterValue(value)) return value;
  throw new CounterValueError(`the counter ${keyText(key)} holds no whole number within its limit`);
}

export function isCounterValue(value: number): boolean {
  return Number.isInteger(value) && Math.abs(value) <= COUNTER_LIMIT;
}

/**
 * An addition whose result must be within the bounds. The limit of all counters is one of them on the side that the
 * addition moves to.
 */
export function addition(
  by: number,
  bounds: CounterBounds,
): { readonly change: Change; readonly condition?: Condition } {
  const floor = bounds.floor ?? (by < 0 ? -COUNTER_LIMIT : undefined);
  const ceiling = bounds.ceiling ?? (by > 0 ? COUNTER_LIMIT : undefined);
  const change: Change = { set: { [VALUE]: plus(by, 0) } };
  const rules = [
    ...(floor === undefined ? [] : [atLeast(VALUE, floor - by)]),
    ...(ceiling === undefined ? [] : [atMost(VALUE, ceiling - by)]),
  ];
  if (rules.length === 0) return { change };
  // An absent counter satisfies no comparison, but counts as 0: whether that is within the bounds is known here.
  const mayBeFirst = by >= (floor ?? by) && by <= (ceiling ?? by);
  return { change, condition: mayBeFirst ? any(attributeAbsent(VALUE), all(...rules)) : all(...rules) };
}
