import { describe, expect, test } from 'vitest';
import { ConfigurationError } from '../../src/errors.ts';
import { equals } from '../../src/store/conditions.ts';
import { laggingIndex } from '../../src/store/index-lag.ts';
import type { IndexQuery, IndexReads } from '../../src/store/index-reads.ts';
import { TABLE, type Item, type ItemKey } from '../../src/store/table.ts';
import { useStoreBench } from '../support/store-bench.ts';
import { StoreClock } from '../support/store-clock.ts';
import { until } from '../support/until.ts';

const bench = useStoreBench();
const { index } = TABLE;

function entry(partition: string, sort: string, attributes: Item = {}): ItemKey & Item {
  return {
    PK: `ITEM#${partition}#${sort}`,
    SK: 'META',
    [index.partitionKey]: partition,
    [index.sortKey]: sort,
    ...attributes,
  };
}

async function put(...items: (ItemKey & Item)[]): Promise<void> {
  for (const item of items) await bench.truth.transactions.write([{ kind: 'put', label: 'any', item }]);
}

async function sortKeysOf(reads: IndexReads, query: IndexQuery): Promise<unknown[]> {
  const found: unknown[] = [];
  for await (const hit of reads.query(query)) found.push(hit[index.sortKey]);
  return found;
}

describe('query', () => {
  test('brings the hits of a partition with all their attributes, in the order of the index', async () => {
    const partition = bench.unique('P');
    await put(entry(partition, 'b', { name: 'second' }), entry(partition, 'a'), entry(`${partition}x`, 'c'));

    const found: Item[] = [];
    for await (const hit of bench.store().index.query({ partition })) found.push(hit);

    expect(found).toEqual([entry(partition, 'a'), entry(partition, 'b', { name: 'second' })]);
  });

  test('goes backward, and narrows down by how the sort key begins', async () => {
    const partition = bench.unique('P');
    await put(...['a#1', 'a#2', 'b#1', 'ä'].map((sort) => entry(partition, sort)));
    const reads = bench.store().index;

    expect(await sortKeysOf(reads, { partition, direction: 'backward' })).toEqual(['ä', 'b#1', 'a#2', 'a#1']);
    expect(await sortKeysOf(reads, { partition, sortKeyBeginsWith: 'a#' })).toEqual(['a#1', 'a#2']);
    expect(await sortKeysOf(reads, { partition, sortKeyBeginsWith: '' })).toHaveLength(4);
    expect(await sortKeysOf(reads, { partition: `${partition} none` })).toEqual([]);
  });

  test('reads page by page, no more than it is asked for, and repeats what went unanswered', async () => {
    // Arrange: three pages.
    const partition = bench.unique('P');
    const filler = 'x'.repeat(390_000);
    await put(...['1', '2', '3', '4', '5', '6', '7'].map((sort) => entry(partition, sort, { filler })));
    bench.transport.fault('Query', { kind: 'lose the answer' }, { nth: 2 });
    const reads = bench.store().index;

    // Act
    const all = await sortKeysOf(reads, { partition });
    const requestsForAll = bench.transport.count('Query');
    bench.transport.forget();
    for await (const first of reads.query({ partition })) {
      expect(first[index.sortKey]).toBe('1');
      break;
    }

    // Assert
    expect(all).toEqual(['1', '2', '3', '4', '5', '6', '7']);
    expect(requestsForAll).toBeGreaterThanOrEqual(4);
    expect(bench.transport.count('Query')).toBe(1);
  });

  test.each([
    ['an empty partition', { partition: '' }, 'partition'],
    ['a partition over 2048 bytes', { partition: 'é'.repeat(1_025) }, 'partition'],
    ['a sort key over 1024 bytes', { partition: 'p', sortKeyBeginsWith: 'é'.repeat(513) }, 'sortKeyBeginsWith'],
  ])('of %s is refused before anything is sent', async (_what, query, name) => {
    const refused = sortKeysOf(bench.store().index, query);

    await expect(refused).rejects.toBeInstanceOf(ConfigurationError);
    await expect(refused).rejects.toMatchObject({ faults: [{ name }] });
    expect(bench.transport.seen).toEqual([]);
  });

  test('that is refused by DynamoDB throws the error of this package', async () => {
    bench.transport.fault('Query', { kind: 'refuse', name: 'AccessDeniedException' });

    await expect(sortKeysOf(bench.store().index, { partition: 'p' })).rejects.toMatchObject({ reason: 'denied' });
  });
});

