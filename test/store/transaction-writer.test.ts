import { describe, expect, test } from 'vitest';
import { BackendError, ConfigurationError } from '../../src/errors.ts';
import { absent, equals } from '../../src/store/conditions.ts';
import { plus } from '../../src/store/expressions.ts';
import type { Store } from '../../src/store/store.ts';
import type { TransactionAction } from '../../src/store/transactions/transaction.ts';
import { TransactionCancelledError } from '../../src/store/transactions/transaction-writer.ts';
import { useStoreBench } from '../support/store-bench.ts';
import { StoreClock } from '../support/store-clock.ts';

const bench = useStoreBench();

const OPERATION = 'TransactWriteItems';

interface Counter {
  readonly key: { PK: string; SK: string };
  /** Adds one without any condition: shows each application. */
  readonly addOne: TransactionAction;
  value(): Promise<unknown>;
}

function counter(): Counter {
  const key = { PK: bench.unique('COUNTER'), SK: 'COUNTER' };
  return {
    key,
    addOne: { kind: 'update', label: 'counter', key, change: { set: { value: plus(1, 0) } } },
    value: async () => (await bench.truth.get(key))?.['value'],
  };
}

/** The tokens of the transactions that were sent, in order. */
function tokens(): unknown[] {
  return bench.transport.seen
    .filter(({ operation }) => operation === OPERATION)
    .map(({ body }) => body['ClientRequestToken']);
}

async function failureOf(write: Promise<void>): Promise<unknown> {
  return write.then(
    () => undefined,
    (error: unknown) => error,
  );
}

/** A store whose waits end at once and move its clock, so that deadlines come without waiting. */
function jumpingStore(): Store {
  return bench.store({ clock: new StoreClock({ waits: 'jump' }), random: () => 0.999 });
}

describe('a transaction over a limit', () => {
  test.each([Number.NaN, -1, Infinity, 3_600_001, 'x', null, 5n])(
    'of its deadline sends nothing: %s',
    async (limit) => {
      // Arrange
      const deadlineMs = limit as number;

      // Act
      const error = await failureOf(bench.store().transactions.write([counter().addOne], { deadlineMs }));

      // Assert
      expect(error).toMatchObject({ code: 'CONFIGURATION', faults: [{ name: 'deadlineMs' }] });
      expect(bench.transport.seen).toEqual([]);
    },
  );

  test('of its deadline is not one that has no time for a second try', async () => {
    const { addOne, value } = counter();
    await bench.store().transactions.write([addOne], { deadlineMs: 0 });
    expect(await value()).toBe(1);
  });

  test('is refused before anything is sent', async () => {
    // Arrange
    const { addOne } = counter();

    // Act
    const write = bench.store().transactions.write([addOne, { ...addOne, label: 'again' }]);

    // Assert
    await expect(write).rejects.toBeInstanceOf(ConfigurationError);
    expect(bench.transport.count(OPERATION)).toBe(0);
  });
});

describe('a refused transaction', () => {
  test('names the actions that refused by label and brings plain items along', async () => {
    // Arrange
    const [stock, order, other] = [counter(), counter(), counter()];
    await bench.truth.transactions.write([
      { kind: 'put', label: 'stock', item: { ...stock.key, amount: 2, tags: ['a', { deep: true }] } },
    ]);

    // Act
    const write = bench
      .store()
      .transactions.write([
        other.addOne,
        { kind: 'put', label: 'stock line', item: stock.key, condition: absent() },
        { kind: 'check', label: 'order', key: order.key, condition: equals('state', 'open') },
      ]);

    // Assert
    const error = await failureOf(write);
    expect(error).toBeInstanceOf(TransactionCancelledError);
    expect(error).toMatchObject({
      code: 'TRANSACTION_CANCELLED',
      retryable: false,
      failures: [
        {
          index: 1,
          label: 'stock line',
          code: 'ConditionalCheckFailed',
          item: { ...stock.key, amount: 2, tags: ['a', { deep: true }] },
        },
        { index: 2, label: 'order', code: 'ConditionalCheckFailed', item: undefined },
      ],
    });
    expect(await other.value()).toBeUndefined();
  });

  test('finds the failed condition of one label only', async () => {
    // Arrange
    const { key } = counter();
    const action: TransactionAction = { kind: 'check', label: 'fence', key, condition: equals('a', 1) };

    // Act
    const error = await failureOf(bench.store().transactions.write([action]));

    // Assert
    if (!(error instanceof TransactionCancelledError)) throw new Error('not refused');
    expect([error.conditionFailure('fence')?.index, error.conditionFailure('other')]).toEqual([0, undefined]);
  });

  test('is not tried again when a condition failed, even beside a conflict', async () => {
    // Arrange
    const { addOne, key } = counter();
    const reasons = ['ConditionalCheckFailed', 'TransactionConflict'];
    bench.transport.fault(OPERATION, { kind: 'refuse', name: 'TransactionCanceledException', reasons });
    const second: TransactionAction = { kind: 'delete', label: 'second', key: { ...key, SK: 'second' } };

    // Act
    const error = await failureOf(bench.store().transactions.write([addOne, second]));

    // Assert
    expect(error).toMatchObject({ retryable: false, failures: [{ label: 'counter' }, { label: 'second' }] });
    expect(bench.transport.count(OPERATION)).toBe(1);
  });

  test('without reasons is not tried again', async () => {
    // Arrange
    bench.transport.fault(OPERATION, { kind: 'refuse', name: 'TransactionCanceledException' });

    // Act
    const error = await failureOf(bench.store().transactions.write([counter().addOne]));

    // Assert
    expect(error).toMatchObject({ code: 'TRANSACTION_CANCELLED', retryable: false, failures: [] });
  });

  test('that was invalid is not tried again', async () => {
    // Arrange
    bench.transport.fault(OPERATION, { kind: 'refuse', name: 'ValidationException' }, { times: 5 });

    // Act
    const error = await failureOf(bench.store().transactions.write([counter().addOne]));

    // Assert
    expect(error).toMatchObject({ code: 'BACKEND', reason: 'validation', retryable: false });
    expect(bench.transport.count(OPERATION)).toBe(1);
  });
});

