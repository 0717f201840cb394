import { inspect } from 'node:util';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { ConfigurationError } from '../../src/errors.ts';
import { absent, equals, present } from '../../src/store/conditions.ts';
import { plus } from '../../src/store/expressions.ts';
import { spend } from '../../src/store/guarded-change.ts';
import type { ItemWriteOptions, WriteAnswer } from '../../src/store/items.ts';
import type { Item, ItemKey } from '../../src/store/table.ts';
import { useStoreBench } from '../support/store-bench.ts';
import { StoreClock } from '../support/store-clock.ts';
import { until } from '../support/until.ts';

const bench = useStoreBench();

function freshKey(): ItemKey & Item {
  return { PK: bench.unique('ITEM'), SK: 'S' };
}

async function stored(attributes: Item): Promise<ItemKey & Item> {
  const item = { ...freshKey(), ...attributes };
  await bench.truth.items.create(item);
  return item;
}

async function failureOf(write: Promise<unknown>): Promise<unknown> {
  return write.then(
    (answer) => `no failure: ${inspect(answer)}`,
    (error: unknown) => error,
  );
}

const REPEAT = { whenUnanswered: 'repeat' } as const;
const THROTTLED = { kind: 'refuse', name: 'ThrottlingException' } as const;

test('pattern 22: create once, update what exists, spend what is there', async () => {
  // Arrange
  const { items } = bench.store();
  const alice = { PK: bench.unique('USER#alice'), SK: 'PROFILE', name: 'Alice', credits: 10, status: 'active' };
  const bob = { PK: bench.unique('USER#bob'), SK: 'PROFILE' };
  const seven = spend('credits', 7);

  // Act
  const answers = [
    await items.create(alice),
    await items.create({ ...alice, name: 'Mallory', credits: 0 }),
    await items.update(bob, { set: { name: 'Bob' } }),
    await items.update(alice, seven.change, { condition: seven.condition }),
    await items.update(alice, seven.change, { condition: seven.condition }),
  ];

  // Assert
  expect(answers).toEqual([
    { kind: 'written', item: alice },
    { kind: 'refused', item: alice },
    { kind: 'refused', item: undefined },
    { kind: 'written', item: { ...alice, credits: 3 } },
    { kind: 'refused', item: { ...alice, credits: 3 } },
  ]);
  expect(await bench.truth.get(bob)).toBeUndefined();
  expect(bench.transport.count('GetItem')).toBe(0);
});

describe('a single write', () => {
  test('replaces the whole item while its condition holds', async () => {
    // Arrange
    const item = await stored({ version: 1, old: true });
    const next = { PK: item.PK, SK: item.SK, version: 2 };

    // Act
    const first = await bench.store().items.replace(next, { condition: equals('version', 1) });
    const second = await bench.store().items.replace(next, { condition: equals('version', 1) });

    // Assert
    expect([first, second]).toEqual([
      { kind: 'written', item: next },
      { kind: 'refused', item: next },
    ]);
    expect(await bench.truth.items.get(item)).toEqual(next);
  });

  test('that replaces is refused without a condition, before anything is sent', async () => {
    // Arrange
    const { items } = bench.store();
    const options = {} as ItemWriteOptions & { condition: never };

    // Act
    const error = await failureOf(items.replace(freshKey(), options));

    // Assert
    expect(error).toBeInstanceOf(ConfigurationError);
    expect(bench.transport.seen).toEqual([]);
  });

  test('removes what exists and says so, once', async () => {
    // Arrange
    const item = await stored({ owner: 'me' });
    const { items } = bench.store();

    // Act
    const answers = [
      await items.remove(item, { condition: equals('owner', 'other') }),
      await items.remove(item, { condition: equals('owner', 'me') }),
      await items.remove(item),
    ];

    // Assert
    expect(answers).toEqual([
      { kind: 'refused', item },
      { kind: 'written', item: undefined },
      { kind: 'refused', item: undefined },
    ]);
  });

  test('that updates makes no item, whatever its own condition says', async () => {
    // Arrange
    const key = freshKey();

    // Act
    const answer = await bench.store().items.update(key, { set: { a: 1 } }, { condition: absent() });

    // Assert
    expect(answer).toEqual({ kind: 'refused', item: undefined });
    expect(await bench.truth.get(key)).toBeUndefined();
  });

  test('sends the key alone, also when it is given a whole item', async () => {
    // Arrange
    const item = await stored({ a: 1 });
    const { items } = bench.store();

    // Act
    const answers = [await items.get(item), await items.update(item, { set: { a: 2 } }), await items.remove(item)];

    // Assert
    expect(answers).toMatchObject([item, { kind: 'written', item: { a: 2 } }, { kind: 'written' }]);
  });

  test('of 50 that create one item at once, one is written and all others see it', async () => {
    // Arrange
    const key = freshKey();
    const { items } = bench.store();

    // Act
    const answers = await Promise.all(
      Array.from({ length: 50 }, (_, writer) => items.create({ ...key, writer: `w${String(writer)}` })),
    );

    // Assert
    const winner = await bench.truth.get(key);
    expect(answers.filter(({ kind }) => kind === 'written')).toEqual([{ kind: 'written', item: winner }]);
    expect(answers.every(({ item }) => item?.['writer'] === winner?.['writer'])).toBe(true);
  });
});

