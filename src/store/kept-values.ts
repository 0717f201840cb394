/**
 * Which values DynamoDB keeps whole. The marshaller of the SDK takes more than that: it drops functions, fields of a
 * Map or a Set that are undefined and `__proto__`, stores an ArrayBuffer or a Blob as nothing, and turns halves of
 * surrogate pairs into one and the same character, all without a word. So only what is known to come back is let through.
 */
import type { OptionFault } from '../errors.ts';

/** @see AWS: DynamoDB quotas, nested attribute depth */
const MAX_DEPTH = 32;

/** @see AWS: DynamoDB quotas, numbers: 38 digits */
const BIGINT_LIMIT: bigint = 10n ** 38n;

/** Why a value would not come back as it is; undefined when it would. Finite numbers are left to the marshaller. */
export function whyNotKept(value: unknown, depth = 0): string | undefined {
  if (depth > MAX_DEPTH) return `nested deeper than ${String(MAX_DEPTH)} levels, or within itself`;
  switch (typeof value) {
    case 'string':
      return value.isWellFormed() ? undefined : 'half of a surrogate pair';
    case 'bigint':
      return value < BIGINT_LIMIT && value > -BIGINT_LIMIT ? undefined : 'a number of more than 38 digits';
    case 'number':
      return Number.isFinite(value) ? undefined : String(value);
    case 'boolean':
      return undefined;
    case 'object':
      return value === null ? undefined : whyObjectNotKept(value, depth);
    case 'undefined':
      return 'undefined in a list or a set';
    case 'function':
    case 'symbol':
      return `a ${typeof value}`;
  }
}

/** What is wrong with the name of an attribute or of a field, or nothing. */
export function faultOfName(name: string): OptionFault | undefined {
  const rule = whyNotAName(name);
  return rule === undefined ? undefined : { name, rule: 'a name that can be read back', value: rule };
}

function whyNotAName(name: string): string | undefined {
  if (!name.isWellFormed()) return 'half of a surrogate pair in a name';
  // Read back, it would become the prototype of the item.
  return name === '__proto__' ? 'a field called __proto__' : undefined;
}

function whyObjectNotKept(value: object, depth: number): string | undefined {
  if (value instanceof Uint8Array) return undefined;
  if (value instanceof Set) return whySetNotKept(value);
  // Not `some` or `find` on the list itself: they pass over its holes.
  if (Array.isArray(value)) return firstReason(Array.from<unknown>(value), (member) => whyNotKept(member, depth + 1));
  return isPlain(value) ? whyFieldsNotKept(value, depth) : `a ${classOf(value)}`;
}

function whyFieldsNotKept(value: object, depth: number): string | undefined {
  if (Object.getOwnPropertySymbols(value).length > 0) return 'a field named by a symbol';
  // The marshaller tells objects by their constructor's name.
  if (Object.hasOwn(value, 'constructor')) return 'a field called constructor within a map';
  return firstReason(
    Object.entries(value),
    ([name, member]: [string, unknown]) =>
      whyNotAName(name) ?? (member === undefined ? undefined : whyNotKept(member, depth + 1)),
  );
}

function whySetNotKept(value: ReadonlySet<unknown>): string | undefined {
  if (value.size === 0) return 'an empty set';
  const kinds = new Set([...value].map(kindOfMember));
  if (kinds.has(undefined)) return 'a set of what is neither text, number nor bytes';
  if (kinds.size > 1) return 'a set of more than one kind';
  return firstReason([...value], (member) => whyNotKept(member));
}

function kindOfMember(member: unknown): string | undefined {
  if (member instanceof Uint8Array) return 'bytes';
  if (typeof member === 'number' || typeof member === 'bigint') return 'number';
  return typeof member === 'string' ? 'text' : undefined;
}

function firstReason<Each>(
  members: readonly Each[],
  reasonOf: (member: Each) => string | undefined,
): string | undefined {
  for (const member of members) {
    const reason = reasonOf(member);
    if (reason !== undefined) return reason;
  }
  return undefined;
}

/** Also those of another realm. */
function isPlain(value: object): boolean {
  const prototype: unknown = Object.getPrototypeOf(value);
  return prototype === null || Object.getPrototypeOf(prototype) === null;
}

function classOf(value: object): string {
  const name: unknown = value.constructor.name;
  return typeof name === 'string' && name !== '' ? name : 'class instance';
}
