/** Reads the fields of a request, and refuses those that this DynamoDB does not know rather than pass over them. */
import { invalid, unsupported } from './service-error.ts';
import { isRecord } from './values.ts';

export type WireRequest = Readonly<Record<string, unknown>>;

export function checkFields(what: string, request: WireRequest, known: readonly string[]): void {
  const unknown = Object.keys(request).find((field) => !known.includes(field));
  if (unknown !== undefined) throw unsupported(`${unknown} in ${what}`);
}

export function textOf(request: WireRequest, field: string): string {
  const value = optionalText(request, field);
  if (value === undefined)
    throw invalid(`Value null at '${field}' failed to satisfy constraint: Member must not be null`);
  return value;
}

export function optionalText(request: WireRequest, field: string): string | undefined {
  const value = request[field];
  if (value !== undefined && typeof value !== 'string') throw invalid(`${field} must be a string`);
  return value;
}

/** One of the words, the first when the field is absent. */
export function wordOf<Word extends string>(
  request: WireRequest,
  field: string,
  words: readonly [Word, ...Word[]],
): Word {
  const value = request[field] ?? words[0];
  const word = words.find((each) => each === value);
  if (word === undefined) throw invalid(`Value at '${field}' failed to satisfy constraint: one of ${words.join(', ')}`);
  return word;
}

export function flagOf(request: WireRequest, field: string, otherwise: boolean): boolean {
  const value = request[field] ?? otherwise;
  if (typeof value !== 'boolean') throw invalid(`${field} must be a boolean`);
  return value;
}

export function recordOf(request: WireRequest, field: string): WireRequest {
  const value = request[field];
  if (!isRecord(value)) throw invalid(`Value at '${field}' failed to satisfy constraint: Member must be a map`);
  return value;
}

/** @param limits how many members the list may have. */
export function recordsOf(
  request: WireRequest,
  field: string,
  limits: { readonly min: number; readonly max: number },
): readonly WireRequest[] {
  const value = request[field];
  if (!Array.isArray(value) || value.length < limits.min || value.length > limits.max) {
    throw invalid(`Member must have from ${String(limits.min)} to ${String(limits.max)} elements at '${field}'`);
  }
  return value.map((member: unknown) => {
    if (!isRecord(member)) throw invalid(`'${field}' must hold maps`);
    return member;
  });
}
