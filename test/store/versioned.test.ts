import { describe, expect, test } from 'vitest';
import { BackendError, ConfigurationError } from '../../src/errors.ts';
import { plus } from '../../src/store/expressions.ts';
import type { ItemKey } from '../../src/store/table.ts';
import { TransactionCancelledError } from '../../src/store/transactions/transaction-writer.ts';
import { UnversionedItemError, type VersionedItem } from '../../src/store/versioned.ts';
import { useStoreBench } from '../support/store-bench.ts';
import { StoreClock } from '../support/store-clock.ts';
import { versionedScene } from '../support/store-versioned.ts';

const bench = useStoreBench();
const { freshKey, made, edited, stored, foreign } = versionedScene(bench);

const TRANSACTION = 'TransactWriteItems';

describe('create', () => {
  test('makes version 1 with the attributes as a read brings them back', async () => {
    // Arrange
    const key = freshKey();
    const attributes = { '': 'odd', size: 3, status: { deep: ['ä', '😀'] }, none: undefined, nul: null };

    // Act
    const answer = await bench.store().versioned.create({ ...key, ...attributes });

    // Assert
    expect(answer).toMatchObject({ kind: 'created', item: { ...key, version: 1, size: 3 } });
    expect(answer.item).toEqual(await stored(key));
    expect(Object.keys(answer.item)).not.toContain('none');
  });

  test('brings the item that is there', async () => {
    const { key, item } = await made({ text: 'first' });
    const answer = await bench.store().versioned.create({ ...key, text: 'second' });
    expect(answer).toEqual({ kind: 'exists', item });
  });

  test('never touches an item without a version', async () => {
    const key = await foreign({ text: 'theirs' });
    const create = bench.store().versioned.create({ ...key, text: 'ours' });
    await expect(create).rejects.toBeInstanceOf(UnversionedItemError);
    expect(await bench.truth.get(key)).toEqual({ ...key, text: 'theirs' });
  });

  test('refuses what the store keeps and what no change could reach, all at once', async () => {
    // Act
    const item = { ...freshKey(), version: 7, generation: 'g', writeId: 'w', 'a.b': 1 };
    const create = bench.store().versioned.create(item);

    // Assert
    await expect(create).rejects.toMatchObject({
      code: 'CONFIGURATION',
      faults: [{ name: 'version' }, { name: 'generation' }, { name: 'writeId' }, { name: 'a.b' }],
    });
    expect(bench.transport.count(TRANSACTION)).toBe(0);
  });

  test.each([
    { PK: '', SK: '' },
    { PK: 'a', SK: 'b', size: Number.NaN },
  ])('refuses what DynamoDB cannot keep: %j', async (item) => {
    const create = bench.store().versioned.create(item);
    await expect(create).rejects.toBeInstanceOf(ConfigurationError);
  });

  test.each(['lose the answer', 'lose the request', 'deliver late', 'send twice'] as const)(
    'knows its own item again: %s',
    async (kind) => {
      // Arrange
      const key = freshKey();
      const rule = bench.transport.fault(TRANSACTION, { kind });

      // Act
      const answer = await bench.store().versioned.create({ ...key, text: 'mine' });
      await rule.release();

      // Assert
      expect(answer.kind).toBe('created');
      expect(await stored(key)).toEqual(answer.item);
    },
  );

  test('knows its own item again when the server has forgotten the request', async () => {
    // Arrange
    const key = freshKey();
    bench.transport.fault(TRANSACTION, { kind: 'lose the answer' });
    bench.transport.fault(TRANSACTION, { kind: 'under another token' });

    // Act
    const answer = await bench.store().versioned.create({ ...key, text: 'mine' });

    // Assert
    expect(answer.kind).toBe('created');
    expect(await stored(key)).toEqual(answer.item);
  });

  test('does not make again what another removed before the repeat', async () => {
    // Arrange
    const key = freshKey();
    bench.transport.fault(TRANSACTION, { kind: 'lose the answer' });
    const repeat = bench.transport.fault(TRANSACTION, { kind: 'hold' });

    // Act
    const create = bench.store().versioned.create({ ...key, text: 'mine' });
    await repeat.hit;
    const seen = await stored(key);
    await bench.truth.versioned.remove(key, seen);
    await repeat.release();

    // Assert
    expect((await create).kind).toBe('created');
    expect(await bench.truth.get(key)).toBeUndefined();
  });
});

