/**
 * Conditions and changes as values that can be named, combined and tested. Placeholders are given out while rendering,
 * so two conditions never clash and reserved words never matter.
 */
import { ConfigurationError, type OptionFault } from '../errors.ts';
import { faultOfName } from './kept-values.ts';
import { faultOfValue } from './storable.ts';
import { TABLE } from './table.ts';

/**
 * Gives out `#n` and `:v` placeholders for one request. What DynamoDB would refuse without saying where is collected
 * while rendering, and refused by {@link Placeholders.fields}, all at once and by the attribute's name.
 */
export class Placeholders {
  readonly #names = new Map<string, string>();
  readonly #values = new Map<string, unknown>();
  readonly #faults: OptionFault[] = [];

  /** A placeholder path for an attribute; dots lead into maps (`steps.charge`). */
  name(path: string): string {
    return path
      .split('.')
      .map((part) => {
        if (part === '') this.refuse({ name: 'path', rule: 'names joined by dots, none of them empty', value: path });
        const fault = faultOfName(part);
        if (fault !== undefined) this.refuse(fault);
        const known = this.#names.get(part) ?? `#n${String(this.#names.size)}`;
        this.#names.set(part, known);
        return known;
      })
      .join('.');
  }

  /** @param path the attribute that the value is for; names it when the value is wrong. */
  value(value: unknown, path = 'value'): string {
    const fault = faultOfValue(path, value);
    if (fault !== undefined) this.refuse(fault);
    const placeholder = `:v${String(this.#values.size)}`;
    this.#values.set(placeholder, value);
    return placeholder;
  }

  /** Notes a fault; {@link Placeholders.fields} will throw it with the others. */
  refuse(fault: OptionFault): void {
    this.#faults.push(fault);
  }

  /**
   * The request fields, once everything is rendered. DynamoDB refuses empty maps, so those are left out.
   * @throws {ConfigurationError} when what was rendered cannot be sent.
   */
  fields(): { ExpressionAttributeNames?: Record<string, string>; ExpressionAttributeValues?: Record<string, unknown> } {
    if (this.#faults.length > 0) throw new ConfigurationError('expression', this.#faults);
    const names = Object.fromEntries([...this.#names].map(([name, placeholder]) => [placeholder, name]));
    return {
      ...(this.#names.size > 0 && { ExpressionAttributeNames: names }),
      ...(this.#values.size > 0 && { ExpressionAttributeValues: Object.fromEntries(this.#values) }),
    };
  }
}

/** Writes itself as part of a ConditionExpression, without parentheses around the whole. */
export type Condition = (placeholders: Placeholders) => string;

/** Writes the right-hand side of a SET for the attribute at `path`. */
export type SetExpression = (placeholders: Placeholders, path: string) => string;

/**
 * What an update does: attributes to set (a value, or an expression of this module) and to remove. At least one; each
 * path once; no part of the key. A value that is undefined is refused, never skipped.
 */
export interface Change {
  readonly set?: Readonly<Record<string, unknown>>;
  readonly remove?: readonly string[];
}

/** `attribute + by`, starting from `start` when the attribute is absent. Sent again, it adds again. */
export function plus(by: number, start: number): SetExpression {
  return (placeholders, path) =>
    `if_not_exists(${placeholders.name(path)}, ${placeholders.value(start, path)}) + ${placeholders.value(by, path)}`;
}

/**
 * `attribute - by`, starting from `start` when the attribute is absent. Sent again, it subtracts again.
 * @param start without it the attribute must be there, or DynamoDB refuses the request: put a condition on it.
 */
export function minus(by: number, start?: number): SetExpression {
  return (placeholders, path) => {
    const name = placeholders.name(path);
    const from = start === undefined ? name : `if_not_exists(${name}, ${placeholders.value(start, path)})`;
    return `${from} - ${placeholders.value(by, path)}`;
  };
}

/** Puts values at the end of a list, which is made when it is absent. Sent again, it appends again. */
export function append(...values: readonly unknown[]): SetExpression {
  return (placeholders, path) =>
    `list_append(if_not_exists(${placeholders.name(path)}, ${placeholders.value([], path)}), ${placeholders.value(values, path)})`;
}

/** Keeps the attribute when it is there already. */
export function ifAbsent(value: unknown): SetExpression {
  return (placeholders, path) => `if_not_exists(${placeholders.name(path)}, ${placeholders.value(value, path)})`;
}

/** What another attribute was before this update, or `otherwise` where it was absent. */
export function previous(attribute: string, otherwise: unknown): SetExpression {
  return (placeholders, path) =>
    `if_not_exists(${placeholders.name(attribute)}, ${placeholders.value(otherwise, path)})`;
}

export function renderChange(change: Change, placeholders: Placeholders): string {
  for (const fault of faultsOfChange(change)) placeholders.refuse(fault);
  const sets = Object.entries(change.set ?? {}).map(([path, value]) => {
    const right = isSetExpression(value) ? value(placeholders, path) : placeholders.value(value, path);
    return `${placeholders.name(path)} = ${right}`;
  });
  const removes = (change.remove ?? []).map((path) => placeholders.name(path));
  return [sets.length > 0 ? `SET ${sets.join(', ')}` : '', removes.length > 0 ? `REMOVE ${removes.join(', ')}` : '']
    .filter((clause) => clause !== '')
    .join(' ');
}

/**
 * Whether a change builds on what is stored, so that its second application changes the item once more: `plus`, `minus`,
 * `append`, and expressions of one's own that calculate. Names and values are placeholders, so the text shows it.
 */
export function isAccumulating(change: Change): boolean {
  const placeholders = new Placeholders();
  return Object.entries(change.set ?? {}).some(
    ([path, value]) => isSetExpression(value) && /[+-]|list_append/i.test(value(placeholders, path)),
  );
}

/** What DynamoDB refuses about the paths of a change, in words that name the path. */
function faultsOfChange(change: Change): OptionFault[] {
  const paths = [...Object.keys(change.set ?? {}), ...(change.remove ?? [])];
  if (paths.length === 0)
    return [{ name: 'change', rule: 'at least one attribute to set or to remove', value: change }];
  const seen = new Set<string>();
  const faults: OptionFault[] = [];
  for (const path of paths) {
    if (path === TABLE.partitionKey || path === TABLE.sortKey) {
      faults.push({ name: path, rule: 'no part of the key: an item keeps its key', value: path });
    }
    if (seen.has(path)) faults.push({ name: path, rule: 'changed once', value: path });
    seen.add(path);
  }
  for (const path of seen) {
    const outer = leadingPaths(path).find((leading) => seen.has(leading));
    if (outer !== undefined)
      faults.push({ name: path, rule: 'not changed beside the map that holds it', value: outer });
  }
  return faults;
}

/** `a.b.c` lies within `a` and `a.b`. */
function leadingPaths(path: string): string[] {
  const parts = path.split('.');
  return parts.slice(1).map((_part, index) => parts.slice(0, index + 1).join('.'));
}

// DynamoDB has no functions among its values, so a function here is always one of the expressions above.
function isSetExpression(value: unknown): value is SetExpression {
  return typeof value === 'function';
}