describe('what DynamoDB surely did not apply', () => {
  test.each([
    ['PutItem', 'ThrottlingException'],
    ['PutItem', 'ProvisionedThroughputExceededException'],
    ['PutItem', 'TransactionConflictException'],
    ['UpdateItem', 'TransactionConflictException'],
    ['DeleteItem', 'TransactionConflictException'],
  ])('%s %s is tried again and applied once', async (operation, name) => {
    // Arrange
    bench.transport.fault(operation, { kind: 'refuse', name }, { times: 3 });
    const { items } = bench.store();
    const item = operation === 'PutItem' ? freshKey() : await stored({ n: 0 });
    const writes: Record<string, () => Promise<WriteAnswer>> = {
      PutItem: () => items.create(item),
      UpdateItem: () => items.update(item, { set: { n: plus(1, 0) } }),
      DeleteItem: () => items.remove(item),
    };

    // Act
    const answer = await writes[operation]?.();

    // Assert
    expect(answer?.kind).toBe('written');
    expect(answer?.item?.['n']).toBe(operation === 'UpdateItem' ? 1 : undefined);
    expect(bench.transport.count(operation)).toBe(4);
  });

  test('is given up after four tries', async () => {
    // Arrange
    bench.transport.fault('PutItem', THROTTLED, { times: 100 });

    // Act
    const error = await failureOf(bench.store().items.create(freshKey()));

    // Assert
    expect(error).toMatchObject({ code: 'BACKEND', reason: 'throttled', retryable: true });
    expect(bench.transport.count('PutItem')).toBe(4);
  });

  test('is told as unreachable where nobody listens', async () => {
    expect(await failureOf(bench.store({ endpoint: 'http://127.0.0.1:1' }).items.create(freshKey()))).toMatchObject({
      code: 'BACKEND',
      reason: 'unreachable',
    });
  });

  test('is not waited for once the caller gives up', async () => {
    // Arrange
    const caller = new AbortController();
    const clock = new StoreClock();
    const store = bench.store({ clock, random: () => 0.5 });
    bench.transport.fault('PutItem', THROTTLED, { times: 100 });

    // Act
    const write = failureOf(store.items.create(freshKey(), { signal: caller.signal }));
    await until(() => clock.pendingTimers > 0);
    caller.abort();

    // Assert
    expect(await write).toMatchObject({ code: 'BACKEND', reason: 'throttled' });
    expect(bench.transport.count('PutItem')).toBe(1);
  });
});

describe('a write without an answer', () => {
  test.each<[string, (item: ItemKey & Item) => Promise<WriteAnswer>, boolean]>([
    ['PutItem', (item) => bench.store().items.create(item), false],
    ['PutItem', (item) => bench.store().items.replace({ ...item, n: 2 }, { condition: present() }), true],
    ['UpdateItem', (item) => bench.store().items.update(item, { set: { n: plus(1, 0) } }), true],
    ['DeleteItem', (item) => bench.store().items.remove(item), true],
  ])('%s is told as ambiguous and not sent again', async (operation, write, exists) => {
    // Arrange
    const item = exists ? await stored({ n: 1 }) : freshKey();
    bench.transport.fault(operation, { kind: 'lose the answer' });

    // Act
    const error = await failureOf(write(item));

    // Assert
    expect(error).toMatchObject({ code: 'BACKEND', reason: 'ambiguous' });
    expect(bench.transport.count(operation)).toBe(1);
  });

  test('stays ambiguous when it came after a throttled try', async () => {
    // Arrange
    bench.transport.fault('PutItem', THROTTLED);
    bench.transport.fault('PutItem', { kind: 'lose the answer' });

    // Act & Assert
    expect(await failureOf(bench.store().items.create(freshKey()))).toMatchObject({ reason: 'ambiguous' });
  });

  test('stays ambiguous when only throttled repeats followed', async () => {
    // Arrange
    const key = freshKey();
    bench.transport.fault('PutItem', { kind: 'lose the answer' });
    bench.transport.fault('PutItem', THROTTLED, { times: 100 });

    // Act
    const error = await failureOf(bench.store().items.create(key, REPEAT));

    // Assert
    expect(error).toMatchObject({ reason: 'ambiguous' });
    expect(await bench.truth.get(key)).toEqual(key);
  });
});