describe('read', () => {
  test('brings nothing for a key without an item', async () => {
    expect(await bench.store().versioned.read(freshKey())).toBeUndefined();
  });

  test.each([
    {},
    { version: 1 },
    { version: '1', generation: 'g' },
    { version: 0, generation: 'g' },
    { version: 1.5, generation: 'g' },
    { version: 1, generation: 7 },
  ])('says that an item of others has no version: %j', async (attributes) => {
    const key = await foreign(attributes);
    const read = bench.store().versioned.read(key);
    await expect(read).rejects.toMatchObject({ code: 'UNVERSIONED_ITEM', retryable: false, key });
  });
});

describe('save', () => {
  test('writes, removes and counts up', async () => {
    // Arrange
    const { key, item } = await made({ text: 'old', note: 'gone', size: 1, tags: { a: 1, b: 2 } });

    // Act
    const change = { set: { text: 'new', size: plus(4, 0), 'tags.a': 9 }, remove: ['note', 'tags.b'] };
    const answer = await bench.store().versioned.save(key, change, item);

    // Assert
    const expected = { ...key, text: 'new', size: 5, tags: { a: 9 }, version: 2, generation: item.generation };
    expect(answer).toMatchObject({ kind: 'saved', item: expected });
    expect(answer).toEqual({ kind: 'saved', item: await stored(key) });
    expect(await stored(key)).not.toHaveProperty('note');
  });

  test('shows the conflict, with the current item and without a second read', async () => {
    // Arrange
    const { key, item } = await made({ text: 'first' });
    const current = await edited(key, { text: 'theirs' });

    // Act
    const answer = await bench.store().versioned.save(key, { set: { text: 'ours' } }, item);

    // Assert
    expect(answer).toEqual({ kind: 'conflict', current });
    expect(bench.transport.seen.map(({ operation }) => operation)).toEqual(['UpdateItem']);
  });

  test('makes no item where none is', async () => {
    const key = freshKey();
    const seen = { version: 1, generation: 'g' };
    const answer = await bench.store().versioned.save(key, { set: { text: 'ghost' } }, seen);
    expect(answer).toEqual({ kind: 'conflict', current: undefined });
    expect(await bench.truth.get(key)).toBeUndefined();
  });

  test('refuses an old edit when the key was deleted and made again', async () => {
    // Arrange
    const { key, item: old } = await made({ text: 'first life' });
    await bench.truth.versioned.remove(key, old);
    await bench.truth.versioned.create({ ...key, text: 'second life' });

    // Act
    const answer = await bench.store().versioned.save(key, { set: { text: 'old edit' } }, old);

    // Assert
    const current = await stored(key);
    expect(answer).toEqual({ kind: 'conflict', current });
    expect(current).toMatchObject({ text: 'second life', version: old.version });
  });

  test('says when a writer without versions has replaced the item', async () => {
    const { key, item } = await made({});
    await bench.truth.transactions.write([{ kind: 'put', label: 'theirs', item: { ...key, text: 'theirs' } }]);
    const save = bench.store().versioned.save(key, { set: { text: 'ours' } }, item);
    await expect(save).rejects.toBeInstanceOf(UnversionedItemError);
    expect(await bench.truth.get(key)).toEqual({ ...key, text: 'theirs' });
  });

  test('refuses to change what makes it safe, all at once', async () => {
    // Arrange
    const { key } = await made({});
    const set = { version: 9, 'generation.x': 1, PK: 'x', 'fine.version': 1 };
    const seen = { version: 0.5, generation: '' };

    // Act
    const save = bench.store().versioned.save(key, { set, remove: ['writeId', 'SK'] }, seen);

    // Assert
    const names = ['version', 'generation.x', 'PK', 'writeId', 'SK', 'seen.version', 'seen.generation'];
    await expect(save).rejects.toMatchObject({ faults: names.map((name) => ({ name })) });
  });

  test.each(['lose the answer', 'lose the request', 'deliver late', 'send twice'] as const)(
    'knows its own edit again: %s',
    async (kind) => {
      // Arrange
      const { key, item } = await made({ size: 1 });
      const rule = bench.transport.fault('UpdateItem', { kind });

      // Act
      const answer = await bench.store().versioned.save(key, { set: { size: plus(1, 0) } }, item);
      await rule.release();

      // Assert
      expect(answer).toMatchObject({ kind: 'saved', item: { size: 2, version: 2 } });
      expect(answer).toEqual({ kind: 'saved', item: await stored(key) });
    },
  );
});

