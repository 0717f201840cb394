import { describe, expect, test } from 'vitest';
import type { ItemKey } from '../../src/store/table.ts';
import { examineSentinels, type Orphan, type SentinelReport } from '../../src/store/unique/repair.ts';
import { useStoreBench } from '../support/store-bench.ts';
import { uniqueScene, type UniqueScene } from '../support/store-unique.ts';
import { until } from '../support/until.ts';

const bench = useStoreBench();
const WRITE = 'TransactWriteItems';

async function orphansOf(scene: UniqueScene): Promise<Orphan[]> {
  const found: Orphan[] = [];
  for await (const orphan of bench.truth.uniqueOrphans())
    if (orphan.scope === scene.constraint.scope) found.push(orphan);
  return found;
}

async function onlyOrphan(scene: UniqueScene): Promise<Orphan> {
  const [orphan, ...more] = await orphansOf(scene);
  if (orphan === undefined || more.length > 0) throw new Error('not one orphan');
  return orphan;
}

async function statesOf(scene: UniqueScene, constraints = [scene.constraint]): Promise<Record<string, string>> {
  const found: SentinelReport[] = [];
  for await (const report of examineSentinels(bench.truth, constraints)) {
    if (report.scope === scene.constraint.scope) found.push(report);
  }
  return Object.fromEntries(found.map(({ value, state }) => [value, state]));
}

/** What the leaks of others look like: the item changed around the constraint. */
async function leak(scene: UniqueScene, id: string, { from, to }: { from: string; to?: unknown }): Promise<void> {
  await scene.truth.create(scene.user(id, from));
  await scene.put(scene.user(id, to));
}

function sentinelKey(scene: UniqueScene, value: string): ItemKey {
  return { PK: `UNIQUE#${scene.constraint.scope}#${value}`, SK: 'UNIQUE' };
}

describe('findOrphans', () => {
  test('explains each sentinel that no item stands behind, and none of the others', async () => {
    // Arrange
    const scene = uniqueScene(bench);
    await scene.truth.create(scene.user('held', 'Held'));
    await scene.truth.create(scene.user('respelt', 'respelt'));
    await scene.truth.change(scene.key('respelt'), 'RESPELT');
    await scene.truth.create(scene.user('gone', 'gone#1'));
    await scene.delete(scene.key('gone'));
    await leak(scene, 'changed', { from: 'before', to: 'after' });
    await leak(scene, 'cleared', { from: 'cleared' });
    await leak(scene, 'number', { from: 'number', to: 5 });
    await scene.put({ ...sentinelKey(scene, 'unreadable') });

    // Act
    const orphans = await orphansOf(scene);

    // Assert
    const { scope } = scene.constraint;
    const expected = (value: string, owner: string | undefined, reason: string) => ({
      scope,
      value,
      sentinel: sentinelKey(scene, value),
      owner: owner === undefined ? undefined : scene.key(owner),
      reason,
    });
    expect(orphans.toSorted((left, right) => left.value.localeCompare(right.value))).toEqual([
      expected('before', 'changed', 'value changed'),
      expected('cleared', 'cleared', 'value changed'),
      expected('gone#1', 'gone', 'owner gone'),
      expected('number', 'number', 'value changed'),
      expected('unreadable', undefined, 'unreadable'),
    ]);
  });

  test('reads page by page, and does not mind a lost answer', async () => {
    const scene = uniqueScene(bench);
    for (const id of ['a', 'b', 'c']) {
      await scene.truth.create({ ...scene.user(id, `${id}-value`), filler: 'x'.repeat(390_000) });
      await scene.put({ ...scene.user(id, 'other'), filler: 'x'.repeat(390_000) });
    }
    bench.transport.fault('Scan', { kind: 'lose the answer' });

    const found: Orphan[] = [];
    for await (const orphan of bench.store().uniqueOrphans()) found.push(orphan);

    const mine = found.filter(({ scope }) => scope === scene.constraint.scope);
    expect(mine.map(({ value }) => value).toSorted()).toEqual(['a-value', 'b-value', 'c-value']);
    expect(bench.transport.count('Scan')).toBeGreaterThan(2);
  });

  test('does not take for an orphan what a running change has just freed', async () => {
    // Arrange: the scan has seen the sentinel; its owner is read after the change.
    const scene = uniqueScene(bench);
    await scene.truth.create(scene.user('ada', 'a'));
    const isOwner = (body: { Key?: unknown }): boolean => JSON.stringify(body.Key).includes(scene.key('ada').PK);
    const held = bench.transport.fault('GetItem', { kind: 'hold' }, { when: isOwner });

    // Act
    const found: Orphan[] = [];
    const search = (async () => {
      for await (const orphan of bench.store().uniqueOrphans()) found.push(orphan);
    })();
    await held.hit;
    await scene.truth.change(scene.key('ada'), 'b');
    await held.release();
    await search;

    // Assert
    expect(found.filter(({ scope }) => scope === scene.constraint.scope)).toEqual([]);
  });

  test('leaves alone what only the rule of the constraint can judge', async () => {
    const firstLetter = (value: string): string => value.slice(0, 1);
    const scene = uniqueScene(bench, firstLetter);
    await scene.truth.create(scene.user('ada', 'a1'));
    await scene.truth.change(scene.key('ada'), 'a2');
    await leak(scene, 'bob', { from: 'b1', to: 'c1' });

    expect(await orphansOf(scene)).toEqual([]);
    expect(await statesOf(scene, [])).toEqual({ a: 'undecided', b: 'undecided' });
    expect(await statesOf(scene)).toEqual({ a: 'held', b: 'value changed' });
  });

  test('holds a claim for good that another version of Unicode would normalise otherwise', async () => {
    const scene = uniqueScene(bench);
    await scene.truth.create(scene.user('ada', 'Ada'));
    const sentinel = (await bench.truth.get(sentinelKey(scene, 'ada'))) ?? {};
    await scene.put({ ...sentinel, ...sentinelKey(scene, 'as it was then') });
    await scene.delete(sentinelKey(scene, 'ada'));
    await scene.truth.change(scene.key('ada'), 'ADA');

    expect(await statesOf(scene)).toMatchObject({ 'as it was then': 'held' });
  });
});

