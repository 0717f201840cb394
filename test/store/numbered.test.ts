import { describe, expect, test } from 'vitest';
import { BackendError } from '../../src/errors.ts';
import { absent } from '../../src/store/conditions.ts';
import { COUNTER_LIMIT } from '../../src/store/counters/counter-value.ts';
import { counterKey } from '../../src/store/table.ts';
import { TransactionCancelledError } from '../../src/store/transactions/transaction-writer.ts';
import type { TransactionAction } from '../../src/store/transactions/transaction.ts';
import { VersionConflictError } from '../../src/store/versioned.ts';
import { useStoreBench } from '../support/store-bench.ts';
import { StoreClock } from '../support/store-clock.ts';

const bench = useStoreBench();

const TRANSACTION = 'TransactWriteItems';

/** Invoices of one book: which number each order got. */
function invoiceBook() {
  const name = bench.unique('invoices');
  const invoice =
    (order: string) =>
    (number: number): readonly TransactionAction[] => [
      { kind: 'put', label: 'number', item: { PK: `INVOICE#${name}`, SK: String(number), order }, condition: absent() },
    ];
  return {
    name,
    invoice,
    /** The same, and an order that has its invoice refuses a second one. */
    once:
      (order: string) =>
      (number: number): readonly TransactionAction[] => [
        ...invoice(order)(number),
        { kind: 'put', label: 'record', item: { PK: `ORDER#${name}`, SK: order, number }, condition: absent() },
      ],
    /** By number, from 1, without an end mark. */
    async orders(): Promise<unknown[]> {
      const found: unknown[] = [];
      for await (const item of bench.truth.scan()) {
        if (item['PK'] === `INVOICE#${name}`) found[Number(item['SK']) - 1] = item['order'];
      }
      return found;
    },
  };
}

/** A store whose waits end at once and move its clock, so that deadlines come without waiting. */
function jumpingStore() {
  return bench.store({ clock: new StoreClock({ waits: 'jump' }), random: () => 0.999 });
}