describe('an edit without an answer, met by others before its repeat', () => {
  type Meeting = (item: VersionedItem) => Promise<unknown>;

  /** Edits while the first try is lost in the given way, and `others` act before the second one arrives. */
  async function editMeeting(first: 'lose the answer' | 'lose the request', others: Meeting) {
    const { key, item } = await made({ text: 'first' });
    bench.transport.fault('UpdateItem', { kind: first });
    const repeat = bench.transport.fault('UpdateItem', { kind: 'hold' });
    const save = bench.store().versioned.save(key, { set: { text: 'ours' } }, item);
    const outcome = save.catch((error: unknown) => error);
    await repeat.hit;
    await others(await stored(key));
    await repeat.release();
    return { key, outcome: await outcome };
  }

  test('is a plain conflict when another write took its version', async () => {
    const { key, outcome } = await editMeeting('lose the request', ({ PK, SK }) =>
      edited({ PK, SK }, { text: 'theirs' }),
    );
    expect(outcome).toEqual({ kind: 'conflict', current: await stored(key) });
  });

  test.each([
    ['others wrote over it', ({ PK, SK }: VersionedItem) => edited({ PK, SK }, { text: 'theirs' })],
    ['the item is gone', ({ PK, SK, ...seen }: VersionedItem) => bench.truth.versioned.remove({ PK, SK }, seen)],
    [
      'the item was made again',
      async ({ PK, SK, ...seen }: VersionedItem) => {
        await bench.truth.versioned.remove({ PK, SK }, seen);
        await bench.truth.versioned.create({ PK, SK, text: 'second life' });
        await edited({ PK, SK }, { text: 'theirs' });
      },
    ],
  ])('is ambiguous when it landed and %s', async (_title, others) => {
    const { key, outcome } = await editMeeting('lose the answer', others);
    expect(outcome).toBeInstanceOf(BackendError);
    expect(outcome).toMatchObject({ reason: 'ambiguous', retryable: true });
    expect((await bench.truth.get(key))?.['text']).not.toBe('ours');
  });

  test('is ambiguous when no try is ever answered', async () => {
    const { key, item } = await made({});
    bench.transport.fault('UpdateItem', { kind: 'lose the answer' }, { times: 4 });
    const save = bench.store().versioned.save(key, { set: { text: 'ours' } }, item);
    await expect(save).rejects.toMatchObject({ code: 'BACKEND', reason: 'ambiguous' });
    expect(bench.transport.count('UpdateItem')).toBe(4);
    expect(await stored(key)).toMatchObject({ text: 'ours', version: 2 });
  });
});

