/** Reads and writes inside an item by document path. Writing makes a new item; the old one stays as it was. */
import type { Path } from './placeholder-values.ts';
import { invalid } from './service-error.ts';
import type { Value, ValueMap } from './values.ts';

export function valueAt(item: ValueMap, path: Path): Value | undefined {
  const [first, ...rest] = path;
  let value = item.get(String(first));
  for (const step of rest) {
    if (value === undefined) return undefined;
    value = childOf(value, step);
  }
  return value;
}

/**
 * Puts `value` at the path, or removes what is there when it is undefined. Only the last step may be new: an index
 * beyond the end of a list is its next free place.
 * @throws {ServiceError} ValidationException when the path leads through something that is not there.
 */
export function withValueAt(item: ValueMap, path: Path, value: Value | undefined): ValueMap {
  const [first, ...rest] = path;
  const changed = new Map(item);
  setEntry(changed, String(first), rest.length === 0 ? value : changedWithin(item.get(String(first)), rest, value));
  return changed;
}

function changedWithin(parent: Value | undefined, path: Path, value: Value | undefined): Value {
  const [step, ...rest] = path;
  if (parent?.type === 'M' && typeof step === 'string') {
    const entries = new Map(parent.entries);
    setEntry(entries, step, rest.length === 0 ? value : changedWithin(entries.get(step), rest, value));
    return { type: 'M', entries };
  }
  if (parent?.type === 'L' && typeof step === 'number') {
    const child = rest.length === 0 ? value : changedWithin(parent.members[step], rest, value);
    return { type: 'L', members: withMember(parent.members, step, child) };
  }
  throw invalid('The document path provided in the update expression is invalid for update');
}

function setEntry(entries: Map<string, Value>, name: string, value: Value | undefined): void {
  if (value === undefined) entries.delete(name);
  else entries.set(name, value);
}

function withMember(members: readonly Value[], index: number, value: Value | undefined): readonly Value[] {
  if (value === undefined) return members.filter((_, position) => position !== index);
  return index < members.length ? members.with(index, value) : [...members, value];
}

function childOf(value: Value, step: string | number): Value | undefined {
  if (typeof step === 'number') return value.type === 'L' ? value.members[step] : undefined;
  return value.type === 'M' ? value.entries.get(step) : undefined;
}

/** What `item` holds at these paths, and nothing else, in the shape of the item. */
export function onlyAt(item: ValueMap, paths: readonly Path[]): ValueMap {
  const found = new Map<string, Value>();
  for (const path of paths) {
    const value = valueAt(item, path);
    const [first, ...rest] = path;
    if (value === undefined) continue;
    const name = String(first);
    found.set(name, merged(found.get(name), rest, value));
  }
  return found;
}

function merged(known: Value | undefined, path: Path, value: Value): Value {
  const [step, ...rest] = path;
  if (step === undefined) return value;
  if (typeof step === 'number') {
    // A list of what was changed has no gaps.
    const members = known?.type === 'L' ? known.members : [];
    return { type: 'L', members: [...members, merged(undefined, rest, value)] };
  }
  const entries = known?.type === 'M' ? known.entries : new Map<string, Value>();
  return { type: 'M', entries: new Map([...entries, [step, merged(entries.get(step), rest, value)]]) };
}
