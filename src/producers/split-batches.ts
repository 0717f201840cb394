/** Cuts a row of entries into requests that SQS takes. Pure: no request is sent from here. */
import { MAX_BATCH_ENTRIES, MAX_MESSAGE_BYTES } from '../messages/limits.ts';

export interface BatchLimits {
  /** Unit: entries per request. */
  readonly maxEntries: number;
  /** All bodies and attributes of one request together. Unit: bytes. */
  readonly maxBytes: number;
}

/** @see AWS: Amazon SQS message quotas */
export const SQS_BATCH_LIMITS: BatchLimits = { maxEntries: MAX_BATCH_ENTRIES, maxBytes: MAX_MESSAGE_BYTES };

/**
 * Fills one batch after the other, in order, and reads no further ahead than the batch it is filling: entries can be
 * made while earlier ones are on their way.
 * @param entries with their size as SQS counts it: UTF-8 bytes of the body and of all attributes.
 * @throws {RangeError} for an entry that fits into no request: callers tell those apart before.
 */
export function* splitBatches<Entry extends { readonly bytes: number }>(
  entries: Iterable<Entry>,
  limits: BatchLimits = SQS_BATCH_LIMITS,
): Generator<readonly Entry[], void> {
  let batch: Entry[] = [];
  let batchBytes = 0;
  for (const entry of entries) {
    if (entry.bytes > limits.maxBytes) {
      throw new RangeError(`an entry of ${String(entry.bytes)} bytes fits into no request`);
    }
    if (batch.length === limits.maxEntries || batchBytes + entry.bytes > limits.maxBytes) {
      yield batch;
      batch = [];
      batchBytes = 0;
    }
    batch.push(entry);
    batchBytes += entry.bytes;
  }
  if (batch.length > 0) yield batch;
}