describe('remove', () => {
  test('deletes the version that was seen', async () => {
    const { key, item } = await made({});
    expect(await bench.store().versioned.remove(key, item)).toEqual({ kind: 'removed' });
    expect(await bench.truth.get(key)).toBeUndefined();
  });

  test('leaves an item that was edited since', async () => {
    const { key, item } = await made({});
    const current = await edited(key, { text: 'theirs' });
    expect(await bench.store().versioned.remove(key, item)).toEqual({ kind: 'conflict', current });
    expect(await stored(key)).toEqual(current);
  });

  test('leaves an item that was made again', async () => {
    const { key, item } = await made({});
    await bench.truth.versioned.remove(key, item);
    await bench.truth.versioned.create({ ...key, text: 'second life' });
    const current = await stored(key);
    expect(await bench.store().versioned.remove(key, item)).toEqual({ kind: 'conflict', current });
    expect(await stored(key)).toEqual(current);
  });

  test('does not claim what another has removed', async () => {
    const { key, item } = await made({});
    await bench.truth.versioned.remove(key, item);
    expect(await bench.store().versioned.remove(key, item)).toEqual({ kind: 'conflict', current: undefined });
  });

  test.each(['lose the answer', 'lose the request', 'deliver late', 'send twice'] as const)(
    'knows that it was the one: %s',
    async (kind) => {
      const { key, item } = await made({});
      const rule = bench.transport.fault(TRANSACTION, { kind });
      expect(await bench.store().versioned.remove(key, item)).toEqual({ kind: 'removed' });
      await rule.release();
      expect(await bench.truth.get(key)).toBeUndefined();
    },
  );

  test.each([
    ['lose the answer', { kind: 'removed' }],
    ['lose the request', { kind: 'conflict', current: undefined }],
  ] as const)('tells who removed it when another may have: %s', async (first, expected) => {
    // Arrange
    const { key, item } = await made({});
    bench.transport.fault(TRANSACTION, { kind: first });
    const repeat = bench.transport.fault(TRANSACTION, { kind: 'hold' });

    // Act
    const remove = bench.store().versioned.remove(key, item);
    await repeat.hit;
    const other = await bench.truth.versioned.remove(key, item);
    await repeat.release();

    // Assert
    expect(await remove).toEqual(expected);
    expect(other.kind).toBe(expected.kind === 'removed' ? 'conflict' : 'removed');
  });

  test.each([
    ['the machine slept', (clock: StoreClock) => clock.moveWallClock(300_000)],
    ['the process was stopped', (clock: StoreClock) => clock.stallBeforeTimers(300_000)],
    [
      'it was stopped and its clock set back',
      (clock: StoreClock) => {
        clock.stallBeforeTimers(300_000);
        clock.moveWallClock(-300_000);
      },
    ],
  ])('does not guess who removed it when the token may be forgotten: %s', async (_title, sleepLong) => {
    // Arrange
    const { key, item } = await made({});
    const clock = new StoreClock();
    bench.transport.fault(TRANSACTION, { kind: 'lose the request' });
    const repeat = bench.transport.fault(TRANSACTION, { kind: 'hold' });

    // Act
    const remove = bench.store({ clock }).versioned.remove(key, item);
    const outcome = remove.catch((error: unknown) => error);
    await repeat.hit;
    await bench.truth.versioned.remove(key, item);
    sleepLong(clock);
    await repeat.release();

    // Assert
    expect(await outcome).toMatchObject({ code: 'BACKEND', reason: 'ambiguous' });
  });

  test('is a plain conflict after however long a pause while the item lives on', async () => {
    // Arrange
    const { key, item } = await made({});
    const clock = new StoreClock();
    bench.transport.fault(TRANSACTION, { kind: 'lose the request' });
    const repeat = bench.transport.fault(TRANSACTION, { kind: 'hold' });

    // Act
    const remove = bench.store({ clock }).versioned.remove(key, item);
    await repeat.hit;
    const current = await edited(key, { text: 'theirs' });
    clock.moveWallClock(300_000);
    await repeat.release();

    // Assert
    expect(await remove).toEqual({ kind: 'conflict', current });
  });

  test('takes a whole item for a key, and so do the others', async () => {
    const { item } = await made({ text: 'old' });
    const { versioned } = bench.store();
    const answer = await versioned.save(item, { set: { text: 'new' } }, item);
    if (answer.kind !== 'saved') throw new Error('not saved');
    // What the old item says must not cover what is stored.
    expect(await versioned.read(item)).toEqual(answer.item);
    expect(await versioned.update(item, (now) => ({ was: now['text'] }))).toMatchObject({ item: { was: 'new' } });
    const last = await stored(item);
    expect(await versioned.remove(last, last)).toEqual({ kind: 'removed' });
  });

  test('leaves what somebody made again while its answer was lost', async () => {
    // Arrange
    const { key, item } = await made({});
    bench.transport.fault(TRANSACTION, { kind: 'lose the answer' });
    const repeat = bench.transport.fault(TRANSACTION, { kind: 'hold' });

    // Act
    const remove = bench.store().versioned.remove(key, item);
    await repeat.hit;
    await bench.truth.versioned.create({ ...key, text: 'second life' });
    await repeat.release();

    // Assert
    expect(await remove).toEqual({ kind: 'removed' });
    expect(await stored(key)).toMatchObject({ text: 'second life', version: 1 });
  });
});

describe('saveAction', () => {
  async function counted(key: ItemKey, seen: VersionedItem): Promise<ItemKey> {
    const effect = freshKey();
    await bench
      .store()
      .transactions.write([
        bench.truth.versioned.saveAction({ label: 'note', key, change: { set: { text: 'ours' } }, seen }),
        { kind: 'update', label: 'effect', key: effect, change: { set: { count: plus(1, 0) } } },
      ]);
    return effect;
  }

  test('counts the version up within a transaction', async () => {
    const { key, item } = await made({ text: 'first' });
    const effect = await counted(key, item);
    const now = await stored(key);
    expect(now).toMatchObject({ text: 'ours', version: 2, generation: item.generation });
    expect(now['writeId']).not.toBe(item['writeId']);
    expect(await bench.truth.get(effect)).toMatchObject({ count: 1 });
  });

  test('lets the whole transaction fail on an old version, and brings the current item', async () => {
    // Arrange
    const { key, item } = await made({ text: 'first' });
    const current = await edited(key, { text: 'theirs' });

    // Act
    const error = await counted(key, item).catch((caught: unknown) => caught);

    // Assert
    if (!(error instanceof TransactionCancelledError)) throw new Error('not refused');
    expect(error.conditionFailure('note')?.item).toEqual(current);
  });

  test('refuses to change what makes it safe', () => {
    const change = { set: { version: 1 } };
    const seen = { version: 1, generation: 'g' };
    const build = (): unknown => bench.store().versioned.saveAction({ label: 'x', key: freshKey(), change, seen });
    expect(build).toThrow(ConfigurationError);
  });
});
