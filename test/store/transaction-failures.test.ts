import fc from 'fast-check';
import { afterEach, describe, expect, test } from 'vitest';
import { systemClock } from '../../src/clock.ts';
import { BackendError } from '../../src/errors.ts';
import { createDocumentClient } from '../../src/store/client.ts';
import { absent, any, atLeast, equals } from '../../src/store/conditions.ts';
import { plus } from '../../src/store/expressions.ts';
import { spend } from '../../src/store/guarded-change.ts';
import { fenceAndFinish, fenceAndRenew, fenceCheck } from '../../src/store/leases/leases.ts';
import type { HeldLease } from '../../src/store/leases/held-lease.ts';
import type { Item, ItemKey } from '../../src/store/table.ts';
import type { ActionRole, TransactionAction } from '../../src/store/transactions/transaction.ts';
import { TransactionCancelledError, type FailedAction } from '../../src/store/transactions/transaction-failures.ts';
import { createTransactionWriter } from '../../src/store/transactions/transaction-writer.ts';
import { LOCAL_ACCESS, useStoreBench } from '../support/store-bench.ts';

const bench = useStoreBench();

const OPERATION = 'TransactWriteItems';

function freshKey(name = 'TX'): ItemKey {
  return { PK: bench.unique(name), SK: 'S' };
}

async function stored(attributes: Item): Promise<ItemKey & Item> {
  const item = { ...freshKey(), ...attributes };
  await bench.truth.items.create(item);
  return item;
}

async function heldLease(): Promise<HeldLease> {
  const answer = await bench.truth.leases().tryAcquire(bench.unique('lock'), 'test');
  if (answer.kind !== 'acquired') throw new Error('busy');
  held.push(answer.lease);
  return answer.lease;
}

const held: HeldLease[] = [];

afterEach(() => {
  for (const lease of held.splice(0)) lease.end();
});

async function refusalOf(write: Promise<void>): Promise<TransactionCancelledError> {
  const error = await failureOf(write);
  if (error instanceof TransactionCancelledError) return error;
  throw new Error('not refused', { cause: error });
}

async function failureOf(write: Promise<void>): Promise<unknown> {
  return write.then(
    () => undefined,
    (error: unknown) => error,
  );
}

/**
 * A writer on the real backend that finds one action in conflict with another transaction. Local backends write one
 * after the other, so that they never see a conflict by themselves; all other reasons are the backend's own.
 */
function writerWithConflictAt(index: number) {
  const client = createDocumentClient({ ...LOCAL_ACCESS, endpoint: bench.backendEndpoint, maxAttempts: 1 });
  client.middlewareStack.add(
    (next) => async (args) => {
      try {
        return await next(args);
      } catch (error) {
        if (error instanceof Error && 'CancellationReasons' in error && Array.isArray(error.CancellationReasons)) {
          error.CancellationReasons[index] = { Code: 'TransactionConflict' };
        }
        throw error;
      }
    },
    { step: 'initialize', name: 'conflict' },
  );
  return createTransactionWriter({ client, tableName: bench.truth.tableName, clock: systemClock, random: () => 0 });
}

