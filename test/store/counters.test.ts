import { describe, expect, test } from 'vitest';
import { BackendError, ConfigurationError } from '../../src/errors.ts';
import { absent } from '../../src/store/conditions.ts';
import { COUNTER_LIMIT } from '../../src/store/counters/counter-value.ts';
import { createCounters } from '../../src/store/counters/counters.ts';
import { counterKey, countMarkerKey } from '../../src/store/table.ts';
import { TransactionCancelledError } from '../../src/store/transactions/transaction-writer.ts';
import { useStoreBench } from '../support/store-bench.ts';
import { StoreClock } from '../support/store-clock.ts';

const bench = useStoreBench();

const TRANSACTION = 'TransactWriteItems';

const freshName = (): string => bench.unique('views#ä 😀');

async function holding(value: unknown): Promise<string> {
  const name = freshName();
  await bench.truth.transactions.write([{ kind: 'put', label: 'counter', item: { ...counterKey(name), value } }]);
  return name;
}

describe('a counter', () => {
  test('counts from 0 and returns the new value with the one request', async () => {
    const name = freshName();
    const { counters } = bench.store();
    expect(await counters.read(name)).toBe(0);
    bench.transport.forget();
    expect(await counters.add(name, 5)).toEqual({ kind: 'added', value: 5 });
    expect(await counters.add(name, -7)).toEqual({ kind: 'added', value: -2 });
    expect(await counters.add(name, 0)).toEqual({ kind: 'added', value: -2 });
    expect(bench.transport.seen.map(({ operation }) => operation)).toEqual(Array(3).fill('UpdateItem'));
    expect(await counters.read(name)).toBe(-2);
  });

  test('is set once by create', async () => {
    const name = freshName();
    const { counters } = bench.store();
    expect(await counters.create(name, 41)).toBe(true);
    expect(await counters.create(name, 0)).toBe(false);
    expect(await counters.next(name)).toBe(42);
    expect(await counters.create(name, 0)).toBe(false);
  });

  test.each(['lose the answer', 'lose the request', 'deliver late', 'send twice'] as const)(
    'knows that it was created here: %s',
    async (kind) => {
      // Arrange
      const name = freshName();
      const rule = bench.transport.fault('UpdateItem', { kind });

      // Act
      const isCreated = await bench.store().counters.create(name, 7);
      await bench.truth.counters.add(name, 1);
      await rule.release();

      // Assert
      expect(isCreated).toBe(true);
      expect(await bench.truth.counters.read(name)).toBe(8);
    },
  );

  test.each(['a', '1', true, [1], 1.5, 2 ** 52, null])('says when others made it hold no number: %j', async (value) => {
    const name = await holding(value);
    await expect(bench.store().counters.read(name)).rejects.toMatchObject({ code: 'COUNTER_VALUE', retryable: false });
  });
});