describe('numbered', () => {
  test('takes a number together with what it numbers', async () => {
    const { name, invoice, orders } = invoiceBook();
    const { counters } = bench.store();
    expect(await counters.numbered(name, invoice('a'))).toBe(1);
    expect(await counters.numbered(name, invoice('b'))).toBe(2);
    expect(await counters.read(name)).toBe(2);
    expect(await orders()).toEqual(['a', 'b']);
  });

  test('goes on from where a counter was created', async () => {
    const { name, invoice } = invoiceBook();
    const { counters } = bench.store();
    await counters.create(name, 0);
    expect(await counters.numbered(name, invoice('a'))).toBe(1);
    const { name: other, invoice: otherInvoice } = invoiceBook();
    await counters.create(other, -1);
    expect(await counters.numbered(other, otherInvoice('a'))).toBe(0);
  });

  test('builds the transaction anew when another was faster, without a second read', async () => {
    // Arrange
    const { name, invoice, orders } = invoiceBook();
    const first = bench.transport.fault(TRANSACTION, { kind: 'hold' });

    // Act
    const slower = bench.store().counters.numbered(name, invoice('slower'));
    await first.hit;
    await bench.truth.counters.numbered(name, invoice('faster'));
    await first.release();

    // Assert
    expect(await slower).toBe(2);
    expect(await orders()).toEqual(['faster', 'slower']);
    expect(bench.transport.count('GetItem')).toBe(1);
  });

  test('takes no number when what it numbers is refused', async () => {
    // Arrange
    const { name, once, orders } = invoiceBook();
    const { counters } = bench.store();
    await counters.numbered(name, once('a'));

    // Act
    const again = await counters.numbered(name, once('a')).catch((error: unknown) => error);

    // Assert
    if (!(again instanceof TransactionCancelledError)) throw new Error('not refused');
    expect(again.failures.map(({ label }) => label)).toEqual(['record']);
    expect(await counters.numbered(name, once('b'))).toBe(2);
    expect(await orders()).toEqual(['a', 'b']);
  });

  test('knows its own refusal by place, whatever the actions are called', async () => {
    // Arrange: the second action has the label of the first, and refuses.
    const { name, invoice } = invoiceBook();
    const actions = (): readonly TransactionAction[] => invoice('a')(1);
    const { counters } = bench.store();
    await counters.numbered(name, actions);

    // Act
    const again = counters.numbered(name, actions);

    // Assert
    await expect(again).rejects.toBeInstanceOf(TransactionCancelledError);
    expect(bench.transport.count(TRANSACTION)).toBe(2);
  });

  test('has no number after the last one', async () => {
    const { name, invoice } = invoiceBook();
    const { counters } = bench.store();
    await counters.create(name, COUNTER_LIMIT);
    await expect(counters.numbered(name, invoice('a'))).rejects.toMatchObject({ code: 'COUNTER_VALUE' });
  });

  test.each([0, -1, 1.5, 300_001, Number.NaN])('refuses a deadline of %d ms', async (deadlineMs) => {
    const numbered = bench.store().counters.numbered('n', () => [], { deadlineMs });
    await expect(numbered).rejects.toMatchObject({ faults: [{ name: 'deadlineMs' }] });
  });

  test('gives up at the deadline when another is always faster', async () => {
    // Arrange
    const { name, invoice, orders } = invoiceBook();
    const reasons = ['ConditionalCheckFailed', 'None'];
    const refusal = { kind: 'refuse', name: 'TransactionCanceledException', reasons } as const;
    bench.transport.fault(TRANSACTION, refusal, { times: 1_000 });

    // Act
    const numbered = jumpingStore().counters.numbered(name, invoice('a'), { deadlineMs: 2_000 });
    const outcome = await numbered.catch((error: unknown) => error);

    // Assert
    expect(outcome).toBeInstanceOf(VersionConflictError);
    expect(bench.transport.count(TRANSACTION)).toBeLessThan(50);
    expect(await orders()).toEqual([]);
  });

  test('ends the wait between tries when it is aborted', async () => {
    // Arrange
    const { name, invoice, orders } = invoiceBook();
    const stop = new AbortController();
    const first = bench.transport.fault(TRANSACTION, { kind: 'hold' });

    // Act
    const numbered = bench.store().counters.numbered(name, invoice('slower'), { signal: stop.signal });
    const outcome = numbered.catch((error: unknown) => error);
    await first.hit;
    await bench.truth.counters.numbered(name, invoice('faster'));
    stop.abort(new Error('enough'));
    await first.release();

    // Assert
    expect(await outcome).toMatchObject({ message: 'enough' });
    expect(await orders()).toEqual(['faster']);
  });
});