test('L28: several failed actions are reported together, by label, with their stored items as plain values', async () => {
  // Arrange
  const lease = await heldLease();
  const sentinel = await stored({ ref: { PK: 'USER#alice' }, tags: new Set(['a']) });
  const order = await stored({ version: 8, lines: [{ sku: 'w', quantity: 2 }] });
  const counter = freshKey();

  // Act
  const error = await refusalOf(
    writerWithConflictAt(3).write([
      fenceCheck(lease),
      { kind: 'put', label: 'email', role: 'unique', item: sentinel, condition: absent() },
      { kind: 'update', label: 'order', key: order, change: { set: { version: 8 } }, condition: equals('version', 7) },
      { kind: 'update', label: 'counter', key: counter, change: { set: { value: plus(1, 0) } } },
    ]),
  );

  // Assert
  const email = { index: 1, label: 'email', role: 'unique', code: 'ConditionalCheckFailed', item: sentinel };
  const stale = { index: 2, label: 'order', role: undefined, code: 'ConditionalCheckFailed', item: order };
  const conflict = { index: 3, label: 'counter', role: undefined, code: 'TransactionConflict', item: undefined };
  expect(error.failures).toEqual([email, stale, conflict]);
  expect(error.failedConditions).toEqual([email, stale]);
  expect(error.decisive).toEqual(email);
  expect(error).toMatchObject({
    isUniqueViolation: true,
    isFenced: false,
    isConflict: false,
    retryable: false,
    mayBeApplied: false,
  });
  expect(error.message).toContain('email: ConditionalCheckFailed, order: ConditionalCheckFailed');
  expect(await bench.truth.get(counter)).toBeUndefined();
});

test('pattern 25: an order, its stock and the customer change together or not at all', async () => {
  // Arrange
  const customer = await stored({ orderCount: 0 });
  const stock = await stored({ stock: 3 });
  const store = bench.store();
  const orderKey = (id: string): ItemKey => ({ PK: customer.PK, SK: `ORDER#${id}` });
  const place = (id: string, quantity: number): Promise<void> => {
    const taken = spend('stock', quantity);
    return store.transactions.write([
      { kind: 'put', label: 'order', role: 'record', item: { ...orderKey(id), quantity }, condition: absent() },
      { kind: 'update', label: 'stock', key: stock, ...taken },
      { kind: 'update', label: 'customer', key: customer, change: { set: { orderCount: plus(1, 0) } } },
    ]);
  };

  // Act
  await place('o1', 2);
  const tooMany = await refusalOf(place('o2', 5));
  const again = await refusalOf(place('o1', 2));

  // Assert
  const left = { PK: stock.PK, SK: stock.SK, stock: 1 };
  expect(tooMany.failures).toEqual([
    { index: 1, label: 'stock', role: undefined, code: 'ConditionalCheckFailed', item: left },
  ]);
  // The order is there already: that its stock is gone by now does not make a duplicate a rejection.
  expect(again.failures.map(({ label }) => label)).toEqual(['order', 'stock']);
  expect(again.decisive).toMatchObject({ label: 'order', item: { quantity: 2 } });
  expect(await store.snapshot([stock, customer, orderKey('o1'), orderKey('o2')])).toEqual([
    left,
    { ...customer, orderCount: 1 },
    { ...orderKey('o1'), quantity: 2 },
    undefined,
  ]);
});

describe('the failure that wins', () => {
  const condition = 'ConditionalCheckFailed';
  const IN_ORDER: readonly (readonly [string, ActionRole | undefined, string])[] = [
    ['record', 'record', condition],
    ['fence', 'fence', condition],
    ['unique', 'unique', condition],
    ['other', undefined, condition],
    ['invalid', 'record', 'ValidationError'],
    ['conflict', 'fence', 'TransactionConflict'],
    ['throttled', 'unique', 'ThrottlingError'],
  ];

  function failuresBy(ranks: readonly number[]): FailedAction[] {
    return ranks.flatMap((rank, index) => {
      const [label = '', role, code = ''] = IN_ORDER[rank] ?? [];
      return label === '' ? [] : [{ index, label, role, code, item: undefined }];
    });
  }

  test('is the record, the fence, the unique value, another condition, what is wrong, a conflict, throttling', () => {
    fc.assert(
      fc.property(fc.array(fc.nat(IN_ORDER.length - 1), { minLength: 1, maxLength: 12 }), (ranks) => {
        // Act
        const error = new TransactionCancelledError(failuresBy(ranks), undefined);

        // Assert
        const best = Math.min(...ranks);
        expect(error.decisive).toEqual({ ...failuresBy([best])[0], index: ranks.indexOf(best) });
        expect([error.isFenced, error.isUniqueViolation, error.isConflict]).toEqual([
          best === 1,
          best === 2,
          best === 5,
        ]);
        expect(error.retryable).toBe(best >= 5);
        expect(error.failures.map(({ index }) => index)).toEqual(ranks.map((_, index) => index));
      }),
    );
  });

  test('is none when DynamoDB gives no reasons', () => {
    const error = new TransactionCancelledError([], undefined);
    expect([error.decisive, error.retryable, error.isConflict]).toEqual([undefined, false, false]);
  });

  test('is found by the first of several equal labels', async () => {
    // Arrange
    const [first, second] = [await stored({ n: 1 }), await stored({ n: 2 })];
    const line = (key: ItemKey): TransactionAction => ({
      kind: 'check',
      label: 'line',
      key,
      condition: atLeast('n', 9),
    });

    // Act
    const error = await refusalOf(bench.store().transactions.write([line(second), line(first)]));

    // Assert
    expect(error.conditionFailure('line')?.item).toEqual(second);
    expect(error.failures.map(({ index }) => index)).toEqual([0, 1]);
  });
});