describe('bounds', () => {
  test.each([
    { by: -3, bounds: { floor: 0 }, expected: { kind: 'added', value: 0 } },
    { by: -4, bounds: { floor: 0 }, expected: { kind: 'refused', value: 3 } },
    { by: 7, bounds: { ceiling: 10 }, expected: { kind: 'added', value: 10 } },
    { by: 8, bounds: { ceiling: 10 }, expected: { kind: 'refused', value: 3 } },
    { by: 1, bounds: { floor: 5, ceiling: 10 }, expected: { kind: 'refused', value: 3 } },
    { by: 0, bounds: { floor: 3, ceiling: 3 }, expected: { kind: 'added', value: 3 } },
    { by: -COUNTER_LIMIT, bounds: { floor: COUNTER_LIMIT }, expected: { kind: 'refused', value: 3 } },
    { by: COUNTER_LIMIT, bounds: { ceiling: -COUNTER_LIMIT }, expected: { kind: 'refused', value: 3 } },
  ])('hold for the result of 3 + $by within $bounds', async ({ by, bounds, expected }) => {
    const name = await holding(3);
    expect(await bench.store().counters.add(name, by, bounds)).toEqual(expected);
    expect(bench.transport.seen.map(({ operation }) => operation)).toEqual(['UpdateItem']);
    expect(await bench.truth.counters.read(name)).toBe(expected.value);
  });

  test.each([
    { by: 1, bounds: { ceiling: 0 }, expected: { kind: 'refused', value: 0 } },
    { by: 1, bounds: { floor: 2 }, expected: { kind: 'refused', value: 0 } },
    { by: -1, bounds: { floor: 0 }, expected: { kind: 'refused', value: 0 } },
    { by: -1, bounds: { floor: -1 }, expected: { kind: 'added', value: -1 } },
    { by: 2, bounds: { floor: 2, ceiling: 2 }, expected: { kind: 'added', value: 2 } },
  ])('hold for the first addition of $by within $bounds', async ({ by, bounds, expected }) => {
    const name = freshName();
    expect(await bench.store().counters.add(name, by, bounds)).toEqual(expected);
    const item = await bench.truth.get(counterKey(name));
    expect(item?.['value']).toBe(expected.kind === 'added' ? expected.value : undefined);
  });

  test('of all counters hold without any of its own', async () => {
    const [high, low] = [await holding(COUNTER_LIMIT), await holding(-COUNTER_LIMIT)];
    const { counters } = bench.store();
    expect(await counters.add(high, 1)).toEqual({ kind: 'refused', value: COUNTER_LIMIT });
    expect(await counters.add(low, -1)).toEqual({ kind: 'refused', value: -COUNTER_LIMIT });
    expect(await counters.add(high, -COUNTER_LIMIT)).toEqual({ kind: 'added', value: 0 });
    await expect(counters.next(await holding(COUNTER_LIMIT))).rejects.toMatchObject({ code: 'COUNTER_VALUE' });
  });
});

describe('wrong arguments', () => {
  test('are refused all at once, before anything is sent', async () => {
    // Act
    const add = bench.store().counters.add('', 1.5, { floor: Number.NaN, ceiling: Number.POSITIVE_INFINITY });

    // Assert
    const names = ['name', 'by', 'floor', 'ceiling'];
    await expect(add).rejects.toMatchObject({ faults: names.map((name) => ({ name })) });
    expect(bench.transport.seen).toEqual([]);
  });

  test.each(['', 'x'.repeat(513), 'ä'.repeat(257), 'half \uD800'])('among them the name %j', async (name) => {
    const { counters } = bench.store();
    const calls = [
      counters.read(name),
      counters.create(name, 1),
      counters.next(name),
      counters.numbered(name, () => []),
      counters.addOnce(name, 1, { key: 'k' }),
    ];
    for (const call of calls) await expect(call).rejects.toMatchObject({ faults: [{ name: 'name' }] });
    expect(() => counters.addAction(name, 1)).toThrow(ConfigurationError);
    expect(() => counters.sharded(name, 2)).toThrow(ConfigurationError);
  });

  test.each([2 ** 52, -(2 ** 52), 0.1, Number.NaN, Number.NEGATIVE_INFINITY, Number.MAX_SAFE_INTEGER])(
    'among them the amount %d',
    async (by) => {
      const { counters } = bench.store();
      await expect(counters.create('n', by)).rejects.toBeInstanceOf(ConfigurationError);
      await expect(counters.addOnce('n', by, { key: 'k' })).rejects.toBeInstanceOf(ConfigurationError);
      expect(() => counters.addAction('n', by)).toThrow(ConfigurationError);
      expect(() => counters.sharded('n', 2).addAction(by, 'k')).toThrow(ConfigurationError);
    },
  );

  test('among them amounts of other kinds, in an error that can be shown', async () => {
    const { counters } = bench.store();
    for (const by of [1n, Symbol('1'), '1', null, [1n]]) {
      await expect(counters.add('n', by as unknown as number)).rejects.toBeInstanceOf(ConfigurationError);
    }
  });

  test('among them bounds that no value is within', async () => {
    const add = bench.store().counters.add('n', 1, { floor: 2, ceiling: 1 });
    await expect(add).rejects.toMatchObject({ faults: [{ name: 'floor', value: 2 }] });
  });

  test.each(['', 'k'.repeat(2_001), '\uDC00'])('among them the key %j', async (key) => {
    const once = bench.store().counters.addOnce('n', 1, { key });
    await expect(once).rejects.toMatchObject({ faults: [{ name: 'key' }] });
  });

  test('among them how long markers are kept', () => {
    // A context is not needed to refuse.
    const build = (): unknown => createCounters({} as Parameters<typeof createCounters>[0], { retentionDays: 0 });
    expect(build).toThrow(ConfigurationError);
  });
});