describe('a repeated write', () => {
  test.each(['lose the answer', 'lose the request'] as const)('that creates is written (%s)', async (kind) => {
    // Arrange
    const item = {
      ...freshKey(),
      n: 1,
      none: undefined,
      set: new Set(['b', 'a']),
      bytes: new Uint8Array([1, 2]),
      deep: { list: [null, -0] },
    };
    bench.transport.fault('PutItem', { kind }, { times: 2 });

    // Act
    const answer = await bench.store().items.create(item, REPEAT);

    // Assert
    expect(answer).toEqual({ kind: 'written', item: await bench.truth.items.get(item) });
    expect(bench.transport.count('PutItem')).toBe(3);
  });

  test('that creates is ambiguous when another item stands there: it may be ours, changed since', async () => {
    // Arrange
    const item = { ...freshKey(), state: 'new' };
    bench.transport.fault('PutItem', { kind: 'lose the answer' });
    const repeat = bench.transport.fault('PutItem', { kind: 'hold' });

    // Act
    const write = failureOf(bench.store().items.create(item, REPEAT));
    await repeat.hit;
    await bench.truth.items.update(item, { set: { state: 'used' } });
    await repeat.release();

    // Assert
    expect(await write).toMatchObject({ code: 'BACKEND', reason: 'ambiguous', retryable: true });
    expect(bench.transport.count('PutItem')).toBe(2);
  });

  test('that replaces knows its own item again', async () => {
    // Arrange
    const item = await stored({ version: 1 });
    bench.transport.fault('PutItem', { kind: 'lose the answer' });

    // Act
    const answer = await bench
      .store()
      .items.replace({ ...item, version: 2 }, { ...REPEAT, condition: equals('version', 1) });

    // Assert
    expect(answer).toEqual({ kind: 'written', item: { ...item, version: 2 } });
  });

  test('that removes is written when the item is gone', async () => {
    // Arrange
    const item = await stored({});
    bench.transport.fault('DeleteItem', { kind: 'lose the answer' });

    // Act & Assert
    expect(await bench.store().items.remove(item, REPEAT)).toEqual({ kind: 'written', item: undefined });
  });

  test('that removes is ambiguous when its condition meets another item', async () => {
    // Arrange
    const item = await stored({ owner: 'me' });
    bench.transport.fault('DeleteItem', { kind: 'lose the answer' });
    const repeat = bench.transport.fault('DeleteItem', { kind: 'hold' });

    // Act
    const write = failureOf(bench.store().items.remove(item, { ...REPEAT, condition: equals('owner', 'me') }));
    await repeat.hit;
    await bench.truth.items.create({ ...item, owner: 'other' });
    await repeat.release();

    // Assert
    expect(await write).toMatchObject({ reason: 'ambiguous' });
  });

  test('that updates is written where it may be applied twice', async () => {
    // Arrange
    const item = await stored({});
    bench.transport.fault('UpdateItem', { kind: 'lose the answer' });

    // Act & Assert
    expect(await bench.store().items.update(item, { set: { state: 'read' } }, REPEAT)).toEqual({
      kind: 'written',
      item: { ...item, state: 'read' },
    });
  });

  test('that updates and is refused is ambiguous: another may have set the same', async () => {
    // Arrange
    const item = await stored({ state: 'open' });
    bench.transport.fault('UpdateItem', { kind: 'lose the answer' });
    const options = { ...REPEAT, condition: equals('state', 'open') };

    // Act
    const error = await failureOf(bench.store().items.update(item, { set: { state: 'paid' } }, options));

    // Assert
    expect(error).toMatchObject({ reason: 'ambiguous' });
    expect(bench.transport.count('UpdateItem')).toBe(2);
  });

  test('whose first try was refused is refused', async () => {
    // Arrange
    const item = await stored({ state: 'paid' });

    // Act & Assert
    expect(await bench.store().items.create(item, REPEAT)).toEqual({ kind: 'refused', item });
  });
});

