import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { ConfigurationError } from '../../src/errors.ts';
import { fill, spend, transition, type GuardedChange } from '../../src/store/guarded-change.ts';
import type { WriteAnswer } from '../../src/store/items.ts';
import type { Item, ItemKey } from '../../src/store/table.ts';
import { useStoreBench } from '../support/store-bench.ts';

const bench = useStoreBench();

async function stored(attributes: Item): Promise<ItemKey> {
  const key = { PK: bench.unique('GUARDED'), SK: 'S' };
  await bench.truth.items.create({ ...key, ...attributes });
  return key;
}

function apply(key: ItemKey, guarded: GuardedChange): Promise<WriteAnswer> {
  return bench.truth.items.update(key, guarded.change, { condition: guarded.condition });
}

/** The attribute after one guarded change, and whether it was made. */
async function after(item: Item, guarded: GuardedChange): Promise<unknown> {
  const answer = await apply(await stored(item), guarded);
  return [answer.kind, answer.item?.['n']];
}

function namesOfFaults(make: () => unknown): string[] {
  try {
    make();
    return [];
  } catch (error) {
    if (error instanceof ConfigurationError) return error.faults.map(({ name }) => name);
    throw error;
  }
}

describe('spend', () => {
  test.each<[string, Item, number, unknown]>([
    ['takes a part', { n: 10 }, 7, ['written', 3]],
    ['takes all', { n: 7 }, 7, ['written', 0]],
    ['refuses one more than there is', { n: 6 }, 7, ['refused', 6]],
    ['refuses where nothing is', {}, 1, ['refused', undefined]],
    ['refuses a text', { n: '9' }, 1, ['refused', '9']],
    ['calculates decimal fractions exactly', { n: 0.3 }, 0.1, ['written', 0.2]],
  ])('%s', async (...[, item, amount, expected]) => {
    expect(await after(item, spend('n', amount))).toEqual(expected);
  });

  test('of 30 at once lets as many through as there is enough for', async () => {
    // Arrange
    const key = await stored({ credits: 100 });

    // Act
    const answers = await Promise.all(Array.from({ length: 30 }, () => apply(key, spend('credits', 7))));

    // Assert
    expect(answers.filter(({ kind }) => kind === 'written')).toHaveLength(14);
    expect((await bench.truth.get(key))?.['credits']).toBe(2);
  });

  test.each([0, -1, Number.NaN, Number.POSITIVE_INFINITY, 2 ** 53])('of %d is refused at once', (amount) => {
    expect(namesOfFaults(() => spend('n', amount))).toEqual(['amount']);
  });
});

describe('fill', () => {
  test.each<[string, Item, [number, number], unknown]>([
    ['fills up to the ceiling', { n: 3 }, [7, 10], ['written', 10]],
    ['refuses one above the ceiling', { n: 4 }, [7, 10], ['refused', 4]],
    ['starts from 0', {}, [10, 10], ['written', 10]],
    ['refuses from 0 what is above the ceiling', {}, [11, 10], ['refused', undefined]],
    ['comes back from below 0', { n: -5 }, [10, 5], ['written', 5]],
    ['knows a ceiling below 0', { n: -5 }, [2, -3], ['written', -3]],
    ['refuses a text', { n: '1' }, [1, 10], ['refused', '1']],
  ])('%s', async (...[, item, [amount, ceiling], expected]) => {
    expect(await after(item, fill('n', amount, ceiling))).toEqual(expected);
  });

  test.each<[number, number, string[]]>([
    [0, 10, ['amount']],
    [-1, 10, ['amount']],
    [0.5, 10, ['amount']],
    [Number.NaN, 0.5, ['amount', 'ceiling']],
    [1, Number.POSITIVE_INFINITY, ['ceiling']],
  ])('of %d up to %d is refused at once', (amount, ceiling, names) => {
    expect(namesOfFaults(() => fill('n', amount, ceiling))).toEqual(names);
  });

  test('and spend keep their bounds through any sequence', async () => {
    const amount = fc.integer({ min: 1, max: 12 });
    const move = fc.record({ amount, isSpend: fc.boolean() });
    await fc.assert(
      fc.asyncProperty(fc.integer({ min: 0, max: 20 }), fc.array(move, { maxLength: 12 }), async (ceiling, moves) => {
        // Arrange
        const key = await stored({});
        let level: number | undefined;

        for (const { amount, isSpend } of moves) {
          // Act
          const answer = await apply(key, isSpend ? spend('level', amount) : fill('level', amount, ceiling));

          // Assert
          const next: number = (level ?? 0) + (isSpend ? -amount : amount);
          const isAllowed = isSpend ? level !== undefined && next >= 0 : next <= ceiling;
          if (isAllowed) level = next;
          expect([answer.kind, answer.item?.['level']]).toEqual([isAllowed ? 'written' : 'refused', level]);
        }
      }),
      { numRuns: 30 },
    );
  });
});

describe('transition', () => {
  const pay = transition('status', { from: ['PENDING', 'FAILED'], to: 'PAID', set: { paidBy: 'a', 'deep.state': 1 } });

  test.each<[unknown, string]>([
    ['PENDING', 'written'],
    ['FAILED', 'written'],
    ['PAID', 'refused'],
    ['pending', 'refused'],
    [undefined, 'refused'],
    [['PENDING'], 'refused'],
  ])('from %s is %s, and all of it is', async (status, kind) => {
    // Arrange
    const before = { deep: {}, ...(status !== undefined && { status }) };
    const key = await stored(before);

    // Act
    const answer = await apply(key, pay);

    // Assert
    const next = { deep: { state: 1 }, paidBy: 'a', status: 'PAID' };
    expect(answer).toEqual({ kind, item: { ...key, ...(kind === 'written' ? next : before) } });
  });

  test('of 20 at once is made by one', async () => {
    // Arrange
    const key = await stored({ status: 'PENDING' });

    // Act
    const answers = await Promise.all(
      Array.from({ length: 20 }, (_, by) =>
        apply(key, transition('status', { from: 'PENDING', to: 'PAID', set: { by } })),
      ),
    );

    // Assert
    const winners = answers.flatMap(({ kind }, by) => (kind === 'written' ? [by] : []));
    expect(winners).toEqual([(await bench.truth.get(key))?.['by']]);
  });

  test.each(['', '#', 'PAID#1', 'zustand \u{1F600}', 'x'.repeat(5_000)])('may lead to any text (%#)', async (to) => {
    const key = await stored({ order: 'old' });
    expect(await apply(key, transition('order', { from: 'old', to }))).toMatchObject({ item: { order: to } });
  });

  test.each<[string, () => unknown, string[]]>([
    ['no state to come from', () => transition('s', { from: [], to: 'a' }), ['s']],
    ['more than 100 of them', () => transition('s', { from: Array.from({ length: 101 }, String), to: 'a' }), ['s']],
    ['no way to go', () => transition('s', { from: ['b', 'a'], to: 'a' }), ['to']],
    ['a second word on the state', () => transition('s', { from: 'b', to: 'a', set: { s: 'c' } }), ['set']],
    ['both at once', () => transition('s', { from: 'a', to: 'a', set: { s: 'c' } }), ['to', 'set']],
    ['a name that all objects have', () => transition('toString', { from: 'a', to: 'b', set: {} }), []],
  ])('with %s is refused at once', (_title, make, names) => {
    expect(namesOfFaults(make)).toEqual(names);
  });
});
