import fc from 'fast-check';
import { expect, test } from 'vitest';
import { splitBatches, SQS_BATCH_LIMITS } from '../../src/producers/split-batches.ts';

const MIB = 1_048_576;

function sized(...sizes: number[]): { bytes: number }[] {
  return sizes.map((bytes) => ({ bytes }));
}

function counts(sizes: number[]): number[] {
  return [...splitBatches(sized(...sizes))].map((batch) => batch.length);
}

test('never goes over ten entries or 1 MiB, keeps the order, and loses nothing', () => {
  const size = fc.oneof(fc.integer({ min: 0, max: 300_000 }), fc.integer({ min: 0, max: MIB }), fc.constant(MIB));
  fc.assert(
    fc.property(fc.array(size, { maxLength: 60 }), (sizes) => {
      const entries = sized(...sizes);

      const batches = [...splitBatches(entries)];

      expect(batches.flat()).toEqual(entries);
      for (const batch of batches) {
        expect(batch.length).toBeGreaterThan(0);
        expect(batch.length).toBeLessThanOrEqual(10);
        expect(batch.reduce((sum, { bytes }) => sum + bytes, 0)).toBeLessThanOrEqual(MIB);
      }
    }),
  );
});

test('begins a new batch only when the next entry does not fit', () => {
  fc.assert(
    fc.property(fc.array(fc.integer({ min: 0, max: MIB }), { maxLength: 40 }), (sizes) => {
      const batches = [...splitBatches(sized(...sizes))];

      for (const [at, batch] of batches.entries()) {
        const next = batches[at + 1]?.[0];
        if (next === undefined) continue;
        const together = batch.reduce((sum, { bytes }) => sum + bytes, next.bytes);
        expect(batch.length === 10 || together > MIB).toBe(true);
      }
    }),
  );
});

test('puts exactly 1 MiB into one batch and the byte beyond it into the next', () => {
  expect(counts([MIB - 1, 1])).toEqual([2]);
  expect(counts([MIB - 1, 2])).toEqual([1, 1]);
});

test('splits ten messages of 200 KB into two batches of five', () => {
  expect(counts(Array.from({ length: 10 }, () => 200_000))).toEqual([5, 5]);
});

test('reads no entry beyond the one that closes a batch', () => {
  let read = 0;
  function* endless(): Generator<{ bytes: number }, void> {
    for (;;) {
      read += 1;
      yield { bytes: 1 };
    }
  }

  const first = splitBatches(endless()).next();

  expect(first.done).toBe(false);
  expect(read).toBe(11);
});

test('throws for an entry that fits into no batch', () => {
  expect(() => counts([1, MIB + 1])).toThrow(RangeError);
  expect(SQS_BATCH_LIMITS).toEqual({ maxEntries: 10, maxBytes: MIB });
});
