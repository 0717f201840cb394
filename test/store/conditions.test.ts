import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { ConfigurationError } from '../../src/errors.ts';
import {
  absent,
  all,
  any,
  atLeast,
  atMost,
  attributeAbsent,
  attributePresent,
  attributeType,
  beginsWith,
  between,
  contains,
  equals,
  lessThan,
  moreThan,
  not,
  notEquals,
  oneOf,
  present,
  sizeAtMost,
  type AttributeType,
} from '../../src/store/conditions.ts';
import {
  append,
  ifAbsent,
  minus,
  Placeholders,
  plus,
  type Change,
  type Condition,
} from '../../src/store/expressions.ts';
import type { Item, ItemKey } from '../../src/store/table.ts';
import { useStoreBench } from '../support/store-bench.ts';

const bench = useStoreBench();

function freshKey(): ItemKey {
  return { PK: bench.unique('COND'), SK: 'S' };
}

async function stored(attributes: Item): Promise<ItemKey> {
  const key = freshKey();
  await bench.truth.items.create({ ...key, ...attributes });
  return key;
}

/** Asks the real backend, by a write that leaves all other attributes as they are. */
async function holds(condition: Condition, key: ItemKey): Promise<boolean> {
  const answer = await bench.truth.update({ key, condition, change: { set: { touched: true } } });
  return answer.kind === 'updated';
}

function faultsOf(make: () => unknown): readonly string[] {
  try {
    make();
    return [];
  } catch (error) {
    if (error instanceof ConfigurationError) return error.faults.map(({ name }) => name);
    throw error;
  }
}

describe('conditions against a real backend', () => {
  test.each<readonly [string, Condition, Item | undefined, boolean]>([
    ['attributePresent, null', attributePresent('a'), { a: null }, true],
    ['attributePresent, no attribute', attributePresent('a'), {}, false],
    ['notEquals, another value', notEquals('a', 1), { a: 2 }, true],
    ['notEquals, the value', notEquals('a', 1), { a: 1 }, false],
    ['notEquals, another type', notEquals('a', 1), { a: '1' }, true],
    ['notEquals, no attribute', notEquals('a', 1), {}, true],
    ['notEquals, no item', notEquals('a', 1), undefined, true],
    ['notEquals, no item where one must be', all(present(), notEquals('a', 1)), undefined, false],
    ['notEquals within not', not(notEquals('a', 1)), { a: 1 }, true],
    ['atMost, the same', atMost('a', 1), { a: 1 }, true],
    ['atMost, more', atMost('a', 1), { a: 1.5 }, false],
    ['moreThan, the same', moreThan('a', 1), { a: 1 }, false],
    ['moreThan, more', moreThan('a', 1), { a: 2 }, true],
    ['atLeast, the same', atLeast('a', 1), { a: 1 }, true],
    ['atLeast, no attribute', atLeast('a', 0), {}, false],
    ['atLeast, text', atLeast('a', 'b'), { a: 'b' }, true],
    ['lessThan, a text beyond the basic plane is above one within', lessThan('a', '\u{1F600}'), { a: '\uFF5E' }, true],
    ['between, both ends', all(between('a', 1, 2), between('b', 1, 2)), { a: 1, b: 2 }, true],
    ['between, outside', between('a', 1, 2), { a: 2.1 }, false],
    [
      'oneOf, a hundred',
      oneOf(
        'a',
        Array.from({ length: 100 }, (_, index) => index),
      ),
      { a: 99 },
      true,
    ],
    ['beginsWith', beginsWith('a', 'ORDER#'), { a: 'ORDER#1' }, true],
    ['beginsWith, elsewhere', beginsWith('a', '1'), { a: 'ORDER#1' }, false],
    ['contains, a part of a text', contains('a', 'b'), { a: 'abc' }, true],
    ['contains, a member of a list', contains('a', 2), { a: [1, 2] }, true],
    ['contains, a member of a set', contains('a', 'x'), { a: new Set(['x']) }, true],
    ['contains, no member', contains('a', 'x'), { a: ['xy'] }, false],
    ['attributeType, of it', attributeType('a', 'M'), { a: {} }, true],
    ['attributeType, of another', attributeType('a', 'N'), { a: '1' }, false],
    ['sizeAtMost, full', sizeAtMost('a', 2), { a: [1, 2] }, true],
    ['sizeAtMost, over', sizeAtMost('a', 2), { a: 'abc' }, false],
    ['sizeAtMost, nothing at all', sizeAtMost('a', 0), { a: '' }, true],
    ['not', not(equals('a', 1)), { a: 2 }, true],
    ['not of all', not(all(equals('a', 1), equals('b', 1))), { a: 1, b: 1 }, false],
    ['one condition in many brackets', all(any(all(equals('a', 1)))), { a: 1 }, true],
    ['not of one in brackets', not(all(not(any(equals('a', 1))))), { a: 1 }, true],
    ['a path of reserved words', equals('order.size', 1), { order: { size: 1 } }, true],
    ['absent within any', any(absent(), equals('a', 1)), undefined, true],
  ])('%s', async (...[, condition, item, expected]) => {
    expect(await holds(condition, item === undefined ? freshKey() : await stored(item))).toBe(expected);
  });
});

