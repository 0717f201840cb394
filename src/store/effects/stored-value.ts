/** Responses and step results as they are kept in the record: whole when they fit, by digest when they do not. */
import { createHash } from 'node:crypto';

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

/** A response and a few step results fit into one item of 400 KiB together with the rest of the record. */
export const MAX_STORED_BYTES = 65_536;

export function toStored(value: unknown): StoredValue {
  // JSON has no undefined; a handler that returns nothing is answered with null.
  const json = JSON.stringify(value ?? null);
  const bytes = Buffer.byteLength(json);
  if (bytes <= MAX_STORED_BYTES) return { json };
  return { sha256: createHash('sha256').update(json).digest('hex'), bytes };
}

export function fromStored(stored: unknown): unknown {
  if (typeof stored !== 'object' || stored === null) return null;
  if ('json' in stored && typeof stored.json === 'string') return JSON.parse(stored.json) as unknown;
  return { digest: 'sha256', ...stored };
}

/** A response as a duplicate will get it: through JSON, and by digest when it is too large to keep. */
export function asReplayed(response: unknown): unknown {
  return fromStored(toStored(response));
}
