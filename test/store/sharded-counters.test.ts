import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { BackendError, ConfigurationError } from '../../src/errors.ts';
import { absent } from '../../src/store/conditions.ts';
import { COUNTER_LIMIT } from '../../src/store/counters/counter-value.ts';
import { counterShardKey } from '../../src/store/table.ts';
import { TransactionCancelledError } from '../../src/store/transactions/transaction-writer.ts';
import { useStoreBench } from '../support/store-bench.ts';
import { StoreClock } from '../support/store-clock.ts';

const bench = useStoreBench();

const TRANSACTION = 'TransactWriteItems';

const freshName = (): string => bench.unique('clicks#ä');

/** What each shard holds, from 0. */
function valuesOf(name: string, shards: number): Promise<unknown[]> {
  const keys = Array.from({ length: shards }, (_none, shard) => counterShardKey(name, shard));
  return Promise.all(keys.map(async (key) => (await bench.truth.get(key))?.['value']));
}

describe('the shard of a key', () => {
  test('is the same in every version of the package', () => {
    const counter = bench.truth.counters.sharded('any', 16);
    // Computed once; a change of these loses the way to what was written before.
    expect(['', 'a', 'message-1', 'ä😀', 'x'.repeat(5_000)].map((key) => counter.shardOf(key))).toEqual([
      12, 11, 13, 0, 12,
    ]);
  });

  test('is one of the shards, and all of them are used alike', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'grapheme' }), fc.integer({ min: 1, max: 1_000 }), (key, shards) => {
        const shard = bench.truth.counters.sharded('any', shards).shardOf(key);
        return Number.isInteger(shard) && shard >= 0 && shard < shards;
      }),
    );
    const counter = bench.truth.counters.sharded('any', 8);
    const shards = Array.from({ length: 8_000 }, (_none, index) => counter.shardOf(`m${String(index)}`));
    const hits = [0, 1, 2, 3, 4, 5, 6, 7].map((shard) => shards.filter((hit) => hit === shard).length);
    expect(Math.min(...hits)).toBeGreaterThan(800);
    expect(Math.max(...hits)).toBeLessThan(1_200);
  });
});

describe('a sharded counter', () => {
  test('adds on the shard of the key and sums up all shards', async () => {
    // Arrange
    const name = freshName();
    const counter = bench.store().counters.sharded(name, 4);
    const keys = Array.from({ length: 40 }, (_none, index) => `m${String(index)}`);
    const expected = [0, 1, 2, 3].map((shard) => keys.filter((key) => counter.shardOf(key) === shard).length * 3);

    // Act
    expect(await counter.read()).toBe(0);
    for (const key of keys) await counter.add(3, key);

    // Assert
    expect(await valuesOf(name, 4)).toEqual(expected);
    expect(await counter.read()).toBe(120);
  });

  test('is apart from the counter and from sharded ones whose names begin alike', async () => {
    const name = freshName();
    const { counters } = bench.store();
    await counters.add(name, 100);
    await counters.sharded(`${name}#SHARD`, 2).add(10, 'a');
    await counters.sharded(name, 2).add(1, 'a');
    expect(await counters.sharded(name, 2).read()).toBe(1);
    expect(await counters.read(name)).toBe(100);
  });

  test('loses nothing when the number of shards is changed', async () => {
    const name = freshName();
    const { counters } = bench.store();
    for (let index = 0; index < 20; index += 1) await counters.sharded(name, 8).add(1, `m${String(index)}`);
    await counters.sharded(name, 2).add(1, 'm');
    expect(await counters.sharded(name, 2).read()).toBe(21);
    expect(await counters.sharded(name, 1_000).read()).toBe(21);
  });

  test('sums up page by page', async () => {
    // Arrange
    const name = freshName();
    for (let shard = 0; shard < 3; shard += 1) {
      const item = { ...counterShardKey(name, shard), value: 2 };
      await bench.truth.transactions.write([{ kind: 'put', label: 'shard', item }]);
    }
    const from = { PK: { S: counterShardKey(name, 0).PK }, SK: { S: counterShardKey(name, 0).SK } };
    const body = { Items: [{ value: { N: '2' } }], Count: 1, ScannedCount: 1, LastEvaluatedKey: from };
    bench.transport.fault('Query', { kind: 'say', body });

    // Act
    const sum = await bench.store().counters.sharded(name, 3).read();

    // Assert
    expect(sum).toBe(6);
    expect(bench.transport.seen.at(-1)?.body).toMatchObject({ ConsistentRead: true, ExclusiveStartKey: from });
  });

  test('reads again when an answer is lost', async () => {
    const name = freshName();
    const counter = bench.store().counters.sharded(name, 2);
    await counter.add(5, 'a');
    bench.transport.fault('Query', { kind: 'lose the answer' }, { times: 2 });
    expect(await counter.read()).toBe(5);
  });

  test.each(['lose the answer', 'deliver late'] as const)('never sends an addition twice: %s', async (kind) => {
    // Arrange
    const name = freshName();
    const rule = bench.transport.fault('UpdateItem', { kind });

    // Act
    const add = bench.store().counters.sharded(name, 4).add(1, 'm1');
    const outcome = await add.catch((error: unknown) => error);
    await rule.release();

    // Assert
    expect(outcome).toBeInstanceOf(BackendError);
    expect(outcome).toMatchObject({ reason: 'ambiguous' });
    expect(await bench.truth.counters.sharded(name, 4).read()).toBe(1);
  });

  test('says when a shard or the sum is beyond the limit', async () => {
    // Arrange
    const name = freshName();
    const counter = bench.store().counters.sharded(name, 2);
    const keyOf = (shard: number): string =>
      ['a', 'b', 'c', 'd', 'e'].find((key) => counter.shardOf(key) === shard) ?? 'none of them';

    // Act
    await counter.add(COUNTER_LIMIT, keyOf(0));
    const beyond = counter.add(1, keyOf(0));

    // Assert
    await expect(beyond).rejects.toMatchObject({ code: 'COUNTER_VALUE' });
    expect(await counter.read()).toBe(COUNTER_LIMIT);
    await counter.add(1, keyOf(1));
    await expect(counter.read()).rejects.toMatchObject({ code: 'COUNTER_VALUE' });
  });

  test.each([0, -1, 1.5, 1_001, Number.NaN])('refuses %d shards', async (shards) => {
    const { counters } = bench.store();
    expect(() => counters.sharded('n', shards)).toThrow(ConfigurationError);
    const once = counters.addOnce('n', 1, { key: 'k', shards });
    await expect(once).rejects.toMatchObject({ faults: [{ name: 'shards' }] });
  });

  test('refuses bounds, which no shard could hold', async () => {
    const once = bench.store().counters.addOnce('n', 1, { key: 'k', shards: 2, ceiling: 5 });
    await expect(once).rejects.toMatchObject({ faults: [{ name: 'shards' }] });
    expect(bench.transport.seen).toEqual([]);
  });
});

