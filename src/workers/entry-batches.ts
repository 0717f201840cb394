/**
 * Collects entries for requests that take up to ten of them. An entry waits for a short window at most, and can be taken
 * out again as long as it waits.
 *
 * Bounded by its callers: each delivery has one entry at a time, and deliveries have slots.
 */
import type { Cancel, Clock } from '../clock.ts';
import { MAX_BATCH_ENTRIES } from '../messages/limits.ts';

export interface EntryBatches<Entry> {
  /** @param windowMs how long it may wait for others. Unit: ms. */
  add(entry: Entry, windowMs: number): void;
  /** @returns true when the entry still waited: it will be in no request. */
  remove(entry: Entry): boolean;
}

/**
 * @param send called with 1 to 10 entries, each of them once for each time it was added.
 * @param expected the most that can wait at once, if that is known: then nobody is waited for when all wait already.
 */
export function createEntryBatches<Entry>(
  clock: Clock,
  send: (batch: readonly Entry[]) => void,
  expected: () => number = () => MAX_BATCH_ENTRIES,
): EntryBatches<Entry> {
  const waiting = new Set<Entry>();
  let dueMonoMs = Number.POSITIVE_INFINITY;
  let cancelDue: Cancel = () => undefined;

  function flush(): void {
    cancelDue();
    dueMonoMs = Number.POSITIVE_INFINITY;
    const batch = [...waiting];
    waiting.clear();
    send(batch);
  }

  return {
    add(entry, windowMs) {
      waiting.add(entry);
      if (waiting.size >= Math.min(MAX_BATCH_ENTRIES, expected())) {
        flush();
        return;
      }
      const atMonoMs = clock.monotonicMs() + windowMs;
      if (atMonoMs >= dueMonoMs) return;
      cancelDue();
      dueMonoMs = atMonoMs;
      cancelDue = clock.schedule(flush, windowMs);
    },
    remove(entry) {
      const isWaiting = waiting.delete(entry);
      if (waiting.size === 0) {
        cancelDue();
        dueMonoMs = Number.POSITIVE_INFINITY;
      }
      return isWaiting;
    },
  };
}
