/** Applies an update to an item. */
import { addDecimals, negated } from './decimal.ts';
import { valueAt, withValueAt } from './document-path.ts';
import type { Path } from './placeholder-values.ts';
import { invalid } from './service-error.ts';
import type { Term, UpdateAction } from './update-syntax.ts';
import { isSet, scalarText, type SetValue, type Value, type ValueMap } from './values.ts';

/**
 * The item after the update. Right-hand sides are read from the item as it was, so their order does not matter.
 * @throws {ServiceError} ValidationException when a path or a type does not fit this item.
 */
export function updated(item: ValueMap, actions: readonly UpdateAction[]): ValueMap {
  let result = item;
  const removed: Path[] = [];
  // New members of a list go to its end in the order of their indexes.
  for (const action of actions.toSorted((left, right) => byIndexFromTheEnd(right.path, left.path))) {
    // There is nothing to delete from: not even a path that leads nowhere is a fault then.
    if (action.kind === 'DELETE' && valueAt(item, action.path) === undefined) continue;
    const value = action.kind === 'REMOVE' ? undefined : newValue(item, action);
    if (value === undefined) removed.push(action.path);
    else result = withValueAt(result, action.path, value);
  }
  // Inner before outer and later before earlier, so that each index still means what it meant in the request.
  for (const path of removed.toSorted(byIndexFromTheEnd)) result = withValueAt(result, path, undefined);
  return result;
}

function newValue(item: ValueMap, action: Exclude<UpdateAction, { kind: 'REMOVE' }>): Value | undefined {
  if (action.kind === 'SET') return evaluate(action.term, item);
  const known = valueAt(item, action.path);
  if (action.kind === 'ADD') return known === undefined ? action.value : added(known, action.value);
  if (known === undefined) return undefined;
  if (!isSet(known) || known.type !== action.value.type) throw wrongOperand();
  const gone = new Set(membersOf(action.value).map(scalarText));
  const left = known.members.filter((member) => !gone.has(scalarText(member)));
  // A set is never empty: with its last member the attribute goes.
  return left.length === 0 ? undefined : { type: known.type, members: left };
}

function evaluate(term: Term, item: ValueMap): Value {
  switch (term.kind) {
    case 'value':
      return term.value;
    case 'path': {
      const value = valueAt(item, term.path);
      if (value === undefined) {
        throw invalid('The provided expression refers to an attribute that does not exist in the item');
      }
      return value;
    }
    case 'if not exists':
      return valueAt(item, term.path) ?? evaluate(term.otherwise, item);
    case 'append': {
      const [left, right] = [evaluate(term.left, item), evaluate(term.right, item)];
      if (left.type !== 'L' || right.type !== 'L') throw wrongOperand();
      return { type: 'L', members: [...left.members, ...right.members] };
    }
    case 'plus':
    case 'minus': {
      const [left, right] = [evaluate(term.left, item), evaluate(term.right, item)];
      if (left.type !== 'N' || right.type !== 'N') throw wrongOperand();
      const summand = term.kind === 'plus' ? right.number : negated(right.number);
      return { type: 'N', number: addDecimals(left.number, summand) };
    }
  }
}

function added(known: Value, value: Value): Value {
  if (known.type === 'N' && value.type === 'N') return { type: 'N', number: addDecimals(known.number, value.number) };
  if (!isSet(known) || known.type !== value.type) throw wrongOperand();
  const texts = new Set(known.members.map(scalarText));
  const fresh = membersOf(value).filter((member) => !texts.has(scalarText(member)));
  return { type: known.type, members: [...known.members, ...fresh] };
}

function membersOf(value: Value): SetValue['members'] {
  return isSet(value) ? value.members : [];
}

function byIndexFromTheEnd(left: Path, right: Path): number {
  return right.length - left.length || lastIndex(right) - lastIndex(left);
}

/** Before all indexes for a name: what has no order must not come between those that have one. */
function lastIndex(path: Path): number {
  const last = path.at(-1);
  return typeof last === 'number' ? last : -1;
}

function wrongOperand(): Error {
  return invalid('An operand in the update expression has an incorrect data type');
}
