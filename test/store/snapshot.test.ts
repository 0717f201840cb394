import { describe, expect, test } from 'vitest';
import { ConfigurationError } from '../../src/errors.ts';
import { minus, plus } from '../../src/store/expressions.ts';
import type { Item, ItemKey } from '../../src/store/table.ts';
import { useStoreBench } from '../support/store-bench.ts';
import { StoreClock } from '../support/store-clock.ts';

const bench = useStoreBench();

const OPERATION = 'TransactGetItems';

function freshKey(): ItemKey {
  return { PK: bench.unique('SNAP'), SK: 'S' };
}

async function stored(attributes: Item): Promise<ItemKey & Item> {
  const item = { ...freshKey(), ...attributes };
  await bench.truth.items.create(item);
  return item;
}

async function failureOf(read: Promise<unknown>): Promise<unknown> {
  return read.then(
    () => undefined,
    (error: unknown) => error,
  );
}

function cancelled(...reasons: readonly string[]) {
  return { kind: 'refuse', name: 'TransactionCanceledException', reasons } as const;
}

describe('a snapshot', () => {
  test('brings each item in the order of the keys, and undefined where there is none', async () => {
    // Arrange
    const [first, second] = [await stored({ list: [1, { two: 2 }] }), await stored({ set: new Set(['a']) })];

    // Act & Assert
    expect(await bench.store().snapshot([second, freshKey(), first])).toEqual([second, undefined, first]);
    expect(bench.transport.count(OPERATION)).toBe(1);
  });

  test('takes a hundred keys', async () => {
    const items = await Promise.all(Array.from({ length: 100 }, (_, n) => stored({ n })));
    expect(await bench.store().snapshot(items)).toEqual(items);
  });

  test('never shows half of a transaction', async () => {
    // Arrange
    const [from, to] = [await stored({ n: 0 }), await stored({ n: 0 })];
    const store = bench.store();
    const transfer = () =>
      bench.truth.transactions.write([
        { kind: 'update', label: 'from', key: from, change: { set: { n: minus(1) } } },
        { kind: 'update', label: 'to', key: to, change: { set: { n: plus(1, 0) } } },
      ]);

    // Act
    const [, sums] = await Promise.all([
      Promise.all(Array.from({ length: 40 }, transfer)),
      Promise.all(
        Array.from({ length: 40 }, async () => {
          const items = await store.snapshot([from, to]);
          return items.reduce((sum, item) => sum + Number(item?.['n']), 0);
        }),
      ),
    ]);

    // Assert
    expect(new Set(sums)).toEqual(new Set([0]));
    expect((await bench.truth.items.get(to))?.['n']).toBe(40);
  });

  test.each<[string, readonly ItemKey[], readonly string[]]>([
    ['none', [], ['keys']],
    ['more than a hundred', Array.from({ length: 101 }, (_, n) => ({ PK: String(n), SK: 's' })), ['keys']],
    [
      'one twice',
      [
        { PK: 'a', SK: 'b' },
        { PK: 'x', SK: 'y' },
        { PK: 'a', SK: 'b' },
      ],
      ['keys[2]'],
    ],
    ['an empty one', [{ PK: 'a', SK: '' }], ['keys[0].SK']],
    [
      'several of these',
      [
        { PK: '', SK: 's' },
        { PK: '', SK: 's' },
      ],
      ['keys[0].PK', 'keys[1].PK', 'keys[1]'],
    ],
  ])('is refused before it is sent for keys like this: %s', async (_title, keys, names) => {
    // Act
    const error = await failureOf(bench.store().snapshot(keys));

    // Assert
    if (!(error instanceof ConfigurationError)) throw new Error('not refused', { cause: error });
    expect(error.faults.map(({ name }) => name)).toEqual(names);
    expect(bench.transport.seen).toEqual([]);
  });

  test('takes keys apart that only look alike when they are joined', async () => {
    expect(
      await bench.store().snapshot([
        { PK: 'a|b', SK: 'c' },
        { PK: 'a', SK: 'b|c' },
      ]),
    ).toEqual([undefined, undefined]);
  });
});

describe('a snapshot that meets others', () => {
  test.each<[string, Parameters<typeof bench.transport.fault>[1]]>([
    ['a conflict', cancelled('None', 'TransactionConflict')],
    ['throttling of one item', cancelled('ThrottlingError', 'TransactionConflict')],
    ['throttling', { kind: 'refuse', name: 'ThrottlingException' }],
    ['a server error', { kind: 'refuse', name: 'InternalServerError', status: 500 }],
    ['a lost answer', { kind: 'lose the answer' }],
  ])('is read again after %s', async (_title, fault) => {
    // Arrange
    const items = [await stored({ n: 1 }), await stored({ n: 2 })];
    bench.transport.fault(OPERATION, fault, { times: 3 });

    // Act & Assert
    expect(await bench.store().snapshot(items)).toEqual(items);
    expect(bench.transport.count(OPERATION)).toBe(4);
  });

  test.each([
    ['conflict', cancelled('TransactionConflict')],
    ['throttled', cancelled('ProvisionedThroughputExceeded')],
  ] as const)('is given up after ten tries: %s', async (reason, fault) => {
    // Arrange
    const clock = new StoreClock({ waits: 'jump' });
    const startMs = clock.monotonicMs();
    bench.transport.fault(OPERATION, fault, { times: 1_000 });

    // Act
    const error = await failureOf(bench.store({ clock, random: () => 0.999 }).snapshot([freshKey()]));

    // Assert
    expect(error).toMatchObject({ code: 'BACKEND', reason, retryable: true });
    expect(bench.transport.count(OPERATION)).toBe(10);
    expect(clock.monotonicMs() - startMs).toBeGreaterThan(1_000);
  });

  test.each([
    ['a wrong request', cancelled('ValidationError', 'TransactionConflict')],
    ['no reasons', cancelled()],
  ])('is not read again for %s', async (_title, fault) => {
    // Arrange
    bench.transport.fault(OPERATION, fault);

    // Act & Assert
    expect(await failureOf(bench.store().snapshot([freshKey(), freshKey()]))).toMatchObject({ retryable: false });
    expect(bench.transport.count(OPERATION)).toBe(1);
  });
});
