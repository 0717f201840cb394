import fc from 'fast-check';
import { expect, test } from 'vitest';
import { ConfigurationError } from '../../src/errors.ts';
import { CHARGE_REQUESTED } from '../../src/messages/charge.ts';
import { validate } from '../../src/messages/schema.ts';
import { generateCharges } from '../../src/producers/generate-charges.ts';

const seeds = fc.nat({ max: 4_294_967_295 });

test('generates charges that keep their contract, with a request id of its own for each', () => {
  fc.assert(
    fc.property(seeds, fc.integer({ min: 1, max: 300 }), (seed, count) => {
      const charges = generateCharges({ count, seed });

      expect(charges).toHaveLength(count);
      expect(charges.filter((charge) => validate(CHARGE_REQUESTED.schema, charge).kind !== 'valid')).toEqual([]);
      expect(new Set(charges.map(({ requestId }) => requestId)).size).toBe(count);
    }),
    { numRuns: 30 },
  );
});

test('charges an account in one currency only, also with another seed', () => {
  fc.assert(
    fc.property(seeds, seeds, (one, other) => {
      const charges = [one, other].flatMap((seed) => generateCharges({ count: 200, seed, accounts: 40 }));

      const accounts = new Set(charges.map(({ accountId }) => accountId));
      const pairs = new Set(charges.map(({ accountId, currency }) => `${accountId} ${currency}`));
      expect(pairs.size).toBe(accounts.size);
      expect(accounts.size).toBeLessThanOrEqual(40);
    }),
    { numRuns: 20 },
  );
});

test('charges a few accounts far more often than the others', () => {
  const charges = generateCharges({ count: 6_000, seed: 3, accounts: 60 });

  const counts = Object.values(Object.groupBy(charges, ({ accountId }) => accountId)).map(
    (group) => group?.length ?? 0,
  );
  counts.sort((left, right) => right - left);
  const busiest = counts.slice(0, 6).reduce((sum, count) => sum + count, 0);
  expect(counts).toHaveLength(60);
  // An even spread would give these six a tenth.
  expect(busiest).toBeGreaterThan(6_000 / 4);
});

test('gives the same charges for the same seed, and other request ids for another', () => {
  const ids = new Set(generateCharges({ count: 50, seed: 1 }).map(({ requestId }) => requestId));

  expect(generateCharges({ count: 50, seed: 1 })).toEqual(generateCharges({ count: 50, seed: 1 }));
  expect(generateCharges({ count: 50, seed: 2 }).some(({ requestId }) => ids.has(requestId))).toBe(false);
});

test('reports all wrong options of the generator together', () => {
  expect(() => generateCharges({ count: -1, seed: 0.5, accounts: 0 })).toThrow(/count: .*\n.*seed: .*\n.*accounts: /);
  expect(() => generateCharges({ count: 1, seed: 1, accounts: 10_001 })).toThrow(ConfigurationError);
});
