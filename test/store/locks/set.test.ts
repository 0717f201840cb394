/** Several locks at once: all or none, one signal, and every fence in every write. */
import { describe, expect, test } from 'vitest';
import type { LockSet } from '../../../src/store/locks/lock-set.ts';
import { lockKey } from '../../../src/store/table.ts';
import { useStoreBench } from '../../support/store-bench.ts';
import { acquired, BEAT_MS, HOUR_MS, lockScene, SILENCE_MS } from '../../support/store-locks.ts';
import { until } from '../../support/until.ts';
import { swapLocks } from '../../support/store-lock-swaps.ts';

const bench = useStoreBench();
const TRANSACTION = 'TransactWriteItems';

async function failureOf(promise: Promise<unknown>): Promise<unknown> {
  return promise.then(
    () => undefined,
    (error: unknown) => error,
  );
}

const namesOf = (set: LockSet): string[] => set.locks.map(({ name }) => name);

async function ownersOf(names: readonly string[]): Promise<unknown[]> {
  return Promise.all(names.map(async (name) => (await bench.truth.get(lockKey(name)))?.['owner']));
}

describe('a set of locks', () => {
  test('is granted in two requests, in the order of everybody, each name once', async () => {
    // Arrange
    const scene = lockScene(bench);
    const names = ['é', 'z', 'Z', 'z'].map((name) => `${scene.name}-${name}`);

    // Act
    const set = await scene.machine().locks.acquireAll(names);

    // Assert
    expect(namesOf(set)).toEqual(['Z', 'z', 'é'].map((name) => `${scene.name}-${name}`));
    expect(bench.transport.seen.map(({ operation }) => operation)).toEqual([TRANSACTION, 'TransactGetItems']);
    for (const lock of set.locks) {
      expect(await bench.truth.get(lockKey(lock.name))).toMatchObject({ fencingToken: lock.fencingToken });
    }
    expect([set.isHeld(), set.signal.aborted]).toEqual([true, false]);
  });

  test('is never held in part: a busy lock leaves the others free', async () => {
    // Arrange
    const scene = lockScene(bench);
    const names = ['a', 'b', 'c'].map((name) => `${scene.name}-${name}`);
    await acquired(scene.machine().locks, names[1] ?? '');

    // Act
    const failure = await failureOf(scene.machine().locks.acquireAll(names, { maxWaitMs: 0 }));

    // Assert
    expect(failure).toMatchObject({ code: 'LOCK_TIMEOUT', lockNames: names });
    expect(await ownersOf(names)).toEqual([undefined, expect.any(String), undefined]);
  });

  test('waits until the last of them is free, looking at one at a time', async () => {
    // Arrange
    const scene = lockScene(bench);
    const names = ['a', 'b'].map((name) => `${scene.name}-${name}`);
    const holder = scene.machine({ beats: 'manual' });
    const [a, b] = await Promise.all(names.map((name) => acquired(holder.locks, name)));
    const { locks, clock } = scene.machine();
    let set: LockSet | undefined;
    const waiting = locks.acquireAll(names, { maxWaitMs: Infinity }).then((granted) => {
      set = granted;
    });
    await until(() => clock.pendingTimers === 1);

    // Act
    await a?.release();
    clock.advance(100);
    await until(() => bench.transport.count('GetItem') >= 1 && clock.pendingTimers === 1);
    const early = set;
    await b?.release();
    while (set === undefined) {
      await until(() => set !== undefined || clock.pendingTimers === 1);
      clock.advance(100);
    }
    await waiting;

    // Assert
    expect([early, set?.isHeld()]).toEqual([undefined, true]);
  });

  test('takes crashed holders over by observation, each with a higher token', async () => {
    // Arrange
    const scene = lockScene(bench);
    const names = ['a', 'b'].map((name) => `${scene.name}-${name}`);
    const crashed = await scene.machine({ aheadMs: HOUR_MS, beats: 'manual' }).locks.acquireAll(names);
    const { locks, clock } = scene.machine({ takeover: 'observed' });
    const refused = await failureOf(locks.acquireAll(names, { maxWaitMs: 0 }));

    // Act
    clock.advance(SILENCE_MS);
    const set = await locks.acquireAll(names, { maxWaitMs: 0 });

    // Assert
    expect(refused).toMatchObject({ code: 'LOCK_TIMEOUT' });
    expect(set.locks.map((lock) => lock.fencingToken)).toEqual(crashed.locks.map((lock) => lock.fencingToken + 1));
  });

  test.each<[string, Parameters<typeof bench.transport.fault>[1][]]>([
    ['lost', [{ kind: 'lose the answer' }]],
    ['lost beyond the memory of its token', [{ kind: 'lose the answer' }, { kind: 'under another token' }]],
  ])('is granted once when the answer to it was %s', async (_title, faults) => {
    // Arrange
    const scene = lockScene(bench);
    const names = ['a', 'b'].map((name) => `${scene.name}-${name}`);
    for (const fault of faults) bench.transport.fault(TRANSACTION, fault);

    // Act
    const set = await scene.machine().locks.acquireAll(names);

    // Assert
    expect(bench.transport.count(TRANSACTION)).toBe(2);
    const items = await Promise.all(names.map((name) => bench.truth.get(lockKey(name))));
    expect(items.map((item) => item?.['fencingToken'])).toEqual(set.locks.map((lock) => lock.fencingToken));
    expect(await Promise.all(set.locks.map((lock) => lock.renew()))).toEqual([true, true]);
  });

  test('whose tokens cannot be read is given back', async () => {
    // Arrange
    const scene = lockScene(bench);
    const names = ['a', 'b'].map((name) => `${scene.name}-${name}`);
    bench.transport.fault('TransactGetItems', { kind: 'refuse', name: 'AccessDeniedException' });

    // Act
    const failure = await failureOf(scene.machine().locks.acquireAll(names));

    // Assert
    expect(failure).toMatchObject({ code: 'BACKEND', reason: 'denied' });
    expect(await ownersOf(names)).toEqual([undefined, undefined]);
  });

  test('that is granted after its wait was aborted is given back', async () => {
    // Arrange
    const scene = lockScene(bench);
    const names = ['a', 'b'].map((name) => `${scene.name}-${name}`);
    const stop = new AbortController();
    const slow = bench.transport.fault(TRANSACTION, { kind: 'hold' });
    const waiting = failureOf(scene.machine().locks.acquireAll(names, { signal: stop.signal }));
    await slow.hit;

    // Act
    stop.abort();
    const failure = await waiting;
    await slow.release();
    await until(async () => (await bench.truth.get(lockKey(names[1] ?? '')))?.['expiresAtMs'] === 0);

    // Assert
    expect(failure).toMatchObject({ name: 'AbortError' });
    await until(async () => (await ownersOf(names)).every((owner) => owner === undefined));
  });
});