describe('removeOrphan', () => {
  test.each([
    ['whose owner is gone', undefined],
    ['whose owner has another value', 'b'],
    ['whose owner has no value', null],
  ])('removes a sentinel %s, so that the value can be claimed', async (_what, now) => {
    const scene = uniqueScene(bench);
    await leak(scene, 'ada', { from: 'a', to: now });
    if (now === undefined) await scene.delete(scene.key('ada'));
    const orphan = await onlyOrphan(scene);

    expect(await bench.store().removeUniqueOrphan(orphan)).toBe(true);
    expect(await scene.truth.create(scene.user('bob', 'a'))).toEqual({ kind: 'written' });
    expect(await bench.store().removeUniqueOrphan(orphan)).toBe(false);
    expect(await scene.truth.owner('a')).toEqual(scene.key('bob'));
  });

  test('removes what names no owner', async () => {
    const scene = uniqueScene(bench);
    await scene.put({ ...sentinelKey(scene, 'a'), ref: 'ada' });

    expect(await bench.store().removeUniqueOrphan(await onlyOrphan(scene))).toBe(true);
    expect(await scene.truth.owner('a')).toBeUndefined();
  });

  test('keeps a sentinel whose owner came to have the value before it looks', async () => {
    const scene = uniqueScene(bench);
    await leak(scene, 'ada', { from: 'a', to: 'b' });
    const orphan = await onlyOrphan(scene);
    await scene.truth.change(scene.key('ada'), 'a');

    expect(await bench.store().removeUniqueOrphan(orphan)).toBe(false);
    expect(await scene.truth.owner('a')).toEqual(scene.key('ada'));
  });

  test('keeps a sentinel whose owner comes to have the value between its look and its write', async () => {
    // Arrange
    const scene = uniqueScene(bench);
    await leak(scene, 'ada', { from: 'a', to: 'b' });
    const orphan = await onlyOrphan(scene);
    const held = bench.transport.fault(WRITE, { kind: 'hold' });

    // Act
    const removed = bench.store().removeUniqueOrphan(orphan);
    await held.hit;
    expect(await scene.truth.change(scene.key('ada'), 'a')).toEqual({ kind: 'written' });
    await held.release();

    // Assert
    expect(await removed).toBe(false);
    expect(await scene.truth.owner('a')).toEqual(scene.key('ada'));
  });

  test('keeps a sentinel whose owner is put back around the constraint at that moment', async () => {
    // The sentinel is still the same claim: only the check of the owner sees it.
    const scene = uniqueScene(bench);
    await leak(scene, 'ada', { from: 'a', to: 'b' });
    await leak(scene, 'gone', { from: 'g' });
    await scene.delete(scene.key('gone'));
    const orphans = await orphansOf(scene);
    const held = bench.transport.fault(WRITE, { kind: 'hold' }, { times: 2 });

    const removed = orphans.map((orphan) => bench.store().removeUniqueOrphan(orphan));
    await until(() => held.hits === 2);
    await scene.put(scene.user('ada', 'a'));
    await scene.put(scene.user('gone', 'g'));
    await held.release();

    expect(await Promise.all(removed)).toEqual([false, false]);
    expect(await statesOf(scene)).toEqual({ a: 'held', g: 'held' });
  });

  test('keeps a sentinel that another has claimed since', async () => {
    const scene = uniqueScene(bench);
    await leak(scene, 'ada', { from: 'a', to: 'b' });
    const orphan = await onlyOrphan(scene);
    const held = bench.transport.fault(WRITE, { kind: 'hold' });

    const removed = bench.store().removeUniqueOrphan(orphan);
    await held.hit;
    expect(await bench.truth.removeUniqueOrphan(orphan)).toBe(true);
    await scene.truth.create(scene.user('bob', 'a'));
    await held.release();

    expect(await removed).toBe(false);
    expect(await scene.truth.owner('a')).toEqual(scene.key('bob'));
  });

  test('tries again while the owner changes to yet other values, a few times', async () => {
    const scene = uniqueScene(bench);
    await leak(scene, 'ada', { from: 'a', to: 'b' });
    const orphan = await onlyOrphan(scene);
    const held = bench.transport.fault(WRITE, { kind: 'hold' });

    const removed = bench.store().removeUniqueOrphan(orphan);
    await held.hit;
    await scene.put(scene.user('ada', 'c'));
    await held.release();

    expect(await removed).toBe(true);
    expect(await scene.truth.owner('a')).toBeUndefined();
    expect(bench.transport.count(WRITE)).toBe(2);
  });

  test('gives up as a conflict when its owner is changed during each try', async () => {
    const scene = uniqueScene(bench);
    await leak(scene, 'ada', { from: 'a', to: 'b' });
    const orphan = await onlyOrphan(scene);
    const reasons = ['ConditionalCheckFailed', 'None'];
    bench.transport.fault(WRITE, { kind: 'refuse', name: 'TransactionCanceledException', reasons }, { times: 100 });

    await expect(bench.store().removeUniqueOrphan(orphan)).rejects.toMatchObject({
      reason: 'conflict',
      retryable: true,
    });
    expect(bench.transport.count(WRITE)).toBeLessThan(10);
  });

  test('whose answer was lost, and whose token was forgotten, says that the orphan is removed', async () => {
    const scene = uniqueScene(bench);
    await leak(scene, 'ada', { from: 'a', to: 'b' });
    const orphan = await onlyOrphan(scene);
    bench.transport.fault(WRITE, { kind: 'lose the answer' });
    bench.transport.fault(WRITE, { kind: 'under another token' });

    expect(await bench.store().removeUniqueOrphan(orphan)).toBe(true);
    expect(await scene.truth.owner('a')).toBeUndefined();
  });

  test('never touches an item that is no sentinel', async () => {
    const scene = uniqueScene(bench);
    await scene.put(scene.user('ada', 'a'));
    const { scope } = scene.constraint;
    const sentinel = scene.key('ada');

    expect(
      await bench.store().removeUniqueOrphan({ scope, value: 'a', sentinel, owner: undefined, reason: 'unreadable' }),
    ).toBe(false);
    expect(await scene.emails()).toEqual({ ada: 'a' });
  });
});

test('repairs beside working programs: what runs meanwhile keeps every value it has', async () => {
  // Arrange
  const scene = uniqueScene(bench);
  const ids = Array.from({ length: 12 }, (_, index) => String(index));
  for (const id of ids) await leak(scene, id, { from: `v${id}`, to: `w${id}` });
  const orphans = await orphansOf(scene);
  const unique = scene.unique();

  // Act: each value is claimed anew by its owner while it is being removed.
  await Promise.all([
    ...orphans.map((orphan) => bench.store().removeUniqueOrphan(orphan)),
    ...ids.map((id) => unique.change(scene.key(id), `v${id}`)),
  ]);

  // Assert
  const wanted = Object.fromEntries(ids.map((id) => [`v${id}`, id]));
  expect(await scene.sentinels()).toEqual(wanted);
  expect(await orphansOf(scene)).toEqual([]);
});
