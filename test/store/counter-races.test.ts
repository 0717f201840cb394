import { expect, test } from 'vitest';
import { seededRandom, type Random } from '../../src/clock.ts';
import { absent } from '../../src/store/conditions.ts';
import type { Store } from '../../src/store/store.ts';
import type { TransactionAction } from '../../src/store/transactions/transaction.ts';
import { useStoreBench } from '../support/store-bench.ts';

const bench = useStoreBench();

const RACERS = 64;

/** Thousands of requests, on machines that are busy with other tests. */
const RACE = { timeout: 60_000 };

const racers = (): number[] => Array.from({ length: RACERS }, (_none, index) => index);

/** Waits spread as in life, but short: whether all get through does not depend on their length. */
function shortWaits(): Random {
  const random = seededRandom(64);
  return () => random() / 20;
}

/** With time enough for a busy machine: an answer that comes too late is one that was lost. */
const racingStore = (): Store =>
  bench.store({ random: shortWaits(), connectTimeoutMs: 60_000, requestTimeoutMs: 60_000 });

test('64 takes at once of a counter that holds 40 take 40, and never lead below the floor', RACE, async () => {
  // Arrange
  const name = bench.unique('stock');
  const { counters } = racingStore();
  await counters.create(name, 40);

  // Act
  const answers = await Promise.all(racers().map(() => counters.add(name, -1, { floor: 0 })));

  // Assert
  const taken = answers.filter(({ kind }) => kind === 'added').map(({ value }) => value);
  expect(taken.toSorted((left, right) => left - right)).toEqual(Array.from({ length: 40 }, (_none, index) => index));
  expect(answers.filter(({ kind }) => kind === 'refused')).toEqual(
    Array.from({ length: RACERS - 40 }, () => ({ kind: 'refused', value: 0 })),
  );
  expect(await counters.read(name)).toBe(0);
});

test('64 takes of different size leave exactly what was not taken', RACE, async () => {
  const name = bench.unique('stock');
  const { counters } = racingStore();
  await counters.create(name, 100);
  const sizes = racers().map((index) => (index % 5) + 1);
  const answers = await Promise.all(sizes.map((size) => counters.add(name, -size, { floor: 0 })));
  const taken = sizes.reduce((sum, size, index) => sum + (answers[index]?.kind === 'added' ? size : 0), 0);
  expect(answers.every(({ value }) => value >= 0)).toBe(true);
  expect(await counters.read(name)).toBe(100 - taken);
  // Whoever was refused wanted more than there was.
  expect(100 - taken).toBeLessThan(5);
});

test('64 numbers taken at once are all different', RACE, async () => {
  const name = bench.unique('sequence');
  const { counters } = racingStore();
  bench.transport.fault('UpdateItem', { kind: 'lose the answer' }, { nth: 10, times: 20 });
  const numbers = await Promise.all(racers().map(() => counters.next(name)));
  expect(new Set(numbers).size).toBe(RACERS);
  // The gaps are the answers that were lost.
  expect(await counters.read(name)).toBe(RACERS + 20);
});

test.each([
  ['in calm', 0],
  ['while answers and requests are lost', 30],
])('64 invoices at once are numbered without a gap %s', RACE, async (_title, losses) => {
  // Arrange
  const name = bench.unique('invoices');
  const { counters } = racingStore();
  const invoice =
    (order: number) =>
    (number: number): readonly TransactionAction[] => [
      {
        kind: 'put',
        label: 'invoice',
        item: { PK: `INVOICE#${name}`, SK: String(number), order },
        condition: absent(),
      },
    ];
  if (losses > 0) {
    bench.transport.fault('TransactWriteItems', { kind: 'lose the answer' }, { nth: 3, times: losses });
    bench.transport.fault('TransactWriteItems', { kind: 'lose the request' }, { nth: 80, times: losses });
  }

  // Act
  const options = { deadlineMs: 60_000 };
  const numbers = await Promise.all(racers().map((order) => counters.numbered(name, invoice(order), options)));

  // Assert
  expect(numbers.toSorted((left, right) => left - right)).toEqual(racers().map((index) => index + 1));
  const stored = racers().map((index) => bench.truth.get({ PK: `INVOICE#${name}`, SK: String(index + 1) }));
  const orders = (await Promise.all(stored)).map((item) => Number(item?.['order']));
  // Each order has the invoice whose number it was told, and no second one.
  expect(orders).toEqual(racers().map((index) => numbers.indexOf(index + 1)));
  expect(await bench.truth.get({ PK: `INVOICE#${name}`, SK: String(RACERS + 1) })).toBeUndefined();
});

test('64 deliveries at once of 16 messages count 16 times, on one item and on shards', RACE, async () => {
  // Arrange
  const name = bench.unique('clicks');
  const { counters } = racingStore();
  bench.transport.fault('TransactWriteItems', { kind: 'lose the answer' }, { nth: 5, times: 30 });

  // Act
  const keys = racers().map((index) => `m${String(index % 16)}`);
  const plain = await Promise.all(keys.map((key) => counters.addOnce(name, 1, { key })));
  const sharded = await Promise.all(keys.map((key) => counters.addOnce(`${name}/s`, 1, { key, shards: 4 })));

  // Assert
  expect(plain.filter(({ kind }) => kind === 'added')).toHaveLength(16);
  expect(sharded.filter(({ kind }) => kind === 'added')).toHaveLength(16);
  expect(await counters.read(name)).toBe(16);
  expect(await counters.sharded(`${name}/s`, 4).read()).toBe(16);
});

test('64 that create one counter: one does, and its value stands', RACE, async () => {
  const name = bench.unique('new');
  const { counters } = racingStore();
  const answers = await Promise.all(racers().map((index) => counters.create(name, index)));
  expect(answers.filter(Boolean)).toHaveLength(1);
  expect(await counters.read(name)).toBe(answers.indexOf(true));
});

test('pattern 24: 50 views from 10 visitors count 50, an invoice gets number 1, and one ticket is sold once', async () => {
  // Arrange
  const { counters } = racingStore();
  const [views, invoices, tickets] = ['views', 'invoice', 'tickets'].map((name) => bench.unique(name));
  if (views === undefined || invoices === undefined || tickets === undefined) throw new Error('no names');
  await counters.create(tickets, 1);

  // Act
  const visitor = async (): Promise<void> => {
    for (let view = 0; view < 5; view += 1) await counters.add(views, 1);
  };
  await Promise.all(Array.from({ length: 10 }, visitor));
  const number = await counters.next(invoices);
  const sales = [await counters.add(tickets, -1, { floor: 0 }), await counters.add(tickets, -1, { floor: 0 })];

  // Assert
  expect(await counters.read(views)).toBe(50);
  expect(number).toBe(1);
  expect(sales).toEqual([
    { kind: 'added', value: 0 },
    { kind: 'refused', value: 0 },
  ]);
});
