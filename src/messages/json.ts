/**
 * JSON as it is safe to take from a queue: bounded depth, no prototype keys, text that can be stored. And JSON in one
 * canonical form, so that two producers who order fields differently still send the same message.
 */
import { MAX_JSON_DEPTH } from './limits.ts';

export type Json = string | number | boolean | null | readonly Json[] | { readonly [key: string]: Json };

export type ParsedJson =
  { readonly kind: 'parsed'; readonly value: Json } | { readonly kind: 'refused'; readonly reason: string };

/** Parses text and refuses what later code could trip over. Never throws. */
export function parseJson(text: string): ParsedJson {
  let value: Json;
  try {
    value = JSON.parse(text) as Json;
  } catch {
    // V8's message quotes the text, which may be a secret; the reason must not.
    return { kind: 'refused', reason: 'the body is not JSON' };
  }
  const fault = findFault(value);
  return fault === undefined ? { kind: 'parsed', value } : { kind: 'refused', reason: fault };
}

/** The same text for values that are equal, whatever the order of their fields. Depth is bounded by `parseJson`. */
export function canonicalJson(value: Json): string {
  if (typeof value !== 'object' || value === null) return JSON.stringify(value);
  if (isArray(value)) return `[${value.map(canonicalJson).join(',')}]`;
  const fields = Object.entries(value)
    .sort(([left], [right]) => (left < right ? -1 : 1))
    .map(([name, field]) => `${JSON.stringify(name)}:${canonicalJson(field)}`);
  return `{${fields.join(',')}}`;
}

/** Walks with a stack of its own: recursion on a hostile body would overflow ours. */
function findFault(root: Json): string | undefined {
  const open: { value: Json; depth: number }[] = [{ value: root, depth: 1 }];
  for (let item = open.pop(); item !== undefined; item = open.pop()) {
    const { value, depth } = item;
    if (typeof value === 'string' && !value.isWellFormed()) return 'a text holds half of a surrogate pair';
    // 1e400 is read as Infinity, which is written as null: it would share its hash with another message.
    if (typeof value === 'number' && !Number.isFinite(value)) return 'a number is out of range';
    if (typeof value !== 'object' || value === null) continue;
    if (depth > MAX_JSON_DEPTH) return `nested deeper than ${String(MAX_JSON_DEPTH)} levels`;
    const nameFault = isArray(value) ? undefined : Object.keys(value).map(faultOfName).find(Boolean);
    if (nameFault !== undefined) return nameFault;
    for (const child of Object.values(value)) open.push({ value: child, depth: depth + 1 });
  }
  return undefined;
}

function faultOfName(name: string): string | undefined {
  if (name === '__proto__') return 'a field is named __proto__';
  return name.isWellFormed() ? undefined : 'a field name holds half of a surrogate pair';
}

function isArray(value: Json): value is readonly Json[] {
  return Array.isArray(value);
}
