/** What DynamoDB would not keep as it is: refused by name, wherever a value may stand. */
import { inspect } from 'node:util';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { ConfigurationError } from '../../src/errors.ts';
import { equals, present } from '../../src/store/conditions.ts';
import type { Item, ItemKey } from '../../src/store/table.ts';
import { useStoreBench } from '../support/store-bench.ts';

const bench = useStoreBench();

async function failureOf(write: Promise<unknown>): Promise<unknown> {
  return write.then(
    (answer) => `no failure: ${inspect(answer)}`,
    (error: unknown) => error,
  );
}

function freshKey(): ItemKey & Item {
  return { PK: bench.unique('ITEM'), SK: 'S' };
}

describe('a value that cannot be kept', () => {
  const within = Object.fromEntries([['__proto__', 1]]);
  const cycle: unknown[] = [];
  cycle.push(cycle);
  class Money extends Object {}
  test.each<[string, unknown]>([
    ['an ArrayBuffer', new ArrayBuffer(3)],
    ['a DataView', new DataView(new ArrayBuffer(3))],
    ['a Blob', new Blob(['abc'])],
    ['16-bit numbers', new Uint16Array([1, 2])],
    ['clamped bytes', new Uint8ClampedArray([1])],
    ['a Map', new Map([['a', 1]])],
    ['a Map of functions', new Map([['a', () => 1]])],
    ['a set with a function', new Set([() => 1])],
    ['a set with undefined', new Set(['a', undefined])],
    ['a set of texts and numbers', new Set<unknown>(['a', 1])],
    ['a set of booleans', new Set([true])],
    ['a set of lists', new Set([['a']])],
    ['a field called __proto__', within],
    ['a field called constructor', { constructor: { name: 'Set' } }],
    ['a field named by a symbol', { [Symbol('s')]: 1 }],
    // eslint-disable-next-line no-sparse-arrays -- a hole is what this is about
    ['a hole in a list', [1, , 2]],
    ['a symbol', Symbol('s')],
    ['a RegExp', /a/],
    ['a Promise', Promise.resolve(1)],
    ['a text object', Object('a')],
    ['an instance of a class', new Money()],
    ['half of a surrogate pair', 'a\ud83d'],
    ['half of a surrogate pair in a name', { ['\udc00']: 1 }],
    ['a bigint beyond 38 digits', 10n ** 38n],
    ['itself', cycle],
  ])('is refused wherever it stands, by name and before it is sent: %s', async (_title, value) => {
    // Arrange
    const { items, transactions, update } = bench.store();
    const key = freshKey();
    const deep = { b: [{ c: value }] };

    // Act
    const errors = [
      await failureOf(items.create({ ...key, a: value })),
      await failureOf(items.create({ ...key, a: deep })),
      await failureOf(items.replace({ ...key, a: [value] }, { condition: present() })),
      await failureOf(items.update(key, { set: { a: value === Object(value) ? { value } : deep } })),
      await failureOf(items.remove(key, { condition: equals('a', deep) })),
      await failureOf(update({ key, change: { set: { a: deep } } })),
      await failureOf(transactions.write([{ kind: 'put', label: 'a', item: { ...key, a: deep } }])),
    ];

    // Assert
    expect(errors).toEqual(errors.map(() => expect.any(ConfigurationError) as unknown));
    expect(errors).toMatchObject(errors.map(() => ({ faults: [{ name: 'a' }] })));
    expect(bench.transport.seen).toEqual([]);
  });

  test('is refused as the name of an attribute too, in items, changes and conditions', async () => {
    const { items } = bench.store();
    const key = freshKey();
    const named = (name: string): Item => Object.fromEntries([[name, 1]]);
    const errors = [
      await failureOf(items.create({ ...key, ...named('a\ud83d') })),
      await failureOf(items.create(Object.fromEntries([...Object.entries(key), ['__proto__', 1]]) as ItemKey & Item)),
      await failureOf(items.update(key, { set: named('__proto__') })),
      await failureOf(items.update(key, { set: named('a.__proto__') })),
      await failureOf(items.update(key, { remove: ['\ud83d'] })),
      await failureOf(items.remove(key, { condition: equals('\ud83d', 1) })),
    ];
    expect(errors).toEqual(errors.map(() => expect.any(ConfigurationError) as unknown));
    expect(bench.transport.seen).toEqual([]);
  });

  test('is nothing that a look-alike keeps: what is let through reads back as it was said to', async () => {
    const value = fc.letrec<{ any: unknown; list: unknown; map: unknown; leaf: unknown }>((tie) => ({
      leaf: fc.oneof(
        fc.string({ unit: 'binary', maxLength: 5 }),
        fc.integer(),
        fc.bigInt({ min: -(10n ** 37n), max: 10n ** 37n }),
        fc.boolean(),
        fc.constant(null),
        fc.uint8Array({ minLength: 1, maxLength: 4 }),
        fc.uint8Array({ minLength: 1, maxLength: 4 }).map((bytes) => Buffer.from(bytes)),
        fc
          .uniqueArray(fc.string({ unit: 'binary', minLength: 1, maxLength: 3 }), { minLength: 1 })
          .map((s) => new Set(s)),
        fc.uniqueArray(fc.integer(), { minLength: 1, maxLength: 4 }).map((numbers) => new Set(numbers)),
      ),
      list: fc.array(tie('any'), { maxLength: 3 }),
      map: fc.dictionary(
        fc.oneof(fc.string({ minLength: 1, maxLength: 4 }), fc.constantFrom('toString', 'valueOf', 'size')),
        tie('any'),
        { maxKeys: 3, noNullPrototype: true },
      ),
      any: fc.oneof({ maxDepth: 3 }, tie('leaf'), tie('list'), tie('map')),
    })).any;
    await fc.assert(
      fc.asyncProperty(value, async (a) => {
        const item: ItemKey & Item = { ...freshKey(), a };
        const answer = await bench.truth.items.create(item).catch((error: unknown) => error);
        if (answer instanceof ConfigurationError) return;
        expect(answer).toEqual({ kind: 'written', item: await bench.truth.items.get(item) });
      }),
      { numRuns: 60 },
    );
  });
});

describe('a repeated creation', () => {
  test.each<[string, unknown]>([
    ['a Buffer', Buffer.from('abc')],
    ['a Buffer deep within', { b: [Buffer.from('abc')] }],
    ['a set of Buffers', new Set([Buffer.from('a'), Buffer.from('b')])],
    ['a bigint', 10n ** 30n],
  ])('is known again by what it stored: %s', async (_title, a) => {
    bench.transport.fault('PutItem', { kind: 'lose the answer' });
    expect(await bench.store().items.create({ ...freshKey(), a }, { whenUnanswered: 'repeat' })).toMatchObject({
      kind: 'written',
    });
  });
});
