import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { absent, all, any, attributeAbsent, equals, lessThan, oneOf, present } from '../../src/store/conditions.ts';
import { ifAbsent, Placeholders, plus, previous, renderChange, type Condition } from '../../src/store/expressions.ts';
import type { Item } from '../../src/store/table.ts';
import { useStoreBench } from '../support/store-bench.ts';

const bench = useStoreBench();

function freshKey(): { PK: string; SK: string } {
  return { PK: bench.unique('item'), SK: 'S' };
}

async function stored(item: Item): Promise<{ PK: string; SK: string }> {
  const key = freshKey();
  await bench.truth.transactions.write([{ kind: 'put', label: 'item', item: { ...key, ...item } }]);
  return key;
}

/** Asks the real backend whether the condition holds for this item. */
async function holds(condition: Condition, item?: Item): Promise<boolean> {
  const key = item === undefined ? freshKey() : await stored(item);
  const answer = await bench.truth.update({ key, condition, change: { set: { touched: true } } });
  return answer.kind === 'updated';
}

describe('changes against a real backend', () => {
  test('reserved words are ordinary names', async () => {
    // Arrange
    const words = ['owner', 'token', 'status', 'ttl', 'state', 'count', 'name', 'value', 'size', 'order', 'and', 'set'];
    const key = freshKey();
    const set = Object.fromEntries(words.map((word) => [word, word]));

    // Act
    const answer = await bench.truth.update({ key, change: { set }, condition: all(...words.map(attributeAbsent)) });

    // Assert
    expect(answer).toEqual({ kind: 'updated', item: { ...key, ...set } });
  });

  test('a dot leads into a map', async () => {
    // Arrange
    const key = await stored({ steps: { charge: { json: '1' }, old: 1 } });

    // Act
    const answer = await bench.truth.update({
      key,
      change: { set: { 'steps.email': { json: '2' } }, remove: ['steps.old'] },
      condition: equals('steps.charge.json', '1'),
    });

    // Assert
    expect(answer.item?.['steps']).toEqual({ charge: { json: '1' }, email: { json: '2' } });
  });

  test('plus starts from its start and goes on from what is there', async () => {
    // Arrange
    const key = freshKey();
    const change = { set: { count: plus(5, 100) } };
    // No answer is lost here, and a sum without a condition is refused.
    const condition = attributeAbsent('ended');

    // Act
    const first = await bench.truth.update({ key, change, condition });
    const second = await bench.truth.update({ key, change, condition });

    // Assert
    expect([first.item?.['count'], second.item?.['count']]).toEqual([105, 110]);
  });

  test('ifAbsent keeps what is there', async () => {
    // Arrange
    const key = freshKey();

    // Act
    await bench.truth.update({ key, change: { set: { first: ifAbsent('a') } } });
    const second = await bench.truth.update({ key, change: { set: { first: ifAbsent('b') } } });

    // Assert
    expect(second.item?.['first']).toBe('a');
  });

  test('previous reads what another attribute was before the same update', async () => {
    // Arrange
    const key = freshKey();
    const change = (owner: string) => ({ set: { owner, takenFrom: previous('owner', 'nobody') } });

    // Act
    const first = await bench.truth.update({ key, change: change('a') });
    const second = await bench.truth.update({ key, change: change('b') });

    // Assert
    expect([first.item?.['takenFrom'], second.item?.['takenFrom']]).toEqual(['nobody', 'a']);
  });

  test('a refused update brings the stored item along as plain values', async () => {
    // Arrange
    const key = await stored({ owner: 'b', list: [1, { two: 2 }] });

    // Act
    const answer = await bench.truth.update({ key, change: { set: { owner: 'c' } }, condition: equals('owner', 'a') });

    // Assert
    expect(answer).toEqual({ kind: 'refused', item: { ...key, owner: 'b', list: [1, { two: 2 }] } });
  });

  test('a refused update of nothing brings no item along', async () => {
    // Act
    const answer = await bench.truth.update({ key: freshKey(), change: { set: { a: 1 } }, condition: present() });

    // Assert
    expect(answer).toEqual({ kind: 'refused', item: undefined });
  });

  test('any set of attribute names and values survives', async () => {
    const name = fc
      .string({ minLength: 1, maxLength: 20, unit: 'grapheme' })
      // Messages with a field of this name are refused long before; a plain object cannot hold it.
      .filter((text) => !/[.]|^(PK|SK|__proto__)$/.test(text));
    const value = fc.oneof(
      fc.string({ unit: 'grapheme' }),
      fc.integer(),
      storableNumber(),
      fc.boolean(),
      fc.constant(null),
      fc.array(fc.oneof(fc.string(), fc.integer()), { maxLength: 4 }),
      fc.dictionary(fc.string({ minLength: 1, maxLength: 8 }), fc.integer(), { maxKeys: 3, noNullPrototype: true }),
    );
    const attributes = fc.dictionary(name, value, { minKeys: 1, maxKeys: 8, noNullPrototype: true });
    await fc.assert(
      fc.asyncProperty(attributes, async (set) => {
        // Arrange
        const key = freshKey();
        const condition = all(absent(), ...Object.keys(set).map(attributeAbsent));

        // Act
        await bench.truth.update({ key, change: { set }, condition });
        const item = await bench.truth.get(key);

        // Assert
        expect(withoutNegativeZero(item)).toEqual(withoutNegativeZero({ ...set, ...key }));
      }),
      { numRuns: 60 },
    );
  });
});