describe('queryIndexUntilFound', () => {
  test('repeats until the index knows, with growing random pauses', async () => {
    // Arrange
    const partition = bench.unique('P');
    const clock = new StoreClock({ waits: 'jump' });
    const start = clock.monotonicMs();
    const lagging = laggingIndex(bench.store({ clock, random: () => 0.5 }));
    await lagging.fallBehind();
    await put(entry(partition, 'a'));
    lagging.catchUp(3);

    // Act
    const answer = await lagging.queryIndexUntilFound({ partition }, { baseDelayMs: 100 });

    // Assert: half of 100, 200 and 400.
    expect(answer).toEqual({ kind: 'found', items: [entry(partition, 'a')], attempts: 4 });
    expect(clock.monotonicMs() - start).toBe(350);
  });

  test('gives up after its number of tries', async () => {
    const partition = bench.unique('P');
    const { index: reads } = bench.store();

    expect(await reads.queryIndexUntilFound({ partition }, { maxAttempts: 1 })).toEqual({
      kind: 'notFound',
      attempts: 1,
    });
    expect(await reads.queryIndexUntilFound({ partition })).toEqual({ kind: 'notFound', attempts: 6 });
    expect(bench.transport.count('Query')).toBe(7);
  });

  test('waits no longer than two seconds before each try', async () => {
    const clock = new StoreClock({ waits: 'jump' });
    const start = clock.monotonicMs();
    const { index: reads } = bench.store({ clock, random: () => 1 });

    await reads.queryIndexUntilFound({ partition: bench.unique('P') }, { maxAttempts: 20, baseDelayMs: 1_000 });

    expect(clock.monotonicMs() - start).toBe(1_000 + 18 * 2_000);
  });

  test('ends its wait, and its request, when it is told to', async () => {
    // Arrange
    const partition = bench.unique('P');
    const clock = new StoreClock();
    const { index: reads } = bench.store({ clock, random: () => 0.5, requestTimeoutMs: 60_000 });
    const [waiting, asking, before] = [new AbortController(), new AbortController(), new AbortController()];
    before.abort(new Error('too early'));

    // Act
    const ended = reads.queryIndexUntilFound({ partition }, { signal: waiting.signal });
    await until(() => clock.pendingTimers > 0);
    waiting.abort(new Error('enough'));
    await expect(ended).rejects.toThrow('enough');
    const silent = bench.transport.fault('Query', { kind: 'never answer' });
    const asked = reads.queryIndexUntilFound({ partition }, { signal: asking.signal });
    await silent.hit;
    asking.abort(new Error('that is enough'));

    // Assert
    await expect(asked).rejects.toThrow('that is enough');
    await expect(reads.queryIndexUntilFound({ partition }, { signal: before.signal })).rejects.toThrow('too early');
    expect(clock.pendingTimers).toBe(0);
    expect(bench.transport.count('Query')).toBe(2);
  });

  test('brings no more than a thousand hits', async () => {
    const partition = bench.unique('P');
    const items = Array.from({ length: 1_001 }, (_, number) => entry(partition, String(number).padStart(4, '0')));
    for (let from = 0; from < items.length; from += 100) {
      const hundred = items.slice(from, from + 100);
      await bench.truth.transactions.write(hundred.map((item) => ({ kind: 'put', label: 'any', item })));
    }

    const answer = await bench.store().index.queryIndexUntilFound({ partition });

    expect(answer).toMatchObject({ kind: 'found', attempts: 1 });
    expect(answer.kind === 'found' && answer.items).toHaveLength(1_000);
  });

  test.each([
    [{ maxAttempts: 0 }, ['maxAttempts']],
    [{ maxAttempts: 101, baseDelayMs: 10_001 }, ['maxAttempts', 'baseDelayMs']],
    [{ maxAttempts: Number.NaN, baseDelayMs: -1 }, ['maxAttempts', 'baseDelayMs']],
    [{ maxAttempts: 1.5, baseDelayMs: Infinity }, ['maxAttempts', 'baseDelayMs']],
  ])('refuses %j with all its faults', async (options, names) => {
    const refused = bench.store().index.queryIndexUntilFound({ partition: 'p' }, options);

    await expect(refused).rejects.toBeInstanceOf(ConfigurationError);
    await expect(refused).rejects.toMatchObject({ faults: names.map((name) => ({ name })) });
    expect(bench.transport.seen).toEqual([]);
  });
});

