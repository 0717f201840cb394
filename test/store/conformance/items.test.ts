import { expect, test } from 'vitest';
import { ConfigurationError } from '../../../src/errors.ts';
import {
  absent,
  all,
  any,
  atLeast,
  attributeAbsent,
  attributeType,
  beginsWith,
  between,
  contains,
  equals,
  lessThan,
  not,
  notEquals,
  oneOf,
  present,
  sizeAtMost,
} from '../../../src/store/conditions.ts';
import { append, ifAbsent, minus, plus, previous, type Condition } from '../../../src/store/expressions.ts';
import { fill, spend, transition } from '../../../src/store/guarded-change.ts';
import { createRequestMeter } from '../../../src/store/request-meter.ts';
import type { Item, ItemKey } from '../../../src/store/table.ts';
import { describeOnBoth } from '../../support/store-conformance.ts';

async function collected<Found>(found: AsyncIterable<Found>): Promise<Found[]> {
  const all_: Found[] = [];
  for await (const each of found) all_.push(each);
  return all_;
}

describeOnBoth('items', ({ store, unique }) => {
  const freshKey = (): ItemKey => ({ PK: unique('item'), SK: 'S' });

  async function stored(attributes: Item): Promise<ItemKey> {
    const key = freshKey();
    await store().items.create({ ...key, ...attributes });
    return key;
  }

  test('values of every type come back as they were', async () => {
    // Arrange
    const item = {
      ...freshKey(),
      text: '',
      odd: 'a#b.c ä 😀 \u0000',
      number: -1.5,
      large: 9_007_199_254_740_993n,
      yes: true,
      nothing: null,
      bytes: Uint8Array.from([0, 255]),
      list: [1, 'two', [], {}],
      map: { 'a.b': { '#c': [null] }, '': 1 },
      texts: new Set(['a', 'b']),
      numbers: new Set([1, 2]),
    };

    // Act
    const answer = await store().items.create(item);

    // Assert
    expect(answer).toEqual({ kind: 'written', item });
    expect(await store().get({ PK: item.PK, SK: item.SK })).toEqual(item);
  });

  test('create, replace, update and remove answer with what is stored, and a refusal with what was in the way', async () => {
    // Arrange
    const { items } = store();
    const key = freshKey();

    // Act
    const answers = [
      await items.update(key, { set: { n: 1 } }),
      await items.create({ ...key, n: 1 }),
      await items.create({ ...key, n: 2 }),
      await items.replace({ ...key, m: 3 }, { condition: equals('n', 1) }),
      await items.replace({ ...key, m: 4 }, { condition: equals('n', 1) }),
      await items.update(key, { set: { m: plus(1, 0) }, remove: ['n'] }),
      await items.remove(key, { condition: lessThan('m', 4) }),
      await items.remove(key),
      await items.remove(key),
    ];

    // Assert
    expect(answers).toEqual([
      { kind: 'refused', item: undefined },
      { kind: 'written', item: { ...key, n: 1 } },
      { kind: 'refused', item: { ...key, n: 1 } },
      { kind: 'written', item: { ...key, m: 3 } },
      { kind: 'refused', item: { ...key, m: 3 } },
      { kind: 'written', item: { ...key, m: 4 } },
      { kind: 'refused', item: { ...key, m: 4 } },
      { kind: 'written', item: undefined },
      { kind: 'refused', item: undefined },
    ]);
  });

  test('each condition holds where it should and nowhere else', async () => {
    // Arrange
    const item = { s: 'abc', n: 5, list: ['a'], set: new Set(['x']), map: { inner: 1 }, size: 'reserved' };
    const key = await stored(item);
    const holding: Condition[] = [
      present(),
      attributeAbsent('none'),
      equals('map.inner', 1),
      notEquals('none', 1),
      lessThan('n', 5.1),
      atLeast('n', 5),
      between('s', 'abc', 'abd'),
      oneOf('size', ['other', 'reserved']),
      beginsWith('s', 'ab'),
      contains('list', 'a'),
      contains('set', 'x'),
      contains('s', 'bc'),
      attributeType('map', 'M'),
      sizeAtMost('s', 3),
      all(any(absent(), equals('n', 5)), not(equals('n', 6))),
    ];
    const probe = async (condition: Condition): Promise<string> =>
      (await store().items.update(key, { set: { probed: true } }, { condition })).kind;

    // Act
    const kinds = await Promise.all(holding.map(probe));
    const opposites = await Promise.all(holding.map((condition) => probe(not(condition))));

    // Assert
    expect([new Set(kinds), new Set(opposites)]).toEqual([new Set(['written']), new Set(['refused'])]);
  });

  test('right-hand sides are read from the item as it was', async () => {
    // Arrange
    const key = await stored({ n: 1, log: ['a'] });

    // Act
    const set = { n: plus(2, 0), old: previous('n', 0), log: append('b'), kept: ifAbsent('new'), left: minus(1, 10) };
    const answer = await store().items.update(key, { set });

    // Assert
    expect(answer.item).toEqual({ ...key, n: 3, old: 1, log: ['a', 'b'], kept: 'new', left: 9 });
  });

  test('guarded changes stop at their bounds', async () => {
    // Arrange
    const key = await stored({ credits: 10, seats: 1, state: 'new' });
    const kindOf = async ({ change, condition }: ReturnType<typeof spend>): Promise<string> =>
      (await store().items.update(key, change, { condition })).kind;

    // Act
    const kinds = [
      await kindOf(spend('credits', 7)),
      await kindOf(spend('credits', 7)),
      await kindOf(fill('seats', 1, 2)),
      await kindOf(fill('seats', 1, 2)),
      await kindOf(transition('state', { from: 'new', to: 'paid' })),
      await kindOf(transition('state', { from: 'new', to: 'paid' })),
    ];

    // Assert
    expect(kinds).toEqual(['written', 'refused', 'written', 'refused', 'written', 'refused']);
    expect(await store().get(key)).toEqual({ ...key, credits: 3, seats: 2, state: 'paid' });
  });

  test('additions at the same time are all counted', async () => {
    const key = await stored({ n: 0 });
    const { items } = store();
    await Promise.all(Array.from({ length: 20 }, () => items.update(key, { set: { n: plus(1, 0) } })));
    expect(await store().get(key)).toEqual({ ...key, n: 20 });
  });

  test.each([
    { title: 'adding to a text', change: { set: { s: plus(1, 0) } } },
    { title: 'a path through a text', change: { set: { 's.inner': 1 } } },
    { title: 'a change of the key', change: { set: { PK: 'other' } } },
    { title: 'an index key that is no text', change: { set: { GSI1PK: 1, GSI1SK: 'a' } } },
    { title: 'an item that grows beyond 400 KiB', change: { set: { more: 'x'.repeat(400 * 1024) } } },
  ])('$title is refused and changes nothing', async ({ change }) => {
    const key = await stored({ s: 'text' });
    const refusal: unknown = await store()
      .update({ key, change })
      .catch((error: unknown) => error);
    expect(refusal).toSatisfy(
      (error) => error instanceof ConfigurationError || (error as { reason?: unknown }).reason === 'validation',
    );
    expect(await store().get(key)).toEqual({ ...key, s: 'text' });
  });

  test('the index has exactly the items with its keys, in the order of its sort key', async () => {
    // Arrange
    const GSI1PK = unique('list');
    const emoji = await stored({ GSI1PK, GSI1SK: '\u{1f600}' });
    const last = await stored({ GSI1PK, GSI1SK: '\uffff' });
    const first = await stored({ GSI1PK, GSI1SK: 'a' });
    await stored({ GSI1PK });
    const gone = await stored({ GSI1PK, GSI1SK: 'b' });
    await store().items.update(gone, { set: { kept: true }, remove: ['GSI1SK'] });

    // Act
    const forward = await collected(store().index.query({ partition: GSI1PK }));
    const backward = await collected(store().index.query({ partition: GSI1PK, direction: 'backward' }));
    const narrowed = await collected(store().index.query({ partition: GSI1PK, sortKeyBeginsWith: 'a' }));

    // Assert
    // By UTF-8: JavaScript's own order would put the emoji before \uffff.
    const order = [first.PK, last.PK, emoji.PK];
    expect([forward, backward.toReversed(), narrowed].map((hits) => hits.map(({ PK }) => PK))).toEqual([
      order,
      order,
      [first.PK],
    ]);
  });

  test('a snapshot has each item by its place, and nothing where there is none', async () => {
    const [one, none, two] = [await stored({ n: 1 }), freshKey(), await stored({ n: 2 })];
    expect(await store().snapshot([one, none, two])).toEqual([{ ...one, n: 1 }, undefined, { ...two, n: 2 }]);
  });

  test('a scan reads every page', async () => {
    // Arrange
    const PK = unique('large');
    const text = 'x'.repeat(300 * 1024);
    const sortKeys = ['a', 'b', 'c', 'd', 'e', 'f', 'g', 'h'];
    for (const SK of sortKeys) await store().items.create({ PK, SK, text });

    // Act
    const meter = createRequestMeter();
    const items = await collected(store({ meter }).scan());

    // Assert
    expect(items.filter((item) => item['PK'] === PK).map((item) => item['SK'])).toEqual(sortKeys);
    expect(meter.requests.get('Scan')).toBeGreaterThan(2);
  });

  test('requests cost what AWS says they cost', async () => {
    // Arrange
    const key = freshKey();
    const GSI1PK = unique('costs');
    const costs: number[] = [];
    const metered = async (work: (metered_: ReturnType<typeof store>) => Promise<unknown>): Promise<void> => {
      const meter = createRequestMeter();
      await work(store({ meter }));
      costs.push(meter.capacityUnits);
    };
    const write = { kind: 'update', label: 'item', key, change: { set: { n: 1 } } } as const;

    // Act
    await metered(({ items }) => items.create({ ...key, text: 'x'.repeat(2_500) }));
    await metered(({ get }) => get(key));
    await metered(({ get }) => get(freshKey()));
    await metered(({ items }) => items.update(key, { set: { GSI1PK, GSI1SK: 'a' } }));
    await metered(({ items }) => items.update(key, { set: { GSI1SK: 'b' } }));
    await metered(({ transactions }) => transactions.write([write]));
    await metered(({ snapshot }) => snapshot([key, freshKey()]));

    // Assert
    // In turn: 3 KB; one consistent read of 4 KB; the same for nothing; item and index; item, index out and in;
    // a transaction doubles the item alone; and a read within one costs two.
    expect(costs).toEqual([3, 1, 1, 6, 9, 9, 4]);
  });
});
