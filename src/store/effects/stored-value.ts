/** Responses and step results as they are kept in the record: whole when they fit, by digest when they do not. */
import { createHash } from 'node:crypto';
import { messageOf, OnlyonceError } from '../../errors.ts';

export type StoredValue =
  /** As JSON text: it reads back exactly as it was, also numbers and empty texts that DynamoDB treats specially. */
  | { readonly json: string }
  /** Too large for the record. A duplicate still is a replay; it gets the digest. */
  | { readonly sha256: string; readonly bytes: number };

/** What a replay returns in the place of a response that was too large to keep. */
export interface ResponseDigest {
  readonly digest: 'sha256';
  readonly sha256: string;
  readonly bytes: number;
}

/** The largest response, and the largest result of one step, that is kept whole. */
export const MAX_STORED_BYTES = 65_536;

/** A response or a step's result has no JSON: a bigint, a cycle, a function, nesting without end. */
export class UnstorableValueError extends OnlyonceError {
  readonly code = 'NOT_STORABLE';
  readonly retryable = false;

  constructor(cause: unknown) {
    super(`the value cannot be kept as JSON: ${messageOf(cause)}`, { cause });
  }
}

/** The digest as this module makes it: a response of the user's that only looks like one is none. */
class StoredDigest implements ResponseDigest {
  readonly digest = 'sha256';
  readonly sha256: string;
  readonly bytes: number;

  constructor(sha256: string, bytes: number) {
    this.sha256 = sha256;
    this.bytes = bytes;
  }
}

/**
 * The value's JSON. JSON has no undefined; whoever returns nothing is answered with null.
 * @throws {UnstorableValueError}
 */
export function jsonOf(value: unknown): string {
  let json: string | undefined;
  try {
    // Functions and symbols have no JSON, and are not said to be nothing.
    json = JSON.stringify(value ?? null) as string | undefined;
  } catch (error) {
    throw new UnstorableValueError(error);
  }
  if (json === undefined) throw new UnstorableValueError(`a ${typeof value} has none`);
  return json;
}

/** @throws {UnstorableValueError} */
export function toStored(value: unknown): StoredValue {
  const json = jsonOf(value);
  const bytes = Buffer.byteLength(json);
  if (bytes <= MAX_STORED_BYTES) return { json };
  return digestOf(json);
}

/** What is kept of a text that does not fit. */
export function digestOf(json: string): { readonly sha256: string; readonly bytes: number } {
  return { sha256: createHash('sha256').update(json).digest('hex'), bytes: Buffer.byteLength(json) };
}

export function fromStored(stored: unknown): unknown {
  if (typeof stored !== 'object' || stored === null) return null;
  if ('json' in stored && typeof stored.json === 'string') return JSON.parse(stored.json) as unknown;
  const { sha256, bytes } = stored as { sha256?: unknown; bytes?: unknown };
  return new StoredDigest(String(sha256), Number(bytes));
}

/** Tells a digest of {@link fromStored} from a response that only looks like one. */
export function isStoredDigest(value: unknown): value is ResponseDigest {
  return value instanceof StoredDigest;
}

/** A response as a duplicate will get it: through JSON, and by digest when it is too large to keep. */
export function asReplayed(response: unknown): unknown {
  return fromStored(toStored(response));
}
