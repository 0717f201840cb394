/** Asks whether a condition holds for an item; an item that does not exist has no attributes. */
import type { Comparator, ConditionTree, Operand } from './condition-syntax.ts';
import { valueAt } from './document-path.ts';
import { parseDecimal } from './decimal.ts';
import { areEqual, compareValues, isSet, type Value, type ValueMap } from './values.ts';

export function holds(tree: ConditionTree, item: ValueMap): boolean {
  switch (tree.kind) {
    case 'and':
      return tree.parts.every((part) => holds(part, item));
    case 'or':
      return tree.parts.some((part) => holds(part, item));
    case 'not':
      return !holds(tree.part, item);
    case 'compare':
      return compares(tree.by, read(tree.left, item), read(tree.right, item));
    case 'between': {
      const value = read(tree.operand, item);
      return compares('>=', value, read(tree.low, item)) && compares('<=', value, read(tree.high, item));
    }
    case 'in': {
      const value = read(tree.operand, item);
      return tree.list.some((each) => compares('=', value, read(each, item)));
    }
    case 'exists':
      return valueAt(item, tree.path) !== undefined;
    case 'not exists':
      return valueAt(item, tree.path) === undefined;
    case 'type':
      return valueAt(item, tree.path)?.type === tree.type;
    case 'begins with':
      return beginsWith(read(tree.operand, item), read(tree.part, item));
    case 'contains':
      return contains(read(tree.operand, item), read(tree.part, item));
  }
}

function read(operand: Operand, item: ValueMap): Value | undefined {
  if (operand.kind === 'value') return operand.value;
  if (operand.kind === 'path') return valueAt(item, operand.path);
  const size = sizeOf(read(operand.of, item));
  return size === undefined ? undefined : { type: 'N', number: parseDecimal(String(size)) };
}

/** A comparison with nothing is false, but for `<>`: nothing is different from everything. */
function compares(by: Comparator, left: Value | undefined, right: Value | undefined): boolean {
  if (by === '<>') return !isEqual(left, right);
  if (by === '=') return isEqual(left, right);
  const order = left === undefined || right === undefined ? undefined : compareValues(left, right);
  if (order === undefined) return false;
  switch (by) {
    case '<':
      return order < 0;
    case '<=':
      return order <= 0;
    case '>':
      return order > 0;
    case '>=':
      return order >= 0;
  }
}

function isEqual(left: Value | undefined, right: Value | undefined): boolean {
  return left !== undefined && right !== undefined && areEqual(left, right);
}

function beginsWith(value: Value | undefined, part: Value | undefined): boolean {
  if (value?.type === 'S' && part?.type === 'S') return value.text.startsWith(part.text);
  if (value?.type === 'B' && part?.type === 'B') {
    return value.bytes.subarray(0, part.bytes.length).equals(part.bytes);
  }
  return false;
}

function contains(value: Value | undefined, part: Value | undefined): boolean {
  if (value === undefined || part === undefined) return false;
  if (value.type === 'S') return part.type === 'S' && value.text.includes(part.text);
  if (value.type === 'B') return part.type === 'B' && value.bytes.includes(part.bytes);
  const members: readonly Value[] = value.type === 'L' || isSet(value) ? value.members : [];
  return members.some((member) => areEqual(member, part));
}

/** Undefined for what has no size. */
function sizeOf(value: Value | undefined): number | undefined {
  switch (value?.type) {
    case 'S':
      // Neither bytes nor characters: an emoji is two.
      return value.text.length;
    case 'B':
      return value.bytes.length;
    case 'L':
    case 'SS':
    case 'NS':
    case 'BS':
      return value.members.length;
    case 'M':
      return value.entries.size;
    case 'N':
    case 'BOOL':
    case 'NULL':
    case undefined:
      return undefined;
  }
}
