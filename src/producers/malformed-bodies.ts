/** Bodies that every receiver must refuse, each for another reason: for tests and for faults injected on purpose. */
import { MAX_JSON_DEPTH } from '../messages/limits.ts';
import type { Json } from '../messages/json.ts';

export const MALFORMED_KINDS = [
  'not-json',
  'unknown-type',
  'unknown-version',
  'missing-field',
  'empty-key',
  'deep-nesting',
] as const;

export type MalformedKind = (typeof MALFORMED_KINDS)[number];

/** A version that no contract will reach. */
const UNKNOWN_VERSION = 999_999;

/**
 * Spoils the body of a good message. ASCII only in what it adds, so that SQS takes it and the receiver has to judge.
 * @param envelope of a message that is valid.
 */
export function malformedBody(kind: MalformedKind, envelope: Readonly<Record<string, Json>>): string {
  switch (kind) {
    case 'not-json':
      return `{"type":${JSON.stringify(envelope['type'])},"version":1,"key":`;
    case 'unknown-type':
      return JSON.stringify({ ...envelope, type: 'nobody.knows' });
    case 'unknown-version':
      return JSON.stringify({ ...envelope, version: UNKNOWN_VERSION });
    case 'missing-field': {
      const { key: _left, ...rest } = envelope;
      return JSON.stringify(rest);
    }
    case 'empty-key':
      return JSON.stringify({ ...envelope, key: '' });
    case 'deep-nesting':
      return JSON.stringify({ ...envelope, payload: nested(MAX_JSON_DEPTH * 4) });
  }
}

function nested(levels: number): Json {
  let value: Json = 'bottom';
  for (let level = 0; level < levels; level += 1) value = [value];
  return value;
}