describe('what cannot be kept', () => {
  const long = 'x'.repeat(2_049);
  test.each<[string, Item, string]>([
    ['an empty partition key', { PK: '' }, 'PK'],
    ['a partition key over 2048 bytes', { PK: long }, 'PK'],
    ['an empty sort key', { SK: '' }, 'SK'],
    ['a sort key over 1024 bytes', { SK: 'é'.repeat(513) }, 'SK'],
    ['a key that is no text', { SK: 1 }, 'SK'],
    ['NaN', { a: Number.NaN }, 'a'],
    ['infinity', { a: Number.POSITIVE_INFINITY }, 'a'],
    ['a number beyond 2^53', { a: { b: [2 ** 53] } }, 'a'],
    ['a function', { a: () => 1 }, 'a'],
    ['a function deep within', { a: { b: [{ c: () => 1 }] } }, 'a'],
    ['a gap in a list', { a: ['x', undefined, 'y'] }, 'a'],
    ['a class instance', { a: new Date(0) }, 'a'],
    ['an empty set', { a: new Set() }, 'a'],
    ['half of a surrogate pair in a key', { PK: '\ud83d' }, 'PK'],
    ['more than 400 KiB', { a: 'x'.repeat(410_000) }, 'item'],
  ])('is refused before it is sent, by name: %s', async (_title, attributes, name) => {
    // Arrange
    const item: ItemKey & Item = { ...freshKey(), ...attributes };

    // Act
    const error = await failureOf(bench.store().items.create(item));

    // Assert
    expect(error).toBeInstanceOf(ConfigurationError);
    expect(error).toMatchObject({ faults: [{ name }] });
    expect(bench.transport.seen).toEqual([]);
  });

  test('is listed all at once', async () => {
    const item: ItemKey & Item = { PK: '', SK: '', a: Number.NaN, b: () => 1 };
    expect(await failureOf(bench.store().items.create(item))).toMatchObject({
      faults: [{ name: 'PK' }, { name: 'SK' }, { name: 'a' }, { name: 'b' }],
    });
  });

  test.each<[string, (key: ItemKey) => Promise<unknown>]>([
    ['get', (key) => bench.store().items.get(key)],
    ['update', (key) => bench.store().items.update(key, { set: { a: 1 } })],
    ['remove', (key) => bench.store().items.remove(key)],
  ])('is refused as a key by %s', async (_title, call) => {
    expect(await failureOf(call({ PK: '', SK: 's' }))).toBeInstanceOf(ConfigurationError);
    expect(bench.transport.seen).toEqual([]);
  });
});

test('any item that is created is answered as it is read, and repeated without an answer it is written', async () => {
  const name = fc.string({ minLength: 1, maxLength: 12, unit: 'grapheme' }).filter((text) => text !== '__proto__');
  const attributes = fc.dictionary(name, fc.oneof(fc.jsonValue(), fc.uint8Array({ maxLength: 9 })), {
    maxKeys: 6,
    noNullPrototype: true,
  });
  const text = fc.string({ minLength: 1, maxLength: 30, unit: 'grapheme' });
  await fc.assert(
    fc.asyncProperty(attributes, text, fc.boolean(), async (rest, suffix, isLost) => {
      // Arrange
      const item = { ...storable(rest), PK: `${bench.unique('ANY')}#${suffix}`, SK: suffix };
      bench.transport.heal();
      if (isLost) bench.transport.fault('PutItem', { kind: 'lose the answer' });

      // Act
      const answer = await anyStore().items.create(item, REPEAT);

      // Assert
      expect(answer).toEqual({ kind: 'written', item: await bench.truth.items.get(item) });
    }),
    { numRuns: 60 },
  );

  /** DynamoDB keeps numbers of 38 digits from 1e-130, and this client those up to 2^53. */
  function storable(value: Item): Item {
    return JSON.parse(JSON.stringify(value), (_key, part: unknown) => {
      const isOutside = typeof part === 'number' && (Math.abs(part) > 2 ** 53 - 1 || Math.abs(part) < 1e-100);
      return isOutside ? 0 : part;
    }) as Item;
  }

  function anyStore() {
    return bench.store();
  }
});