describe('writes under a set', () => {
  test('carry every fence, and renew every lock', async () => {
    // Arrange
    const scene = lockScene(bench);
    const names = ['a', 'b', 'c'].map((name) => `${scene.name}-${name}`);
    const { locks, clock } = scene.machine();
    const set = await locks.acquireAll(names);
    clock.advance(BEAT_MS - 1);
    bench.transport.forget();

    // Act
    await set.write([scene.effect()]);

    // Assert
    expect(bench.transport.seen).toHaveLength(1);
    expect([await scene.effects(), set.locks.map((lock) => lock.remainingMs())]).toEqual([1, [9_000, 9_000, 9_000]]);
  });

  test('are refused when any one lock is lost, and abort the signal of the set', async () => {
    // Arrange
    const scene = lockScene(bench);
    const names = ['a', 'b'].map((name) => `${scene.name}-${name}`);
    const set = await scene.machine().locks.acquireAll(names);
    const thief = await acquired(scene.machine({ aheadMs: HOUR_MS }).locks, names[1] ?? '');

    // Act
    const failure = await failureOf(set.write([scene.effect()]));

    // Assert
    expect(failure).toMatchObject({ code: 'LEASE_LOST', reason: 'stolen', observedToken: thief.fencingToken });
    expect([set.signal.reason, set.isHeld(), await scene.effects()]).toEqual([failure, false, 0]);
    expect(set.locks.map((lock) => lock.isHeld())).toEqual([true, false]);
  });

  test('can finish: the effects and the release of all at once, also when the answer is lost', async () => {
    // Arrange
    const scene = lockScene(bench);
    const names = ['a', 'b'].map((name) => `${scene.name}-${name}`);
    const { locks, clock, events } = scene.machine();
    const set = await locks.acquireAll(names);
    bench.transport.fault(TRANSACTION, { kind: 'lose the answer' });
    bench.transport.fault(TRANSACTION, { kind: 'under another token' });

    // Act
    await set.finish([scene.effect()]);
    bench.transport.forget();
    await set.release();
    clock.advance(60_000);

    // Assert
    expect([await scene.effects(), await ownersOf(names), events]).toEqual([1, [undefined, undefined], []]);
    expect([bench.transport.seen, clock.pendingTimers]).toEqual([[], 0]);
  });

  test('at the same time from many sides do not wait for each other for ever', async () => {
    // Arrange
    const scene = lockScene(bench);
    const names = ['a', 'b', 'c'].map((name) => `${scene.name}-${name}`);
    const set = await scene.machine().locks.acquireAll(names);

    // Act
    const writes = Array.from({ length: 10 }, () => set.write([scene.effect()]));
    const beats = set.locks.flatMap((lock) => [lock.renew(), lock.write([lockScene(bench).effect()])]);
    await Promise.all([...writes, ...beats]);

    // Assert
    expect([await scene.effects(), set.isHeld()]).toEqual([10, true]);
  });

  test('over the limit of one transaction are refused before anything is sent', async () => {
    // Arrange
    const scene = lockScene(bench);
    const names = Array.from({ length: 99 }, (_, index) => `${scene.name}-${String(index)}`);
    await using set = await scene.machine().locks.acquireAll(names);
    bench.transport.forget();

    // Act
    const two = await failureOf(set.write([scene.effect(), lockScene(bench).effect()]));
    const none = bench.transport.seen.length;
    await set.write([scene.effect()]);

    // Assert
    expect([two, none, await scene.effects()]).toMatchObject([{ code: 'CONFIGURATION' }, 0, 1]);
  });
});

describe('the release of a set', () => {
  test('gives all back, also those after one that fails', async () => {
    // Arrange
    const scene = lockScene(bench);
    const names = ['a', 'b', 'c'].map((name) => `${scene.name}-${name}`);
    const set = await scene.machine().locks.acquireAll(names);
    bench.transport.fault('UpdateItem', { kind: 'refuse', name: 'AccessDeniedException' });

    // Act
    const failure = await failureOf(set.release());
    const owners = await ownersOf(names);
    await set.release();

    // Assert
    expect(failure).toMatchObject({ reason: 'denied' });
    expect(owners.filter((owner) => owner === undefined)).toHaveLength(2);
    expect(await ownersOf(names)).toEqual([undefined, undefined, undefined]);
  });
});

describe('L23: two locks in opposite order by two workers', () => {
  test('in 100 rounds each: no deadlock, no lock held in part, and both get on', async () => {
    const { rounds, together, effects } = await swapLocks(bench, 100);

    expect([rounds, together, effects]).toEqual([[100, 100], 0, 200]);
  });
});