describe('a replay on shards', () => {
  test.each(['lose the answer', 'lose the request', 'deliver late', 'send twice'] as const)(
    'L29: counts once and hits the same shard: %s',
    async (kind) => {
      // Arrange
      const name = freshName();
      const once = { key: 'message-1', shards: 16 };
      const rule = bench.transport.fault(TRANSACTION, { kind });

      // Act: the replay comes from another process.
      const first = await bench.store().counters.addOnce(name, 1, once);
      await rule.release();
      const replay = await bench.store().counters.addOnce(name, 1, once);

      // Assert
      const shard = bench.truth.counters.sharded(name, 16).shardOf(once.key);
      const expected = Array.from({ length: 16 }, (_none, index) => (index === shard ? 1 : undefined));
      expect([first.kind, replay.kind]).toEqual(['added', 'replayed']);
      expect(await valuesOf(name, 16)).toEqual(expected);
      expect(shardsAsked()).toEqual(new Set([`SHARD#${String(shard)}`]));
    },
  );

  test('L29: counts once in the transaction of the effect record, also when the first process never hears of it', async () => {
    // Arrange
    const name = freshName();
    const record = { PK: freshName(), SK: 'RECORD' };
    const commit = (store: ReturnType<typeof bench.store>): Promise<void> =>
      store.transactions.write([
        { kind: 'put', label: 'record', role: 'record', item: record, condition: absent() },
        store.counters.sharded(name, 16).addAction(1, 'message-1'),
      ]);
    bench.transport.fault(TRANSACTION, { kind: 'lose the answer' }, { times: 1_000 });

    // Act
    const dying = bench.store({ clock: new StoreClock({ waits: 'jump' }), random: () => 0.999 });
    const first = await commit(dying).catch((error: unknown) => error);
    bench.transport.heal();
    const replay = await commit(bench.store()).catch((error: unknown) => error);

    // Assert
    expect(first).toMatchObject({ reason: 'ambiguous' });
    expect(replay).toBeInstanceOf(TransactionCancelledError);
    expect(await bench.truth.counters.sharded(name, 16).read()).toBe(1);
    expect(shardsAsked().size).toBe(1);
  });

  test('counts a key once also when the number of shards was changed in between', async () => {
    const name = freshName();
    const { counters } = bench.store();
    expect((await counters.addOnce(name, 1, { key: 'm1', shards: 4 })).kind).toBe('added');
    expect((await counters.addOnce(name, 1, { key: 'm1', shards: 64 })).kind).toBe('replayed');
    expect(await counters.sharded(name, 64).read()).toBe(1);
  });
});

/** The sort keys of the counter items that transactions were sent for. */
function shardsAsked(): Set<string> {
  const bodies = bench.transport.seen.filter(({ operation }) => operation === TRANSACTION).map(({ body }) => body);
  const sortKeys = bodies.flatMap((body) => JSON.stringify(body).match(/SHARD#\d+/g) ?? []);
  return new Set(sortKeys);
}