describe('a condition that DynamoDB would refuse', () => {
  test.each<[string, () => unknown]>([
    ['all of nothing', () => all()],
    ['any of nothing', () => any()],
    ['one of nothing', () => oneOf('a', [])],
    ['one of more than a hundred', () => oneOf('a', Array.from({ length: 101 }, String))],
    ['a range from above', () => between('a', 2, 1)],
    ['a range of texts from above, by bytes', () => between('a', '\u{1F600}', '\uFF5E')],
    ['a range of two types', () => between('a', 1, '2')],
    ['a range from NaN', () => between('a', Number.NaN, 1)],
    ['an empty prefix', () => beginsWith('a', '')],
    ['a size below 0', () => sizeAtMost('a', -1)],
    ['a size of NaN', () => sizeAtMost('a', Number.NaN)],
    ['a size that is not whole', () => sizeAtMost('a', 0.5)],
  ])('is refused where it is made: %s', (_title, make) => {
    expect(faultsOf(make)).toHaveLength(1);
  });

  test('is made up to the limits', () => {
    expect(
      faultsOf(() => [
        between('a', '\uFF5E', '\u{1F600}'),
        between('a', 1, 1),
        sizeAtMost('a', 0),
        oneOf('a', Array.from({ length: 100 }, String)),
      ]),
    ).toEqual([]);
  });

  test.each<[string, Condition, readonly string[]]>([
    ['undefined', equals('a', undefined), ['a']],
    ['NaN', lessThan('a', Number.NaN), ['a']],
    ['a number beyond 2^53', atLeast('a', 1e300), ['a']],
    ['a function', contains('a', () => 1), ['a']],
    ['an empty path', attributeAbsent(''), ['path']],
    ['an empty part of a path', attributeAbsent('a..b'), ['path']],
    ['several of them', all(equals('a', undefined), equals('b', 1), equals('c.', Number.NaN)), ['a', 'path', 'c.']],
  ])('names what is wrong before it is sent: %s', async (_title, condition, names) => {
    // Act
    const error: unknown = await bench
      .store()
      .update({ key: freshKey(), change: { set: { x: 1 } }, condition })
      .catch((fault: unknown) => fault);

    // Assert
    if (!(error instanceof ConfigurationError)) throw new Error('not refused', { cause: error });
    expect(error.faults.map(({ name }) => name)).toEqual(names);
    expect(bench.transport.seen).toEqual([]);
  });
});

describe('a change that DynamoDB would refuse', () => {
  test.each<[string, Change, readonly string[]]>([
    ['nothing to do', {}, ['change']],
    ['nothing to set or remove', { set: {}, remove: [] }, ['change']],
    ['undefined', { set: { a: undefined, b: 1 } }, ['a']],
    ['NaN', { set: { 'a.b': Number.NaN } }, ['a.b']],
    ['an addition of NaN', { set: { a: plus(Number.NaN, 0) } }, ['a']],
    ['a subtraction from nothing', { set: { a: minus(1, Number.NaN) } }, ['a']],
    ['an undefined list', { set: { a: append(() => 1), b: ifAbsent(undefined) } }, ['a', 'b']],
    ['the key', { set: { PK: 'x' }, remove: ['SK'] }, ['PK', 'SK']],
    ['a path twice', { set: { a: 1 }, remove: ['a'] }, ['a']],
    ['a path within another', { set: { 'a.b.c': 1 }, remove: ['a'] }, ['a.b.c']],
    ['a path without a name', { remove: ['a.'] }, ['path']],
    ['all at once', { set: { a: undefined, b: Number.NaN, PK: 1 } }, ['PK', 'a', 'b']],
  ])('names what is wrong before it is sent: %s', async (_title, change, names) => {
    // Act
    const error: unknown = await bench
      .store()
      .update({ key: freshKey(), change, condition: present() })
      .catch((fault: unknown) => fault);

    // Assert
    if (!(error instanceof ConfigurationError)) throw new Error('not refused', { cause: error });
    expect(error.faults.map(({ name }) => name)).toEqual(names);
    expect(bench.transport.seen).toEqual([]);
  });
});