describe('a number whose answer was lost', () => {
  test.each(['lose the answer', 'lose the request', 'deliver late', 'send twice'] as const)(
    'is taken once: %s',
    async (kind) => {
      // Arrange
      const { name, invoice, orders } = invoiceBook();
      const { counters } = bench.store();
      const rule = bench.transport.fault(TRANSACTION, { kind });

      // Act
      const numbers = [await counters.numbered(name, invoice('a'))];
      await rule.release();
      numbers.push(await counters.numbered(name, invoice('b')));

      // Assert
      expect(numbers).toEqual([1, 2]);
      expect(await orders()).toEqual(['a', 'b']);
    },
  );

  test('is known again by its nonce when the server has forgotten the request', async () => {
    // Arrange
    const { name, invoice, orders } = invoiceBook();
    bench.transport.fault(TRANSACTION, { kind: 'lose the answer' });
    bench.transport.fault(TRANSACTION, { kind: 'under another token' });

    // Act
    const number = await bench.store().counters.numbered(name, invoice('a'));

    // Assert
    expect(number).toBe(1);
    expect(await orders()).toEqual(['a']);
  });

  test.each(['lose the answer', 'lose the request'] as const)(
    'is told apart from those that others take meanwhile: %s',
    async (kind) => {
      // Arrange
      const { name, invoice, orders } = invoiceBook();
      bench.transport.fault(TRANSACTION, { kind });
      const repeat = bench.transport.fault(TRANSACTION, { kind: 'hold' });

      // Act
      const ours = bench.store().counters.numbered(name, invoice('ours'));
      await repeat.hit;
      await bench.truth.counters.numbered(name, invoice('theirs'));
      await repeat.release();

      // Assert
      const isFirst = kind === 'lose the answer';
      expect(await ours).toBe(isFirst ? 1 : 2);
      expect(await orders()).toEqual(isFirst ? ['ours', 'theirs'] : ['theirs', 'ours']);
    },
  );

  test.each([
    ['the machine slept', (clock: StoreClock) => clock.moveWallClock(300_000)],
    ['the process was stopped', (clock: StoreClock) => clock.stallBeforeTimers(300_000)],
  ])('is ambiguous when only the token could tell, and may be forgotten: %s', async (_title, sleepLong) => {
    // Arrange
    const { name, invoice, orders } = invoiceBook();
    const clock = new StoreClock();
    bench.transport.fault(TRANSACTION, { kind: 'lose the request' });
    const repeat = bench.transport.fault(TRANSACTION, { kind: 'hold' });

    // Act
    const ours = bench.store({ clock }).counters.numbered(name, invoice('ours'));
    const outcome = ours.catch((error: unknown) => error);
    await repeat.hit;
    await bench.truth.counters.numbered(name, invoice('theirs'));
    sleepLong(clock);
    await repeat.release();

    // Assert
    expect(await outcome).toBeInstanceOf(BackendError);
    expect(await outcome).toMatchObject({ reason: 'ambiguous' });
    expect(await orders()).toEqual(['theirs']);
  });

  test('is found by its nonce at a deadline without any answer', async () => {
    // Arrange
    const { name, invoice, orders } = invoiceBook();
    bench.transport.fault(TRANSACTION, { kind: 'lose the answer' }, { times: 1_000 });

    // Act
    const number = await jumpingStore().counters.numbered(name, invoice('a'));

    // Assert
    expect(number).toBe(1);
    expect(await orders()).toEqual(['a']);
  });

  test('is ambiguous at a deadline without any answer when it may still arrive, and then leaves no gap', async () => {
    // Arrange
    const { name, once, orders } = invoiceBook();
    const { counters } = jumpingStore();
    const late = bench.transport.fault(TRANSACTION, { kind: 'deliver late' }, { times: 1_000 });

    // Act
    const outcome = await counters.numbered(name, once('a')).catch((error: unknown) => error);
    bench.transport.heal();
    const arrivesLast = await bench.truth.counters.numbered(name, once('b'));
    await late.release();
    const again = await counters.numbered(name, once('a'));

    // Assert
    expect(outcome).toMatchObject({ code: 'BACKEND', reason: 'ambiguous' });
    expect([arrivesLast, again]).toEqual([1, 2]);
    expect(await orders()).toEqual(['b', 'a']);
  });

  test('is not said to be ambiguous for a read that failed, but for what it is', async () => {
    // Arrange
    const { name, invoice } = invoiceBook();
    bench.transport.fault(TRANSACTION, { kind: 'lose the answer' }, { times: 1_000 });
    bench.transport.fault('GetItem', { kind: 'refuse', name: 'AccessDeniedException' }, { nth: 2, times: 9 });

    // Act
    const outcome = await jumpingStore()
      .counters.numbered(name, invoice('a'))
      .catch((error: unknown) => error);

    // Assert
    expect(outcome).toMatchObject({ code: 'BACKEND', reason: 'ambiguous' });
  });
});

test('a counter of others that holds no number is numbered by nobody', async () => {
  const { name, invoice, orders } = invoiceBook();
  const item = { ...counterKey(name), value: 'seven' };
  await bench.truth.transactions.write([{ kind: 'put', label: 'theirs', item }]);
  await expect(bench.store().counters.numbered(name, invoice('a'))).rejects.toMatchObject({ code: 'COUNTER_VALUE' });
  expect(await orders()).toEqual([]);
});