describe('add without an answer', () => {
  test.each(['lose the answer', 'lose the request', 'deliver late'] as const)(
    'is ambiguous and never sent again: %s',
    async (kind) => {
      // Arrange
      const name = freshName();
      const rule = bench.transport.fault('UpdateItem', { kind });

      // Act
      const outcome = await bench
        .store()
        .counters.add(name, 1)
        .catch((error: unknown) => error);
      await rule.release();

      // Assert
      expect(outcome).toBeInstanceOf(BackendError);
      expect(outcome).toMatchObject({ reason: 'ambiguous' });
      expect(bench.transport.count('UpdateItem')).toBe(1);
      expect(await bench.truth.counters.read(name)).toBe(kind === 'lose the request' ? 0 : 1);
    },
  );

  test('is repeated while it is certain that nothing was applied', async () => {
    const name = freshName();
    bench.transport.fault('UpdateItem', { kind: 'refuse', name: 'ThrottlingException' }, { times: 2 });
    expect(await bench.store().counters.add(name, 1)).toEqual({ kind: 'added', value: 1 });
    expect(bench.transport.count('UpdateItem')).toBe(3);
  });
});

describe('next', () => {
  test.each(['lose the answer', 'lose the request', 'deliver late'] as const)(
    'gives each number once, with a gap at worst: %s',
    async (kind) => {
      // Arrange
      const name = freshName();
      const { counters } = bench.store();
      const first = await counters.next(name);
      const rule = bench.transport.fault('UpdateItem', { kind });

      // Act
      const second = await counters.next(name);
      await rule.release();
      const third = await counters.next(name);

      // Assert
      expect(first).toBe(1);
      expect([first < second, second < third]).toEqual([true, true]);
    },
  );
});

