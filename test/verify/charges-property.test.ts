import fc from 'fast-check';
import { expect, test } from 'vitest';
import { checkCharges } from '../../src/verify/charges.ts';
import { FAULTS, rightHistory } from './histories.ts';

test('every right history passes all invariants', () => {
  fc.assert(
    fc.property(rightHistory, (found) => {
      expect(checkCharges(found).filter(({ ok }) => !ok)).toEqual([]);
    }),
    { numRuns: 300 },
  );
});

test('what was found is judged the same in any order', () => {
  fc.assert(
    fc.property(rightHistory, (found) => {
      const reversed = Object.fromEntries(
        Object.entries(found).map(([part, value]) => [part, Array.isArray(value) ? value.toReversed() : value]),
      ) as typeof found;
      expect(checkCharges(reversed).filter(({ ok }) => !ok)).toEqual([]);
    }),
    { numRuns: 100 },
  );
});

test.each(Object.entries(FAULTS))(
  '%s in a right history is caught by its invariant',
  (_fault, { caughtBy, alsoBreaks = [], inject }) => {
    fc.assert(
      fc.property(rightHistory, (found) => {
        const broken = checkCharges(inject(found))
          .filter(({ ok }) => !ok)
          .map(({ id }) => id);
        expect(broken).toEqual([caughtBy, ...alsoBreaks]);
      }),
      { numRuns: 100 },
    );
  },
);