describe('conditions against a real backend', () => {
  test.each<readonly [string, Condition, Item | undefined, boolean]>([
    ['absent, no item', absent(), undefined, true],
    ['absent, an item', absent(), { a: 1 }, false],
    ['present, no item', present(), undefined, false],
    ['present, an item', present(), { a: 1 }, true],
    ['attributeAbsent, no item', attributeAbsent('owner'), undefined, true],
    ['attributeAbsent, another attribute', attributeAbsent('owner'), { a: 1 }, true],
    ['attributeAbsent, the attribute', attributeAbsent('owner'), { owner: 'x' }, false],
    ['equals, the same', equals('a', 1), { a: 1 }, true],
    ['equals, another type', equals('a', 1), { a: '1' }, false],
    ['equals, absent', equals('a', 1), { b: 1 }, false],
    ['lessThan, less', lessThan('a', 2), { a: 1 }, true],
    ['lessThan, the same', lessThan('a', 1), { a: 1 }, false],
    ['lessThan, absent', lessThan('a', 1), { b: 0 }, false],
    ['oneOf, the second', oneOf('a', ['x', 'y']), { a: 'y' }, true],
    ['oneOf, none', oneOf('a', ['x', 'y']), { a: 'z' }, false],
    ['all, one false', all(equals('a', 1), equals('b', 1)), { a: 1, b: 2 }, false],
    ['any, one true', any(equals('a', 2), equals('b', 2)), { a: 1, b: 2 }, true],
    ['any within all', all(any(equals('a', 1), equals('a', 2)), equals('b', 1)), { a: 1, b: 2 }, false],
    ['all within any', any(all(equals('a', 1), equals('b', 1)), equals('b', 2)), { a: 9, b: 2 }, true],
  ])('%s', async (...[, condition, item, expected]) => {
    expect(await holds(condition, item)).toBe(expected);
  });
});

describe('placeholders', () => {
  test('one name has one placeholder, each value its own', () => {
    // Arrange
    const placeholders = new Placeholders();

    // Act
    const text = all(equals('a', 1), equals('a', 1), lessThan('b.a', 2))(placeholders);

    // Assert
    expect(text).toBe('(#n0 = :v0) AND (#n0 = :v1) AND (#n1.#n0 < :v2)');
    expect(placeholders.fields()).toEqual({
      ExpressionAttributeNames: { '#n0': 'a', '#n1': 'b' },
      ExpressionAttributeValues: { ':v0': 1, ':v1': 1, ':v2': 2 },
    });
  });

  test('that were not used leave no empty map behind', () => {
    expect(new Placeholders().fields()).toEqual({});
  });

  test('a change is written with only the clauses it has', () => {
    const render = (change: Parameters<typeof renderChange>[0]) => renderChange(change, new Placeholders());
    expect([
      render({ set: { a: 1 } }),
      render({ remove: ['a', 'b'] }),
      render({ set: { a: 1 }, remove: ['b'] }),
    ]).toEqual(['SET #n0 = :v0', 'REMOVE #n0, #n1', 'SET #n0 = :v0 REMOVE #n1']);
  });
});

/** DynamoDB keeps 38 digits from 1e-130 to 1e126; the document client refuses what JavaScript would round. */
function storableNumber(): fc.Arbitrary<number> {
  return fc
    .double({ noNaN: true, noDefaultInfinity: true, min: -1e15, max: 1e15 })
    .map((number) => (Math.abs(number) < 1e-100 ? 0 : Number(number.toPrecision(15))));
}

/** DynamoDB has no negative zero; nor has JSON. */
function withoutNegativeZero(value: unknown): unknown {
  return JSON.parse(JSON.stringify(value ?? null)) as unknown;
}
