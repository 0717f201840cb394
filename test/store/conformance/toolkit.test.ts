import { expect, test } from 'vitest';
import { createOnlyonceEffect } from '../../../src/store/effects/effect-call.ts';
import { absent, equals } from '../../../src/store/conditions.ts';
import { plus } from '../../../src/store/expressions.ts';
import { LeaseLostError } from '../../../src/store/leases/lease-loss.ts';
import type { LockAttempt } from '../../../src/store/locks/locks.ts';
import type { Item, ItemKey } from '../../../src/store/table.ts';
import type { TransactionAction } from '../../../src/store/transactions/transaction.ts';
import { describeOnBoth } from '../../support/store-conformance.ts';
import { StoreClock } from '../../support/store-clock.ts';

describeOnBoth('transactions', ({ store, unique }) => {
  const freshKey = (): ItemKey => ({ PK: unique('item'), SK: 'S' });
  const put = (item: ItemKey & Item): TransactionAction => ({ kind: 'put', label: 'put', item, condition: absent() });

  test('all actions or none, and a refusal names each that refused with what is stored there', async () => {
    // Arrange
    const { transactions, get } = store();
    const [there, counted, fresh, doomed] = [freshKey(), freshKey(), freshKey(), freshKey()];
    await transactions.write([put({ ...there, n: 1 }), put({ ...counted, n: 1 }), put({ ...doomed })]);
    const rest: TransactionAction[] = [
      { kind: 'update', label: 'count', key: counted, change: { set: { n: plus(1, 0) } }, condition: equals('n', 1) },
      { kind: 'delete', label: 'delete', key: doomed },
      { kind: 'put', label: 'new', item: { ...fresh } },
    ];
    const check = (n: number): TransactionAction => ({
      kind: 'check',
      label: 'check',
      key: there,
      condition: equals('n', n),
    });

    // Act
    const refused = await transactions.write([check(2), ...rest]).catch((error: unknown) => error);
    const untouched = [await get(counted), await get(doomed), await get(fresh)];
    await transactions.write([check(1), ...rest]);

    // Assert
    const failure = { index: 0, label: 'check', code: 'ConditionalCheckFailed', item: { ...there, n: 1 } };
    expect(refused).toMatchObject({ code: 'TRANSACTION_CANCELLED', retryable: false, failures: [failure] });
    expect(untouched).toEqual([{ ...counted, n: 1 }, doomed, undefined]);
    expect([await get(counted), await get(doomed), await get(fresh)]).toEqual([{ ...counted, n: 2 }, undefined, fresh]);
  });

  test('a hundred items are written at once', async () => {
    const PK = unique('many');
    const actions = Array.from({ length: 100 }, (_, n) => put({ PK, SK: `S${String(n)}`, n }));
    await store().transactions.write(actions);
    expect(await store().get({ PK, SK: 'S99' })).toEqual({ PK, SK: 'S99', n: 99 });
  });

  test('an update that does not fit its item refuses the whole transaction', async () => {
    const [there, fresh] = [freshKey(), freshKey()];
    await store().transactions.write([put({ ...there, text: 'a' })]);
    const misfit: TransactionAction = {
      kind: 'update',
      label: 'misfit',
      key: there,
      change: { set: { text: plus(1, 0) } },
    };
    const refused = await store()
      .transactions.write([put({ ...fresh }), misfit])
      .catch((error: unknown) => error);
    expect(refused).toMatchObject({ failures: [{ index: 1, label: 'misfit', code: 'ValidationError' }] });
    expect(await store().get(fresh)).toBeUndefined();
  });
});