describe('arithmetic and lists', () => {
  test('minus takes from what is there, or from its start', async () => {
    const key = await stored({ a: 5 });
    const answer = await bench.truth.items.update(key, { set: { a: minus(7), b: minus(1, 10) } });
    expect(answer.item).toEqual({ ...key, a: -2, b: 9 });
  });

  test('append makes the list and goes on with it', async () => {
    const key = await stored({});
    await bench.truth.items.update(key, { set: { log: append('a', { b: 1 }) } });
    const answer = await bench.truth.items.update(key, { set: { log: append('c') } });
    expect(answer.item?.['log']).toEqual(['a', { b: 1 }, 'c']);
  });
});

const WORDS = [
  'status',
  'owner',
  'size',
  'order',
  'and',
  'NOT',
  'between',
  'in',
  'SET',
  'remove',
  'ttl',
  '#n0',
  ':v0',
  'a#b',
  'ß\u{1F600}',
  '0',
  ' ',
];

const wordArbitrary = fc.constantFrom(...WORDS);
const textArbitrary = fc.constantFrom('', 'a', 'b', 'ab', 'PENDING', ':v0', '\uFF5E', '\u{1F600}');
const numberArbitrary = fc.integer({ min: -2, max: 2 });
const scalarArbitrary = fc.oneof(textArbitrary, numberArbitrary);
const valueArbitrary = fc.oneof(
  scalarArbitrary,
  fc.boolean(),
  fc.constant(null),
  fc.array(scalarArbitrary, { maxLength: 2 }),
);
const itemArbitrary = fc.dictionary(wordArbitrary, valueArbitrary, { maxKeys: 8, noNullPrototype: true });

/** A condition, and what it says about an item by our own words. */
interface Modelled {
  readonly condition: Condition;
  readonly says: (item: Item) => boolean;
}

function compared(value: unknown, other: number | string): number | undefined {
  if (typeof value === 'number' && typeof other === 'number') return value - other;
  if (typeof value === 'string' && typeof other === 'string')
    return Buffer.compare(Buffer.from(value), Buffer.from(other));
  return undefined;
}

function isEqual(value: unknown, other: unknown): boolean {
  return JSON.stringify(value) === JSON.stringify(other);
}

const ORDERS = [
  [lessThan, (order: number) => order < 0],
  [atMost, (order: number) => order <= 0],
  [moreThan, (order: number) => order > 0],
  [atLeast, (order: number) => order >= 0],
] as const;

const TYPES: readonly (readonly [AttributeType, (value: unknown) => boolean])[] = [
  ['S', (value) => typeof value === 'string'],
  ['N', (value) => typeof value === 'number'],
  ['BOOL', (value) => typeof value === 'boolean'],
  ['NULL', (value) => value === null],
  ['L', (value) => Array.isArray(value)],
];

const leafArbitrary: fc.Arbitrary<Modelled> = fc.oneof(
  wordArbitrary.map((name) => ({ condition: attributeAbsent(name), says: (item: Item) => !(name in item) })),
  wordArbitrary.map((name) => ({ condition: attributePresent(name), says: (item: Item) => name in item })),
  fc.tuple(wordArbitrary, valueArbitrary).map(([name, value]) => ({
    condition: equals(name, value),
    says: (item: Item) => name in item && isEqual(item[name], value),
  })),
  fc.tuple(wordArbitrary, valueArbitrary).map(([name, value]) => ({
    condition: notEquals(name, value),
    says: (item: Item) => !(name in item && isEqual(item[name], value)),
  })),
  fc.tuple(wordArbitrary, scalarArbitrary, fc.constantFrom(...ORDERS)).map(([name, value, [make, isSo]]) => ({
    condition: make(name, value),
    says: (item: Item) => isSo(compared(item[name], value) ?? Number.NaN),
  })),
  fc.tuple(wordArbitrary, numberArbitrary, fc.nat(2)).map(([name, low, range]) => ({
    condition: between(name, low, low + range),
    says: (item: Item) => {
      const value = item[name];
      return typeof value === 'number' && value >= low && value <= low + range;
    },
  })),
  fc.tuple(wordArbitrary, fc.array(valueArbitrary, { minLength: 1, maxLength: 4 })).map(([name, values]) => ({
    condition: oneOf(name, values),
    says: (item: Item) => name in item && values.some((value) => isEqual(item[name], value)),
  })),
  fc
    .tuple(
      wordArbitrary,
      textArbitrary.filter((text) => text !== ''),
    )
    .map(([name, prefix]) => ({
      condition: beginsWith(name, prefix),
      says: (item: Item) => String(typeof item[name] === 'string' ? item[name] : '').startsWith(prefix),
    })),
  fc.tuple(wordArbitrary, scalarArbitrary).map(([name, value]) => ({
    condition: contains(name, value),
    says: (item: Item) => {
      const within = item[name];
      if (typeof within === 'string') return typeof value === 'string' && within.includes(value);
      return Array.isArray(within) && within.includes(value);
    },
  })),
  fc.tuple(wordArbitrary, fc.constantFrom(...TYPES)).map(([name, [type, isOf]]) => ({
    condition: attributeType(name, type),
    says: (item: Item) => name in item && isOf(item[name]),
  })),
  fc.tuple(wordArbitrary, fc.nat(2)).map(([name, size]) => ({
    condition: sizeAtMost(name, size),
    says: (item: Item) => {
      const value = item[name];
      if (typeof value === 'string') return Array.from(value).length <= size;
      return Array.isArray(value) && value.length <= size;
    },
  })),
);

