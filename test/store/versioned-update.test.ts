import { describe, expect, test } from 'vitest';
import { ConfigurationError } from '../../src/errors.ts';
import type { ItemKey } from '../../src/store/table.ts';
import { VersionConflictError, type VersionedItem } from '../../src/store/versioned.ts';
import { useStoreBench } from '../support/store-bench.ts';
import { versionedScene } from '../support/store-versioned.ts';

const bench = useStoreBench();
const { freshKey, made, edited, stored } = versionedScene(bench);

describe('update', () => {
  test('runs the change on the stored item', async () => {
    const { key } = await made({ size: 2 });
    const double = (now: VersionedItem) => ({ size: Number(now['size']) * 2 });
    const outcome = await bench.store().versioned.update(key, double);
    expect(outcome).toMatchObject({ kind: 'updated', attempts: 1, item: { size: 4, version: 2 } });
  });

  test('re-runs the change on what the refused write brought along', async () => {
    // Arrange
    const { key } = await made({ size: 1 });
    const first = bench.transport.fault('UpdateItem', { kind: 'hold' });
    const runs: unknown[] = [];

    // Act
    const update = bench.store().versioned.update(key, (now) => {
      runs.push(now['size']);
      return { size: Number(now['size']) + 1 };
    });
    await first.hit;
    await edited(key, { size: 10 });
    await first.release();

    // Assert
    expect(await update).toMatchObject({ kind: 'updated', attempts: 2, item: { size: 11, version: 3 } });
    expect(runs).toEqual([1, 10]);
    expect(bench.transport.count('GetItem')).toBe(1);
  });

  test.each([undefined, {}])('writes nothing when there is nothing to do: %j', async (nothing) => {
    const { key, item } = await made({});
    expect(await bench.store().versioned.update(key, () => nothing)).toEqual({ kind: 'unchanged', item });
    expect(bench.transport.count('UpdateItem')).toBe(0);
  });

  test('says that there is no item, also when it goes meanwhile', async () => {
    // Arrange
    const { key, item } = await made({});
    const first = bench.transport.fault('UpdateItem', { kind: 'hold' });

    // Act
    const update = bench.store().versioned.update(key, () => ({ text: 'ours' }));
    await first.hit;
    await bench.truth.versioned.remove(key, item);
    await first.release();

    // Assert
    expect(await update).toEqual({ kind: 'absent' });
    expect(await bench.store().versioned.update(key, () => ({ text: 'ours' }))).toEqual({ kind: 'absent' });
    expect(await bench.truth.get(key)).toBeUndefined();
  });

  /** Always loses: whenever its write is under way, another writer is faster. */
  async function outrun(key: ItemKey, attempts: number, update: Promise<unknown>): Promise<void> {
    for (let attempt = 1; attempt <= attempts; attempt += 1) {
      const held = bench.transport.fault('UpdateItem', { kind: 'hold' });
      await Promise.race([held.hit, update]);
      await edited(key, { by: attempt });
      await held.release();
    }
  }

  test('gives up after the given number of tries, having written nothing', async () => {
    // Arrange
    const { key } = await made({});

    // Act
    const update = bench.store().versioned.update(key, () => ({ text: 'ours' }), { maxAttempts: 3 });
    const outcome = update.catch((error: unknown) => error);
    await outrun(key, 3, outcome);

    // Assert
    expect(await outcome).toBeInstanceOf(VersionConflictError);
    expect(await outcome).toMatchObject({ code: 'VERSION_CONFLICT', retryable: true });
    expect(bench.transport.count('UpdateItem')).toBe(3);
    expect(await stored(key)).toMatchObject({ by: 3, version: 4 });
    expect(await stored(key)).not.toHaveProperty('text');
  });

  test('ends the wait between tries when it is aborted', async () => {
    // Arrange
    const { key } = await made({});
    const stop = new AbortController();

    // Act
    const options = { signal: stop.signal };
    const update = bench.store().versioned.update(key, () => ({ text: 'ours' }), options);
    const outcome = update.catch((error: unknown) => error);
    const held = bench.transport.fault('UpdateItem', { kind: 'hold' });
    await held.hit;
    await edited(key, { text: 'theirs' });
    stop.abort(new Error('enough'));
    await held.release();

    // Assert
    expect(await outcome).toMatchObject({ message: 'enough' });
    expect(await stored(key)).toMatchObject({ text: 'theirs' });
  });

  test('starts no write when it was aborted before', async () => {
    const { key } = await made({});
    const signal = AbortSignal.abort(new Error('enough'));
    const update = bench.store().versioned.update(key, () => ({ text: 'ours' }), { signal });
    await expect(update).rejects.toThrow('enough');
    expect(bench.transport.count('UpdateItem')).toBe(0);
  });

  test.each([0, 1.5, 1_001, Number.NaN])('refuses %d tries', async (maxAttempts) => {
    const update = bench.store().versioned.update(freshKey(), () => undefined, { maxAttempts });
    await expect(update).rejects.toMatchObject({ faults: [{ name: 'maxAttempts' }] });
  });

  test('refuses a change that spreads the item that it was given', async () => {
    const { key } = await made({});
    const update = bench.store().versioned.update(key, (now) => ({ ...now, text: 'ours' }));
    await expect(update).rejects.toBeInstanceOf(ConfigurationError);
  });
});

describe('pattern 23', () => {
  test('A deposits 50, and B, who has seen the same balance, withdraws 30 from what A left', async () => {
    // Arrange
    const { key, item: seenByBoth } = await made({ balance: 100 });
    const { versioned } = bench.store();

    // Act
    const deposit = await versioned.save(key, { set: { balance: 150 } }, seenByBoth);
    const stale = await versioned.save(key, { set: { balance: 70 } }, seenByBoth);
    const withdrawal = await versioned.update(key, (now) => ({ balance: Number(now['balance']) - 30 }));

    // Assert
    expect(deposit).toMatchObject({ kind: 'saved', item: { balance: 150, version: 2 } });
    expect(stale).toMatchObject({ kind: 'conflict', current: { balance: 150, version: 2 } });
    expect(withdrawal).toMatchObject({ kind: 'updated', item: { balance: 120, version: 3 } });
  });
});
