/** Every rule that DynamoDB checks for us, by name and with its reason. */
import type { Condition } from './expressions.ts';
import { TABLE } from './table.ts';

/** No item has this key: the create-only rule that makes an effect happen once. */
export function absent(): Condition {
  return (placeholders) => `attribute_not_exists(${placeholders.name(TABLE.partitionKey)})`;
}

export function present(): Condition {
  return (placeholders) => `attribute_exists(${placeholders.name(TABLE.partitionKey)})`;
}

export function attributeAbsent(path: string): Condition {
  return (placeholders) => `attribute_not_exists(${placeholders.name(path)})`;
}

export function equals(path: string, value: unknown): Condition {
  return (placeholders) => `${placeholders.name(path)} = ${placeholders.value(value)}`;
}

export function lessThan(path: string, value: number): Condition {
  return (placeholders) => `${placeholders.name(path)} < ${placeholders.value(value)}`;
}

export function oneOf(path: string, values: readonly unknown[]): Condition {
  return (placeholders) => {
    const name = placeholders.name(path);
    return `${name} IN (${values.map((value) => placeholders.value(value)).join(', ')})`;
  };
}

export function all(...conditions: readonly Condition[]): Condition {
  return joined(conditions, ' AND ');
}

export function any(...conditions: readonly Condition[]): Condition {
  return joined(conditions, ' OR ');
}

function joined(conditions: readonly Condition[], word: string): Condition {
  return (placeholders) => conditions.map((condition) => `(${condition(placeholders)})`).join(word);
}
