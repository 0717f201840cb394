/**
 * Every rule that DynamoDB checks for us, by name and with its reason. It is checked and the write applied in one step
 * on the server: no read before the write can promise what a condition does.
 *
 * An attribute that is absent, or of another type than the value, satisfies no comparison. The rules that say what is
 * not so (`absent`, `attributeAbsent`, `notEquals`, `not`) therefore hold for an item that does not exist; add
 * `present()` where one must.
 *
 * In a path, dots lead into maps (`steps.charge`).
 */
import { ConfigurationError } from '../errors.ts';
import type { Condition } from './expressions.ts';
import { TABLE } from './table.ts';

/** What can be compared by order: numbers by size, texts by their UTF-8 bytes. */
export type Ordered = number | string;

/** As DynamoDB names the types of attributes: text, number, bytes, truth, null, map, list, and sets of the first three. */
export type AttributeType = 'S' | 'N' | 'B' | 'BOOL' | 'NULL' | 'M' | 'L' | 'SS' | 'NS' | 'BS';

/** @see AWS: condition expressions, the IN operator */
const MAX_CHOICES = 100;

/** No item has this key: the create-only rule that makes an effect happen once. */
export function absent(): Condition {
  return (placeholders) => `attribute_not_exists(${placeholders.name(TABLE.partitionKey)})`;
}

/** An item has this key: update-if-exists. Without it an update of nothing makes a half-empty item. */
export function present(): Condition {
  return (placeholders) => `attribute_exists(${placeholders.name(TABLE.partitionKey)})`;
}

/** The attribute is not there, or there is no item: nobody has set it yet. */
export function attributeAbsent(path: string): Condition {
  return (placeholders) => `attribute_not_exists(${placeholders.name(path)})`;
}

/** The attribute is there, whatever its value; null is a value. */
export function attributePresent(path: string): Condition {
  return (placeholders) => `attribute_exists(${placeholders.name(path)})`;
}

/** Exactly this value, type included: what was read has not changed since (`version`, `owner`, `status`). */
export function equals(path: string, value: unknown): Condition {
  return (placeholders) => `${placeholders.name(path)} = ${placeholders.value(value, path)}`;
}

/** Another value, or none: anything but a state that forbids the write. */
export function notEquals(path: string, value: unknown): Condition {
  return (placeholders) => {
    const name = placeholders.name(path);
    // Said in full, so that the rule for an absent attribute does not hang on how a backend reads `<>`.
    return `attribute_not_exists(${name}) OR ${name} <> ${placeholders.value(value, path)}`;
  };
}

/** Below `value`: a time that is over, a token that is older. */
export function lessThan(path: string, value: Ordered): Condition {
  return (placeholders) => `${placeholders.name(path)} < ${placeholders.value(value, path)}`;
}

/** `value` or below: room is left. */
export function atMost(path: string, value: Ordered): Condition {
  return (placeholders) => `${placeholders.name(path)} <= ${placeholders.value(value, path)}`;
}

/** Above `value`: a deadline that is still to come. */
export function moreThan(path: string, value: Ordered): Condition {
  return (placeholders) => `${placeholders.name(path)} > ${placeholders.value(value, path)}`;
}

/** `value` or above: enough is there (`balance`, `stock`). */
export function atLeast(path: string, value: Ordered): Condition {
  return (placeholders) => `${placeholders.name(path)} >= ${placeholders.value(value, path)}`;
}

/**
 * From `low` to `high`, both included.
 * @throws {ConfigurationError} when they are of two types, or `low` is above `high`: DynamoDB refuses such a range.
 */
export function between(path: string, low: Ordered, high: Ordered): Condition {
  if (typeof low !== typeof high || !isInOrder(low, high)) {
    refuse(path, 'a range of two numbers or two texts, the lower one first', [low, high]);
  }
  return (placeholders) =>
    `${placeholders.name(path)} BETWEEN ${placeholders.value(low, path)} AND ${placeholders.value(high, path)}`;
}

/**
 * One of these values: any state from which the write is allowed.
 * @param values 1-100.
 * @throws {ConfigurationError} over the limit.
 */
export function oneOf(path: string, values: readonly unknown[]): Condition {
  if (values.length === 0 || values.length > MAX_CHOICES) {
    refuse(path, `one of 1 to ${String(MAX_CHOICES)} values`, values.length);
  }
  return (placeholders) => {
    const name = placeholders.name(path);
    return `${name} IN (${values.map((value) => placeholders.value(value, path)).join(', ')})`;
  };
}

/**
 * A text that begins with `prefix`.
 * @throws {ConfigurationError} when the prefix is empty: every text begins with it, so it would guard nothing.
 */
export function beginsWith(path: string, prefix: string): Condition {
  if (prefix === '') refuse(path, 'a prefix that is not empty', prefix);
  return (placeholders) => `begins_with(${placeholders.name(path)}, ${placeholders.value(prefix, path)})`;
}

/** A text that holds this text, or a list or set that holds this member. */
export function contains(path: string, value: unknown): Condition {
  return (placeholders) => `contains(${placeholders.name(path)}, ${placeholders.value(value, path)})`;
}

/** The attribute is there and of this type: for items that other writers may have made. */
export function attributeType(path: string, type: AttributeType): Condition {
  return (placeholders) => `attribute_type(${placeholders.name(path)}, ${placeholders.value(type, path)})`;
}

/**
 * Keeps an attribute from growing without end.
 * @param size characters of a text, bytes of binary data, members of a list, map or set. A number has no size: false.
 * @throws {ConfigurationError} when it is not a whole number from 0.
 */
export function sizeAtMost(path: string, size: number): Condition {
  if (!Number.isSafeInteger(size) || size < 0) refuse(path, 'a size that is a whole number from 0', size);
  return (placeholders) => `size(${placeholders.name(path)}) <= ${placeholders.value(size, path)}`;
}

/** The condition is false. Beware of absent items and attributes: what cannot be compared is not so. */
export function not(condition: Condition): Condition {
  return (placeholders) => `NOT (${condition(placeholders)})`;
}

/** Each of the conditions holds. @throws {ConfigurationError} without any: it would guard nothing. */
export function all(...conditions: readonly Condition[]): Condition {
  return joined('all', conditions, ' AND ');
}

/** At least one of the conditions holds. @throws {ConfigurationError} without any: it would refuse everything. */
export function any(...conditions: readonly Condition[]): Condition {
  return joined('any', conditions, ' OR ');
}

function joined(name: string, conditions: readonly Condition[], word: string): Condition {
  const [only, ...others] = conditions;
  if (only === undefined) return refuse(name, 'at least one condition', conditions.length);
  // DynamoDB refuses parentheses within parentheses around the same thing.
  if (others.length === 0) return only;
  return (placeholders) => conditions.map((condition) => `(${condition(placeholders)})`).join(word);
}

/** Texts are ordered as DynamoDB does it, by bytes: JavaScript's own order differs beyond the basic plane. */
function isInOrder(low: Ordered, high: Ordered): boolean {
  if (typeof low === 'number' || typeof high === 'number') return low <= high;
  return Buffer.compare(Buffer.from(low), Buffer.from(high)) <= 0;
}

function refuse(name: string, rule: string, value: unknown): never {
  throw new ConfigurationError('condition', [{ name, rule, value }]);
}