describe('addOnce', () => {
  test('counts a key once, and says so', async () => {
    const name = freshName();
    const { counters } = bench.store();
    expect(await counters.addOnce(name, 3, { key: 'm1' })).toEqual({ kind: 'added' });
    expect(await counters.addOnce(name, 3, { key: 'm1' })).toEqual({ kind: 'replayed' });
    expect(await counters.addOnce(name, 3, { key: 'm2' })).toEqual({ kind: 'added' });
    expect(await counters.read(name)).toBe(6);
  });

  test.each([
    ['a lost answer', 'lose the answer'],
    ['a lost request', 'lose the request'],
    ['a late arrival', 'deliver late'],
    ['a second sending', 'send twice'],
  ] as const)('L29: an increment that is replayed counts once in spite of %s', async (_title, kind) => {
    // Arrange
    const name = freshName();
    const { counters } = bench.store();
    const rule = bench.transport.fault(TRANSACTION, { kind });

    // Act
    const first = await counters.addOnce(name, 1, { key: 'm1' });
    await rule.release();
    const replay = await counters.addOnce(name, 1, { key: 'm1' });

    // Assert
    expect([first.kind, replay.kind]).toEqual(['added', 'replayed']);
    expect(await bench.truth.counters.read(name)).toBe(1);
  });

  test('L29: an increment that timed out in one process counts once when another process replays it', async () => {
    // Arrange
    const name = freshName();
    const dying = bench.store({ clock: new StoreClock({ waits: 'jump' }), random: () => 0.999 });
    const times = 1_000;
    bench.transport.fault(TRANSACTION, { kind: 'lose the answer' }, { times });

    // Act
    const first = await dying.counters.addOnce(name, 1, { key: 'm1' }).catch((error: unknown) => error);
    bench.transport.heal();
    const replay = await bench.store().counters.addOnce(name, 1, { key: 'm1' });

    // Assert
    expect(first).toMatchObject({ code: 'BACKEND', reason: 'ambiguous' });
    expect(replay).toEqual({ kind: 'replayed' });
    expect(await bench.truth.counters.read(name)).toBe(1);
  });

  test('knows its own marker when the server has forgotten the request', async () => {
    const name = freshName();
    bench.transport.fault(TRANSACTION, { kind: 'lose the answer' });
    bench.transport.fault(TRANSACTION, { kind: 'under another token' });
    expect(await bench.store().counters.addOnce(name, 1, { key: 'm1' })).toEqual({ kind: 'added' });
    expect(await bench.truth.counters.read(name)).toBe(1);
  });

  test('refuses beyond a bound, leaves no marker, and counts later when there is room', async () => {
    const name = await holding(10);
    const { counters } = bench.store();
    const once = { key: 'm1', ceiling: 10 };
    expect(await counters.addOnce(name, 1, once)).toEqual({ kind: 'refused', value: 10 });
    await bench.truth.counters.add(name, -1);
    expect(await counters.addOnce(name, 1, once)).toEqual({ kind: 'added' });
    // A replay is one, also when by now there is no room.
    expect(await counters.addOnce(name, 1, once)).toEqual({ kind: 'replayed' });
    expect(await counters.read(name)).toBe(10);
  });

  test('keeps names and keys with # apart', async () => {
    const name = freshName();
    const { counters } = bench.store();
    expect((await counters.addOnce(`${name}#a`, 1, { key: 'b' })).kind).toBe('added');
    expect((await counters.addOnce(name, 1, { key: 'a#b' })).kind).toBe('added');
    expect((await counters.addOnce(name, 1, { key: '#a#b' })).kind).toBe('added');
    expect(await counters.read(name)).toBe(2);
  });

  test('takes names and keys up to their limits', async () => {
    const name = 'n'.repeat(512);
    const key = 'ä'.repeat(1_000);
    expect((await bench.store().counters.addOnce(name, 1, { key })).kind).toBe('added');
  });

  test('lets the marker expire after the retention, and not before', async () => {
    // Arrange
    const name = freshName();
    const clock = new StoreClock({ startMs: 1_800_000_000_500 });

    // Act
    await bench.store({ clock }).counters.addOnce(name, 1, { key: 'm1' });

    // Assert
    const marker = await bench.truth.get(countMarkerKey(name, 'm1'));
    expect(marker?.['ttl']).toBe(1_800_000_000 + 35 * 86_400);
  });

  test('gives up on other transactions at the deadline, having counted nothing', async () => {
    // Arrange
    const name = freshName();
    const reasons = ['None', 'TransactionConflict'];
    const refusal = { kind: 'refuse', name: 'TransactionCanceledException', reasons } as const;
    bench.transport.fault(TRANSACTION, refusal, { times: 1_000 });
    const { counters } = bench.store({ clock: new StoreClock({ waits: 'jump' }), random: () => 0.999 });

    // Act
    const outcome = await counters.addOnce(name, 1, { key: 'm1' }).catch((error: unknown) => error);

    // Assert
    expect(outcome).toBeInstanceOf(TransactionCancelledError);
    expect(outcome).toMatchObject({ retryable: true });
    expect(await bench.truth.counters.read(name)).toBe(0);
  });
});

describe('addAction', () => {
  test('counts in the transaction of an effect record, which makes a replay count nothing', async () => {
    // Arrange
    const name = freshName();
    const record = { PK: freshName(), SK: 'RECORD' };
    const { counters, transactions } = bench.store();
    const commit = (): Promise<void> =>
      transactions.write([
        { kind: 'put', label: 'record', role: 'record', item: record, condition: absent() },
        counters.addAction(name, 2, { ceiling: 3 }),
      ]);

    // Act
    await commit();
    const replay = await commit().catch((error: unknown) => error);

    // Assert
    expect(replay).toBeInstanceOf(TransactionCancelledError);
    expect(await counters.read(name)).toBe(2);
  });

  test('lets the transaction fail beyond a bound', async () => {
    const name = await holding(3);
    const { counters, transactions } = bench.store();
    const write = transactions.write([counters.addAction(name, 1, { ceiling: 3 })]);
    await expect(write).rejects.toMatchObject({ failures: [{ code: 'ConditionalCheckFailed', item: { value: 3 } }] });
  });
});