describe('a conflict', () => {
  test.each(['TransactionConflict', 'ThrottlingError', 'ProvisionedThroughputExceeded'])(
    '%s is tried again with a fresh token each time',
    async (reason) => {
      // Arrange
      const { addOne, value } = counter();
      const refuse = { kind: 'refuse', name: 'TransactionCanceledException', reasons: [reason] } as const;
      bench.transport.fault(OPERATION, refuse, { times: 2 });

      // Act
      await bench.store().transactions.write([addOne]);

      // Assert
      expect(new Set(tokens()).size).toBe(3);
      expect(await value()).toBe(1);
    },
  );

  test('that lasts until the deadline is reported with its reasons', async () => {
    // Arrange
    const store = jumpingStore();
    const { addOne } = counter();
    const refuse = { kind: 'refuse', name: 'TransactionCanceledException', reasons: ['TransactionConflict'] } as const;
    bench.transport.fault(OPERATION, refuse, { times: 1_000 });
    const startMs = store.clock.monotonicMs();

    // Act
    const error = await failureOf(store.transactions.write([addOne], { deadlineMs: 500 }));

    // Assert
    expect(error).toMatchObject({
      code: 'TRANSACTION_CANCELLED',
      retryable: true,
      failures: [{ code: 'TransactionConflict' }],
    });
    expect(store.clock.monotonicMs() - startMs).toBeLessThan(500);
    expect(bench.transport.count(OPERATION)).toBeGreaterThan(2);
  });

  test('is not waited out once the caller gives up', async () => {
    // Arrange
    const store = bench.store({ clock: new StoreClock(), random: () => 0.5 });
    const caller = new AbortController();
    const refuse = { kind: 'refuse', name: 'TransactionCanceledException', reasons: ['TransactionConflict'] } as const;
    bench.transport.fault(OPERATION, refuse, { times: 1_000 });
    caller.abort();

    // Act
    const error = await failureOf(store.transactions.write([counter().addOne], { signal: caller.signal }));

    // Assert
    expect(error).toBeInstanceOf(TransactionCancelledError);
    expect(bench.transport.count(OPERATION)).toBe(1);
  });
});