test('each fence of a lease refuses as a fence, once the lease is no longer held', async () => {
  // Arrange
  const lease = await heldLease();
  await lease.release();
  const fences = [fenceCheck(lease), fenceAndRenew(lease, 0, 1), fenceAndFinish(lease)];
  const email = await stored({});
  const unique: TransactionAction = { kind: 'put', label: 'email', role: 'unique', item: email, condition: absent() };

  // Act
  const errors = await Promise.all(fences.map((fence) => refusalOf(bench.store().transactions.write([unique, fence]))));

  // Assert
  expect(errors.map(({ isFenced, isUniqueViolation }) => ({ isFenced, isUniqueViolation }))).toEqual(
    fences.map(() => ({ isFenced: true, isUniqueViolation: false })),
  );
});

describe('a refusal after a try without an answer', () => {
  /** The first try is applied and its answer lost; then the server has forgotten the token. */
  function loseAnswerAndToken(): void {
    bench.transport.fault(OPERATION, { kind: 'lose the answer' });
    bench.transport.fault(OPERATION, { kind: 'under another token' }, { times: 1_000 });
  }

  function order(role?: ActionRole): Extract<TransactionAction, { kind: 'put' }> {
    const item = { ...freshKey('ORDER'), nonce: bench.unique('nonce') };
    return { kind: 'put', label: 'order', item, condition: absent(), ...(role !== undefined && { role }) };
  }

  test.each([undefined, 'unique'] as const)(
    'is ambiguous, not refused, for an action with the role %s',
    async (role) => {
      // Arrange
      const action = order(role);
      loseAnswerAndToken();

      // Act
      const error = await failureOf(bench.store().transactions.write([action]));

      // Assert
      expect(error).toBeInstanceOf(BackendError);
      expect(error).toMatchObject({
        reason: 'ambiguous',
        retryable: true,
        cause: { failures: [{ item: action.item }] },
      });
      expect(await bench.truth.items.get(action.item)).toEqual(action.item);
    },
  );

  test.each(['record', 'fence'] as const)(
    'shows the item of the %s that tells, and says that it may be applied',
    async (role) => {
      // Arrange
      const action = order(role);
      loseAnswerAndToken();

      // Act
      const error = await refusalOf(bench.store().transactions.write([action]));

      // Assert
      expect(error).toMatchObject({ mayBeApplied: true, decisive: { role, item: action.item } });
      expect(error.message).toContain('may have been applied');
    },
  );

  test('is a plain refusal when the record did not refuse: it would, had we been there', async () => {
    // Arrange
    const record = order('record');
    const stock = await stored({ stock: 1 });
    const taken: TransactionAction = { kind: 'update', label: 'stock', key: stock, ...spend('stock', 2) };
    bench.transport.fault(OPERATION, { kind: 'lose the request' });

    // Act
    const error = await refusalOf(bench.store().transactions.write([record, taken]));

    // Assert
    expect(error).toMatchObject({ mayBeApplied: false, failures: [{ label: 'stock' }] });
    expect(bench.transport.count(OPERATION)).toBe(2);
  });

  test('is ambiguous when the record itself was not asked', async () => {
    // Arrange
    bench.transport.fault(OPERATION, { kind: 'lose the request' });
    const reasons = ['TransactionConflict', 'ConditionalCheckFailed'];
    bench.transport.fault(OPERATION, { kind: 'refuse', name: 'TransactionCanceledException', reasons });

    // Act & Assert
    expect(await failureOf(bench.store().transactions.write([order('record'), order()]))).toMatchObject({
      code: 'BACKEND',
      reason: 'ambiguous',
    });
  });

  test('is ambiguous when no reasons are given', async () => {
    // Arrange
    bench.transport.fault(OPERATION, { kind: 'lose the request' });
    bench.transport.fault(OPERATION, { kind: 'refuse', name: 'TransactionCanceledException' });

    // Act & Assert
    expect(await failureOf(bench.store().transactions.write([order('record')]))).toMatchObject({ reason: 'ambiguous' });
  });

  test.each(['AccessDeniedException', 'ValidationException', 'ResourceNotFoundException'])(
    'is ambiguous when all that follows is %s',
    async (name) => {
      // Arrange
      bench.transport.fault(OPERATION, { kind: 'lose the answer' });
      bench.transport.fault(OPERATION, { kind: 'refuse', name });

      // Act & Assert
      expect(await failureOf(bench.store().transactions.write([order()]))).toMatchObject({ reason: 'ambiguous' });
    },
  );

  test('is for the caller to read who knows its own nonce', async () => {
    // Arrange
    const [ours, taken] = [order(), order()];
    await bench.truth.items.create(taken.item);
    const wasApplied = (action: typeof ours) => (refusal: TransactionCancelledError) =>
      refusal.conditionFailure('order')?.item?.['nonce'] === action.item['nonce'];
    const stranger = { ...taken, item: { ...taken.item, nonce: 'other' } };

    // Act
    loseAnswerAndToken();
    await bench.store().transactions.write([ours], { wasApplied: wasApplied(ours) });
    bench.transport.heal();
    bench.transport.fault(OPERATION, { kind: 'lose the request' });
    const error = await refusalOf(bench.store().transactions.write([stranger], { wasApplied: wasApplied(stranger) }));

    // Assert
    expect(error).toMatchObject({ mayBeApplied: false, decisive: { item: taken.item } });
  });

  test('does not ask the caller when every try was answered', async () => {
    // Arrange
    const taken = order();
    await bench.truth.items.create(taken.item);

    // Act & Assert
    const write = bench.store().transactions.write([taken], { wasApplied: () => true });
    expect(await refusalOf(write)).toMatchObject({ mayBeApplied: false });
  });
});

describe('a transaction that cannot be sent', () => {
  test('is refused with each fault under the label of its action', async () => {
    // Arrange
    const key = freshKey();
    const actions: TransactionAction[] = [
      { kind: 'put', label: 'record', item: { PK: '', SK: 's', n: Number.NaN } },
      { kind: 'update', label: 'balance', key, change: {} },
      { kind: 'update', label: 'stock', key: freshKey(), change: { set: { stock: undefined } } },
      { kind: 'check', label: 'fence', key: freshKey(), condition: any(equals('owner', undefined)) },
    ];

    // Act
    const error = await failureOf(bench.store().transactions.write(actions));

    // Assert
    expect(error).toMatchObject({
      code: 'CONFIGURATION',
      faults: [{ name: 'record' }, { name: 'record' }, { name: 'balance' }, { name: 'stock' }, { name: 'fence' }],
    });
    expect(String(error)).toContain('stock: stock: a value');
    expect(bench.transport.seen).toEqual([]);
  });
});