describe('recheck', () => {
  test('reads the item consistently and says whether the hit still holds', async () => {
    const partition = bench.unique('P');
    const item = entry(partition, 'a', { status: 'open' });
    await put(item);
    const { index: reads } = bench.store();
    const isOpen = ({ status }: Item): boolean => status === 'open';

    expect(await reads.recheck(item, isOpen)).toEqual({ kind: 'current', item });
    await put({ ...item, status: 'closed' });
    expect(await reads.recheck(item, isOpen)).toEqual({ kind: 'stale', item: { ...item, status: 'closed' } });
    expect(await reads.recheck({ PK: 'none', SK: 'none' }, () => true)).toEqual({ kind: 'stale', item: undefined });
    expect(bench.transport.seen[0]).toMatchObject({ operation: 'GetItem', body: { ConsistentRead: true } });
  });

  test('finds out a hit of an index that lags', async () => {
    // Arrange
    const partition = bench.unique('P');
    const item = entry(partition, 'a', { status: 'open' });
    await put(item);
    const lagging = laggingIndex(bench.store());
    await lagging.fallBehind();
    await put({ ...item, status: 'closed' });

    // Act
    const hits: (Item & ItemKey)[] = [];
    for await (const hit of lagging.query({ partition })) hits.push(hit);

    // Assert
    expect(hits).toEqual([item]);
    expect(await lagging.recheck(item, ({ status }) => status === 'open')).toMatchObject({
      kind: 'stale',
      item: { status: 'closed' },
    });
  });
});

describe('an index that lags on command', () => {
  test('answers from the past until it catches up, and is up to date before and after', async () => {
    // Arrange
    const partition = bench.unique('P');
    const lagging = laggingIndex(bench.store());
    await put(entry(partition, 'b'), entry(partition, 'ä'));

    // Act
    const before = await sortKeysOf(lagging, { partition });
    await lagging.fallBehind();
    await put(entry(partition, 'a'));
    const during = await sortKeysOf(lagging, { partition, direction: 'backward' });
    const narrowed = await sortKeysOf(lagging, { partition, sortKeyBeginsWith: 'b' });
    lagging.catchUp();
    const after = await sortKeysOf(lagging, { partition });

    // Assert
    expect([before, during, narrowed, after]).toEqual([['b', 'ä'], ['ä', 'b'], ['b'], ['a', 'b', 'ä']]);
  });

  test('holds what the index holds: items with both its keys', async () => {
    const partition = bench.unique('P');
    const { [index.sortKey]: _sort, ...halfKeyed } = entry(partition, 'half');
    await put(entry(partition, 'whole'), halfKeyed);
    const lagging = laggingIndex(bench.store());
    await lagging.fallBehind();

    expect(await sortKeysOf(lagging, { partition })).toEqual(['whole']);
    expect(await sortKeysOf(bench.store().index, { partition })).toEqual(['whole']);
  });

  test('falls behind once more, to where the table is by then', async () => {
    const partition = bench.unique('P');
    const lagging = laggingIndex(bench.store());
    await lagging.fallBehind();
    await put(entry(partition, 'a'));
    lagging.catchUp(5);
    await lagging.fallBehind();
    await put(entry(partition, 'b'));

    for (let query = 0; query < 10; query += 1) expect(await sortKeysOf(lagging, { partition })).toEqual(['a']);
  });
});

test('pattern 28: an index that lags misses what was written, the table does not, and neither keeps out a duplicate', async () => {
  // Arrange
  const address = bench.unique('EMAIL#a@x.com');
  const store = bench.store();
  const lagging = laggingIndex(store);
  const [first, second] = [entry(address, 'USER#1'), entry(address, 'USER#2')];
  await lagging.fallBehind();

  // Act
  await put(first);
  const rightAfter = await sortKeysOf(lagging, { partition: address });
  const fromTable = await store.get({ PK: first.PK, SK: first.SK });
  lagging.catchUp(2);
  const repeated = await lagging.queryIndexUntilFound({ partition: address });
  // Who decides by a query of the index that nobody has the address makes a second owner.
  await lagging.fallBehind();
  await put(second);
  lagging.catchUp();
  const owners = await sortKeysOf(lagging, { partition: address });
  const refused = await store.transactions
    .write([
      {
        kind: 'update',
        label: 'stale edit',
        key: first,
        change: { set: { status: 'x' } },
        condition: equals('status', 'open'),
      },
    ])
    .then(
      () => 'written',
      () => 'refused',
    );

  // Assert
  expect(rightAfter).toEqual([]);
  expect(fromTable).toEqual(first);
  expect(repeated).toEqual({ kind: 'found', items: [first], attempts: 3 });
  expect(owners).toEqual(['USER#1', 'USER#2']);
  // Only the condition on the table itself decides.
  expect(refused).toBe('refused');
});
