/**
 * Conditions and changes as values that can be named, combined and tested. Placeholders are given out while rendering,
 * so two conditions never clash and reserved words never matter.
 */

/** Gives out `#n` and `:v` placeholders for one request. */
export class Placeholders {
  readonly #names = new Map<string, string>();
  readonly #values = new Map<string, unknown>();

  /** A placeholder path for an attribute; dots lead into maps (`steps.charge`). */
  name(path: string): string {
    return path
      .split('.')
      .map((part) => {
        const known = this.#names.get(part) ?? `#n${String(this.#names.size)}`;
        this.#names.set(part, known);
        return known;
      })
      .join('.');
  }

  value(value: unknown): string {
    const placeholder = `:v${String(this.#values.size)}`;
    this.#values.set(placeholder, value);
    return placeholder;
  }

  /** The request fields. DynamoDB refuses empty maps, so those are left out. */
  fields(): { ExpressionAttributeNames?: Record<string, string>; ExpressionAttributeValues?: Record<string, unknown> } {
    const names = Object.fromEntries([...this.#names].map(([name, placeholder]) => [placeholder, name]));
    return {
      ...(this.#names.size > 0 && { ExpressionAttributeNames: names }),
      ...(this.#values.size > 0 && { ExpressionAttributeValues: Object.fromEntries(this.#values) }),
    };
  }
}

/** Writes itself as part of a ConditionExpression. */
export type Condition = (placeholders: Placeholders) => string;

/** Writes the right-hand side of a SET for the attribute at `path`. */
export type SetExpression = (placeholders: Placeholders, path: string) => string;

/** What an update does: attributes to set (a value, or an expression of this module) and to remove. */
export interface Change {
  readonly set?: Readonly<Record<string, unknown>>;
  readonly remove?: readonly string[];
}

/** `attribute + by`, starting from `start` when the attribute is absent. */
export function plus(by: number, start: number): SetExpression {
  return (placeholders, path) =>
    `if_not_exists(${placeholders.name(path)}, ${placeholders.value(start)}) + ${placeholders.value(by)}`;
}

/** Keeps the attribute when it is there already. */
export function ifAbsent(value: unknown): SetExpression {
  return (placeholders, path) => `if_not_exists(${placeholders.name(path)}, ${placeholders.value(value)})`;
}

/** What another attribute was before this update, or `otherwise` where it was absent. */
export function previous(attribute: string, otherwise: unknown): SetExpression {
  return (placeholders) => `if_not_exists(${placeholders.name(attribute)}, ${placeholders.value(otherwise)})`;
}

export function renderChange(change: Change, placeholders: Placeholders): string {
  const sets = Object.entries(change.set ?? {}).map(([path, value]) => {
    const right = isSetExpression(value) ? value(placeholders, path) : placeholders.value(value);
    return `${placeholders.name(path)} = ${right}`;
  });
  const removes = (change.remove ?? []).map((path) => placeholders.name(path));
  return [sets.length > 0 ? `SET ${sets.join(', ')}` : '', removes.length > 0 ? `REMOVE ${removes.join(', ')}` : '']
    .filter((clause) => clause !== '')
    .join(' ');
}

// DynamoDB has no functions among its values, so a function here is always one of the expressions above.
function isSetExpression(value: unknown): value is SetExpression {
  return typeof value === 'function';
}