const { tree } = fc.letrec<{ tree: Modelled; leaf: Modelled }>((tie) => ({
  leaf: leafArbitrary,
  tree: fc.oneof(
    { depthSize: 'small', withCrossShrink: true },
    tie('leaf'),
    fc.array(tie('tree'), { minLength: 1, maxLength: 3 }).map((parts) => ({
      condition: all(...parts.map(({ condition }) => condition)),
      says: (item: Item) => parts.every(({ says }) => says(item)),
    })),
    fc.array(tie('tree'), { minLength: 1, maxLength: 3 }).map((parts) => ({
      condition: any(...parts.map(({ condition }) => condition)),
      says: (item: Item) => parts.some(({ says }) => says(item)),
    })),
    tie('tree').map(({ condition, says }) => ({ condition: not(condition), says: (item: Item) => !says(item) })),
  ),
}));

test('any tree of conditions is accepted and means what its parts mean, whatever the names', async () => {
  await fc.assert(
    fc.asyncProperty(itemArbitrary, tree, async (item, { condition, says }) => {
      expect(await holds(condition, await stored(item))).toBe(says(item));
    }),
    { numRuns: 250 },
  );
});

test('any tree of conditions is written with placeholders of its own and no doubled parentheses', () => {
  fc.assert(
    fc.property(tree, ({ condition }) => {
      // Act
      const placeholders = new Placeholders();
      const text = condition(placeholders);
      const fields = placeholders.fields();

      // Assert
      const [names, values] = [/#n\d+/g, /:v\d+/g].map((pattern) => text.match(pattern) ?? []);
      expect(new Set(names)).toEqual(new Set(Object.keys(fields.ExpressionAttributeNames ?? {})));
      // Each value stands once, except where it is said twice.
      expect(new Set(values)).toEqual(new Set(Object.keys(fields.ExpressionAttributeValues ?? {})));
      expect(doubledParentheses(text)).toEqual([]);
    }),
  );
});

test('any combination of paths to set and remove, reserved words too, is accepted and done', async () => {
  const action = fc.constantFrom('set', 'remove', 'leave');
  const plan = fc.tuple(
    fc.dictionary(wordArbitrary, action, { noNullPrototype: true }),
    fc.dictionary(wordArbitrary, action, { noNullPrototype: true }),
  );
  await fc.assert(
    fc.asyncProperty(plan, valueArbitrary, async ([outer, inner], value) => {
      // Arrange
      const plans = [
        ...Object.entries(outer),
        ...Object.entries(inner).map(([name, what]) => [`map.${name}`, what] as const),
      ];
      const pathsTo = (wanted: string) => plans.flatMap(([path, what]) => (what === wanted ? [path] : []));
      const [set, remove] = [pathsTo('set'), pathsTo('remove')];
      fc.pre(set.length + remove.length > 0);
      const key = await stored({ ...Object.fromEntries(WORDS.map((word) => [word, 'old'])), map: {} });

      // Act
      const change = { set: Object.fromEntries(set.map((path) => [path, value])), remove };
      const answer = await bench.truth.items.update(key, change);

      // Assert
      const isChanged = (path: string, found: unknown) =>
        set.includes(path) ? isEqual(found, value) : found === undefined;
      const map = answer.item?.['map'] as Item;
      expect(answer.kind).toBe('written');
      expect(
        [...set, ...remove]
          .filter((path) => !path.startsWith('map.'))
          .every((path) => isChanged(path, answer.item?.[path])),
      ).toBe(true);
      expect(Object.keys(map).toSorted()).toEqual(
        set
          .filter((path) => path.startsWith('map.'))
          .map((path) => path.slice(4))
          .toSorted(),
      );
    }),
    { numRuns: 60 },
  );
});

/** DynamoDB refuses `((x))`. */
function doubledParentheses(text: string): readonly string[] {
  const open: number[] = [];
  const endOf = new Map<number, number>();
  for (const [index, character] of Array.from(text).entries()) {
    if (character === '(') open.push(index);
    if (character === ')') endOf.set(open.pop() ?? -1, index);
  }
  return [...endOf].flatMap(([start, end]) => (endOf.get(start + 1) === end - 1 ? [text.slice(start, end + 1)] : []));
}