describe('a transaction without an answer', () => {
  test('that was applied is repeated with the same token and applied once', async () => {
    // Arrange
    const { addOne, value } = counter();
    bench.transport.fault(OPERATION, { kind: 'lose the answer' }, { times: 2 });

    // Act
    await bench.store().transactions.write([addOne]);

    // Assert
    expect([tokens().length, new Set(tokens()).size]).toEqual([3, 1]);
    expect(await value()).toBe(1);
  });

  test('that was not applied is repeated with the same token and applied once', async () => {
    // Arrange
    const { addOne, value } = counter();
    bench.transport.fault(OPERATION, { kind: 'lose the request' }, { times: 2 });

    // Act
    await bench.store().transactions.write([addOne]);

    // Assert
    expect([tokens().length, new Set(tokens()).size]).toEqual([3, 1]);
    expect(await value()).toBe(1);
  });

  test('that the network sent twice is applied once', async () => {
    // Arrange
    const { addOne, value } = counter();
    bench.transport.fault(OPERATION, { kind: 'send twice' });

    // Act
    await bench.store().transactions.write([addOne]);

    // Assert
    expect(await value()).toBe(1);
  });

  test('keeps its token through a later conflict, so that its late arrival is not a second application', async () => {
    // Arrange
    const { addOne, value } = counter();
    const late = bench.transport.fault(OPERATION, { kind: 'deliver late' });
    const refuse = { kind: 'refuse', name: 'TransactionCanceledException', reasons: ['TransactionConflict'] } as const;
    bench.transport.fault(OPERATION, refuse);

    // Act
    await bench.store().transactions.write([addOne]);
    await late.release();

    // Assert
    expect(await value()).toBe(1);
  });

  test('is reported as ambiguous at the deadline, not as refused, when only conflicts followed', async () => {
    // Arrange
    const store = jumpingStore();
    const { addOne, value } = counter();
    bench.transport.fault(OPERATION, { kind: 'lose the answer' });
    const refuse = { kind: 'refuse', name: 'TransactionCanceledException', reasons: ['TransactionConflict'] } as const;
    bench.transport.fault(OPERATION, refuse, { times: 1_000 });

    // Act
    const error = await failureOf(store.transactions.write([addOne], { deadlineMs: 500 }));

    // Assert
    expect(error).toBeInstanceOf(BackendError);
    expect(error).toMatchObject({ reason: 'ambiguous', retryable: true });
    expect(await value()).toBe(1);
  });

  test('is reported as ambiguous at the deadline when only throttling followed', async () => {
    // Arrange
    const store = jumpingStore();
    const { addOne, value } = counter();
    bench.transport.fault(OPERATION, { kind: 'lose the answer' });
    bench.transport.fault(OPERATION, { kind: 'refuse', name: 'ThrottlingException' }, { times: 1_000 });

    // Act
    const error = await failureOf(store.transactions.write([addOne], { deadlineMs: 500 }));

    // Assert
    expect(error).toMatchObject({ code: 'BACKEND', reason: 'ambiguous' });
    expect(await value()).toBe(1);
  });

  test('is reported as ambiguous at the deadline when the server froze', async () => {
    // Arrange
    const store = bench.store({ clock: new StoreClock({ waits: 'jump' }), random: () => 0.999, requestTimeoutMs: 20 });
    bench.transport.fault(OPERATION, { kind: 'never answer' }, { times: 1_000 });

    // Act
    const error = await failureOf(store.transactions.write([counter().addOne], { deadlineMs: 100 }));

    // Assert
    expect(error).toMatchObject({ code: 'BACKEND', reason: 'ambiguous', retryable: true });
  });
});

describe('a transaction that was throttled or still is in progress', () => {
  test('is throttled for good at the deadline when no try was without an answer', async () => {
    // Arrange
    const store = jumpingStore();
    bench.transport.fault(OPERATION, { kind: 'refuse', name: 'ThrottlingException' }, { times: 1_000 });

    // Act
    const error = await failureOf(store.transactions.write([counter().addOne], { deadlineMs: 200 }));

    // Assert
    expect(error).toMatchObject({ code: 'BACKEND', reason: 'throttled', retryable: true });
  });

  test('is waited for under its own token until it is done', async () => {
    // Arrange
    const { addOne, value } = counter();
    bench.transport.fault(OPERATION, { kind: 'lose the answer' });
    bench.transport.fault(OPERATION, { kind: 'refuse', name: 'TransactionInProgressException' }, { times: 3 });

    // Act
    await bench.store().transactions.write([addOne]);

    // Assert
    expect([tokens().length, new Set(tokens()).size]).toEqual([5, 1]);
    expect(await value()).toBe(1);
  });

  test.each([500, 503])('a server error %i is repeated under the same token', async (status) => {
    // Arrange
    const { addOne, value } = counter();
    bench.transport.fault(OPERATION, { kind: 'refuse', name: 'InternalServerError', status }, { times: 2 });

    // Act
    await bench.store().transactions.write([addOne]);

    // Assert
    expect([tokens().length, new Set(tokens()).size]).toEqual([3, 1]);
    expect(await value()).toBe(1);
  });
});

test('a hundred actions are applied together', async () => {
  // Arrange
  const counters = Array.from({ length: 100 }, counter);

  // Act
  await bench
    .store()
    .transactions.write(counters.map(({ addOne }, index) => ({ ...addOne, label: `counter ${String(index)}` })));

  // Assert
  expect(await Promise.all(counters.map(({ value }) => value()))).toEqual(counters.map(() => 1));
});