describeOnBoth('the toolkit', ({ store, unique }) => {
  const freshKey = (): ItemKey => ({ PK: unique('item'), SK: 'S' });

  test('a version decides between two editors', async () => {
    // Arrange
    const { versioned } = store();
    const key = freshKey();
    const { item: seen } = await versioned.create({ ...key, text: 'a' });

    // Act
    const kinds = [
      (await versioned.create({ ...key, text: 'z' })).kind,
      (await versioned.save(key, { set: { text: 'b' } }, seen)).kind,
      (await versioned.save(key, { set: { text: 'c' } }, seen)).kind,
      (await versioned.remove(key, seen)).kind,
      (await versioned.update(key, ({ text }) => ({ text: `${String(text)}!` }))).kind,
      (await versioned.update(freshKey(), () => ({ text: 'x' }))).kind,
    ];

    // Assert
    expect(kinds).toEqual(['exists', 'saved', 'conflict', 'conflict', 'updated', 'absent']);
    expect(await versioned.read(key)).toMatchObject({ ...key, text: 'b!', version: 3 });
  });

  test('counters count within bounds, once per key, without gaps and over shards', async () => {
    // Arrange
    const { counters } = store();
    const [plain, once, numbers, spread] = [unique('plain'), unique('once'), unique('numbers'), unique('spread')];
    const numbered = (): Promise<number> =>
      counters.numbered(numbers, (n) => [{ kind: 'put', label: 'invoice', item: { ...freshKey(), n } }]);

    // Act
    const answers = [
      await counters.add(plain, 5),
      await counters.add(plain, -6, { floor: 0 }),
      await counters.addOnce(once, 2, { key: 'a' }),
      await counters.addOnce(once, 2, { key: 'a' }),
      await counters.addOnce(once, 2, { key: 'b', ceiling: 3 }),
    ];
    const taken = [await counters.next(numbers), await numbered(), await numbered()];
    const shards = counters.sharded(spread, 4);
    await Promise.all(['a', 'b', 'c', 'd', 'e'].map((key) => shards.add(1, key)));

    // Assert
    expect(answers.map(({ kind }) => kind)).toEqual(['added', 'refused', 'added', 'replayed', 'refused']);
    expect([await counters.read(plain), await counters.read(once), await shards.read()]).toEqual([5, 2, 5]);
    expect(taken).toEqual([1, 2, 3]);
  });

  test('a unique value has one owner at a time', async () => {
    // Arrange
    const emails = store().unique({ scope: unique('email'), attribute: 'email' });
    const [ann, bob] = [freshKey(), freshKey()];

    // Act
    const answers = [
      await emails.create({ ...ann, email: 'A@x.com' }),
      await emails.create({ ...bob, email: ' a@X.com' }),
      await emails.change(ann, 'ann@x.com'),
      await emails.create({ ...bob, email: 'a@x.com' }),
      await emails.remove(ann),
    ];

    // Assert
    expect(answers.map(({ kind }) => kind)).toEqual(['written', 'taken', 'written', 'written', 'written']);
    expect([await emails.owner('a@x.com'), await emails.owner('ann@x.com')]).toEqual([bob, undefined]);
    for await (const orphan of store().uniqueOrphans()) expect(orphan).toBeUndefined();
  });

  test('a lock is taken over when its lease is over, and its old holder writes nothing more', async () => {
    // Arrange
    const name = unique('lock');
    const key = freshKey();
    const [early, late] = [new StoreClock(), new StoreClock({ startMs: 1_800_003_600_000 })];
    const acquired = (clock: StoreClock): Promise<LockAttempt> => store({ clock }).locks().tryAcquire(name);
    const write = (n: number): TransactionAction[] => [{ kind: 'put', label: 'effect', item: { ...key, n } }];

    // Act
    const [first, busy, second] = [await acquired(early), await acquired(early), await acquired(late)];
    if (first.kind !== 'acquired' || second.kind !== 'acquired') throw new Error('the locks were not acquired');
    const stale = await first.lock.write(write(1)).catch((error: unknown) => error);
    await second.lock.finish(write(2));

    // Assert
    expect(busy.kind).toBe('busy');
    expect(second.lock.fencingToken).toBeGreaterThan(first.lock.fencingToken);
    expect(stale).toBeInstanceOf(LeaseLostError);
    expect(await store().get(key)).toEqual({ ...key, n: 2 });
  });

  test('an effect happens once per key, and every caller gets its answer', async () => {
    // Arrange
    const clock = new StoreClock();
    const account = freshKey();
    const charge = createOnlyonceEffect(store({ clock }), { scope: 'charges' });
    const key = unique('request');
    const call = (payload: unknown): ReturnType<typeof charge<{ charged: number }>> =>
      charge(
        key,
        ({ commitWith }) => {
          const change = { set: { balance: plus(5, 0) } };
          commitWith({ kind: 'update', label: 'balance', key: account, change });
          return { charged: 5 };
        },
        { payload },
      );

    // Act
    const answers = [await call({ amount: 5 }), await call({ amount: 5 }), await call({ amount: 6 })];

    // Assert
    expect(answers).toMatchObject([
      { kind: 'completed', response: { charged: 5 } },
      { kind: 'replayed', response: { charged: 5 } },
      { kind: 'conflict' },
    ]);
    expect(await store().get(account)).toEqual({ ...account, balance: 5 });
  });

  test('a claim is exclusive until it is given back or its lease is over', async () => {
    // Arrange
    const request = { queue: 'q', key: unique('message'), payloadHash: 'h', holder: 'host:1' };
    const [early, late] = [new StoreClock(), new StoreClock({ startMs: 1_800_003_600_000 })];
    const [records, later] = [store({ clock: early }).effectRecords(), store({ clock: late }).effectRecords()];

    // Act
    const [first, second, third] = [
      await records.claim(request),
      await records.claim(request),
      await later.claim(request),
    ];
    if (first.kind !== 'claimed' || third.kind !== 'claimed') throw new Error('the record was not claimed');
    const verdict = { status: 'COMPLETED', response: 1, effects: [] } as const;
    const stale = await records.commit(first.effect, verdict).catch((error: unknown) => error);
    await later.commit(third.effect, verdict);
    const replay = await records.claim(request);

    // Assert
    expect(second.kind).toBe('busy');
    expect(stale).toBeInstanceOf(LeaseLostError);
    expect(replay).toMatchObject({ kind: 'completed', response: 1 });
  });
});
