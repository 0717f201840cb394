/** Waiting for a lock: whose turn it is, when it is looked at, and how a wait ends. */
import { getEventListeners } from 'node:events';
import { describe, expect, test } from 'vitest';
import { HeldLock } from '../../../src/store/locks/lock.ts';
import { lockKey } from '../../../src/store/table.ts';
import { useStoreBench } from '../../support/store-bench.ts';
import { acquired, LOCK_LEASE, lockScene, SILENCE_MS } from '../../support/store-locks.ts';
import { until } from '../../support/until.ts';
import type { StoreClock } from '../../support/store-clock.ts';

const bench = useStoreBench();
const READ = 'GetItem';
const UPDATE = 'UpdateItem';
/** With random 0. */
const POLL_MS = 100;

async function failureOf(promise: Promise<unknown>): Promise<unknown> {
  return promise.then(
    () => undefined,
    (error: unknown) => error,
  );
}

/** Moves `clock` on poll by poll, each when so many timers say that somebody sleeps, until `done`. */
async function pollsUntil(clock: StoreClock, sleeping: number, done: () => boolean): Promise<void> {
  while (!done()) {
    await until(() => done() || clock.pendingTimers === sleeping);
    if (!done()) clock.advance(POLL_MS);
  }
}

describe('a waiter', () => {
  test('of a free lock needs one request', async () => {
    // Arrange
    const scene = lockScene(bench);

    // Act
    const lock = await scene.machine().locks.acquire(scene.name);

    // Assert
    expect([lock.isHeld(), bench.transport.seen.length]).toEqual([true, 1]);
  });

  test('that gives up leaves nothing behind on the lock that this process holds', async () => {
    // Arrange
    const scene = lockScene(bench);
    const { locks } = scene.machine();
    const lock = await locks.acquire(scene.name);
    if (!(lock instanceof HeldLock)) throw new TypeError('a lock of this process');
    const listeners = (): number => getEventListeners(lock.overSignal, 'abort').length;
    const before = listeners();

    // Act
    const endings: unknown[] = [];
    for (let nth = 0; nth < 20; nth += 1) {
      const giveUp = new AbortController();
      const waiting = failureOf(locks.acquire(scene.name, { signal: giveUp.signal }));
      await until(() => listeners() > before);
      giveUp.abort(new Error('enough'));
      endings.push(await waiting);
    }

    // Assert
    expect(endings).toHaveLength(20);
    expect(listeners()).toBe(before);
  });

  test('tries once, then only looks, and writes again when the lock is free', async () => {
    // Arrange
    const scene = lockScene(bench);
    const { lock } = await scene.holder({ beats: 'manual' });
    const { clock, locks } = scene.machine();
    const waiting = locks.acquire(scene.name);
    await until(() => bench.transport.count(UPDATE) === 1 && clock.pendingTimers === 2);
    await pollsUntil(clock, 2, () => bench.transport.count(READ) >= 5);
    const writesWhileBusy = bench.transport.count(UPDATE);

    // Act
    await lock.release();
    await until(() => clock.pendingTimers === 2);
    clock.advance(POLL_MS);
    const next = await waiting;

    // Assert
    expect(writesWhileBusy).toBe(1);
    expect(next.fencingToken).toBe(lock.fencingToken + 1);
  });

  test.each(['expiry-or-observed', 'observed'] as const)(
    'takes a crashed holder’s lock over by %s without a needless write',
    async (takeover) => {
      // Arrange
      const scene = lockScene(bench);
      const crashed = await scene.holder({ beats: 'manual', aheadMs: takeover === 'observed' ? 3_600_000 : 0 });
      const { clock, locks } = scene.machine({ takeover });
      let next: { fencingToken: number } | undefined;
      const startMs = clock.monotonicMs();

      // Act
      const waiting = locks.acquire(scene.name, { maxWaitMs: Infinity }).then((lock) => {
        next = lock;
      });
      await until(() => clock.pendingTimers === 1);
      await pollsUntil(clock, 1, () => next !== undefined);
      await waiting;

      // Assert
      const waitedMs = clock.monotonicMs() - startMs;
      expect(next?.fencingToken).toBe(crashed.lock.fencingToken + 1);
      expect(waitedMs).toBeGreaterThanOrEqual(LOCK_LEASE.leaseMs);
      expect(waitedMs).toBeLessThanOrEqual(SILENCE_MS + 20 * POLL_MS);
      expect(bench.transport.count(UPDATE)).toBe(2);
    },
  );

  test('outlasts a store that cannot be reached for a while, and what it last said is the cause when time is up', async () => {
    // Arrange
    const scene = lockScene(bench);
    await scene.holder({ beats: 'manual' });
    const { clock, locks } = scene.machine();
    bench.transport.fault(READ, { kind: 'refuse', name: 'ThrottlingException' }, { times: 1_000 });

    // Act
    const waiting = failureOf(locks.acquire(scene.name, { maxWaitMs: 1_000 }));
    await until(() => clock.pendingTimers === 2);
    let failure: unknown;
    void waiting.then((error) => {
      failure = error;
    });
    await pollsUntil(clock, 2, () => failure !== undefined);

    // Assert
    expect(failure).toMatchObject({ code: 'LOCK_TIMEOUT', lockNames: [scene.name], cause: { reason: 'throttled' } });
  });

  test('fails at once with what does not pass by itself', async () => {
    // Arrange
    const scene = lockScene(bench);
    await scene.holder({ beats: 'manual' });
    const { clock, locks } = scene.machine();
    bench.transport.fault(READ, { kind: 'refuse', name: 'AccessDeniedException' });

    // Act
    const waiting = failureOf(locks.acquire(scene.name));
    await until(() => clock.pendingTimers === 2);
    clock.advance(POLL_MS);

    // Assert
    expect(await waiting).toMatchObject({ code: 'BACKEND', reason: 'denied' });
    expect(clock.pendingTimers).toBe(0);
  });

  test('gives up after the longest wait and leaves no timer behind', async () => {
    // Arrange
    const scene = lockScene(bench);
    await scene.holder({ beats: 'manual' });
    const { clock, locks } = scene.machine();

    // Act
    const none = await failureOf(locks.acquire(scene.name, { maxWaitMs: 0 }));
    const requestsOfNone = bench.transport.seen.length;
    const some = failureOf(locks.acquire(scene.name, { maxWaitMs: 50 }));
    await until(() => clock.pendingTimers === 2);
    clock.advance(50);

    // Assert
    expect([none, await some]).toMatchObject([{ code: 'LOCK_TIMEOUT' }, { code: 'LOCK_TIMEOUT', retryable: true }]);
    expect([requestsOfNone, clock.pendingTimers]).toEqual([1, 0]);
  });

  test.each([Number.NaN, -1, 3e9])('is refused with a longest wait of %s', async (maxWaitMs) => {
    const { locks } = lockScene(bench).machine();
    expect(await failureOf(locks.acquire('x', { maxWaitMs }))).toMatchObject({ code: 'CONFIGURATION' });
    expect(await failureOf(locks.acquireAll(['x'], { maxWaitMs }))).toMatchObject({ code: 'CONFIGURATION' });
  });
});

describe('waiters of one process', () => {
  test('get the lock in the order of their calls, without a request while the process holds it', async () => {
    // Arrange
    const scene = lockScene(bench);
    const { locks, clock } = scene.machine();
    const order: number[] = [];
    const first = await locks.acquire(scene.name);
    const all = Array.from({ length: 20 }, (_, index) =>
      locks.using(scene.name, () => Promise.resolve(order.push(index))),
    );
    bench.transport.forget();
    clock.advance(2_000);
    await bench.truth.get(lockKey('round trip'));
    const whileHeld = bench.transport.seen.length;

    // Act
    await first.release();
    await Promise.all(all);

    // Assert
    expect(order).toEqual(Array.from({ length: 20 }, (_, index) => index));
    // A release, and then one grant and one release for each: nobody is refused, nobody looks.
    expect([whileHeld, bench.transport.count(UPDATE), bench.transport.count(READ)]).toEqual([0, 41, 0]);
  });

  test('cost one poller, however many they are', async () => {
    // Arrange
    const scene = lockScene(bench);
    await scene.holder({ beats: 'manual' });
    const { locks, clock } = scene.machine();
    const stop = new AbortController();
    const waiting = Array.from({ length: 50 }, () => failureOf(locks.acquire(scene.name, { signal: stop.signal })));
    await until(() => clock.pendingTimers === 1);

    // Act
    await pollsUntil(clock, 1, () => bench.transport.count(READ) >= 5);
    stop.abort(new Error('enough'));
    const failures = await Promise.all(waiting);

    // Assert
    expect([bench.transport.count(UPDATE), bench.transport.count(READ)]).toEqual([1, 5]);
    expect(failures.every((failure) => failure instanceof Error && failure.message === 'enough')).toBe(true);
  });

  test('are next when the one in front gives up', async () => {
    // Arrange
    const scene = lockScene(bench);
    const { lock } = await scene.holder({ beats: 'manual' });
    const { locks, clock } = scene.machine();
    const stop = new AbortController();
    const front = failureOf(locks.acquire(scene.name, { signal: stop.signal }));
    await until(() => clock.pendingTimers === 1);
    const behind = locks.acquire(scene.name, { maxWaitMs: Infinity });

    // Act
    await lock.release();
    stop.abort();

    // Assert
    expect(await front).toMatchObject({ name: 'AbortError' });
    expect((await behind).isHeld()).toBe(true);
  });
});

describe('L16: a wait of ten minutes', () => {
  const TEN_MINUTES_MS = 600_000;

  test('ends at once when its signal aborts, and acquires nothing later', async () => {
    // Arrange
    const scene = lockScene(bench);
    const { lock } = await scene.holder({ beats: 'manual' });
    const { locks, clock } = scene.machine();
    const stop = new AbortController();
    const waiting = failureOf(locks.acquire(scene.name, { maxWaitMs: TEN_MINUTES_MS, signal: stop.signal }));
    await until(() => clock.pendingTimers === 2);

    // Act
    stop.abort();
    const failure = await waiting;
    await lock.release();
    bench.transport.forget();
    clock.advance(TEN_MINUTES_MS);
    await bench.truth.get(lockKey('round trip'));

    // Assert
    expect(failure).toMatchObject({ name: 'AbortError' });
    expect([clock.pendingTimers, bench.transport.seen]).toEqual([0, []]);
  });

  test('ends at once when the locks are closed', async () => {
    // Arrange
    const scene = lockScene(bench);
    await scene.holder({ beats: 'manual' });
    const { locks, clock } = scene.machine();
    const waiting = failureOf(locks.acquire(scene.name, { maxWaitMs: TEN_MINUTES_MS }));
    await until(() => clock.pendingTimers === 2);

    // Act
    const report = await locks.close();

    // Assert
    expect(await waiting).toMatchObject({ code: 'LOCKS_CLOSED' });
    expect(report).toEqual({ released: [], failed: [], stillRunning: [], lost: [] });
    expect(clock.pendingTimers).toBe(0);
  });

  test.each(['held on its way', 'applied while its answer is late'])(
    'gives back what a try still gets that was %s when it was aborted',
    async (kind) => {
      // Arrange
      const scene = lockScene(bench);
      const { locks } = scene.machine();
      const stop = new AbortController();
      const hold = bench.transport.fault(UPDATE, { kind: 'hold' });
      if (kind !== 'held on its way') bench.transport.fault(UPDATE, { kind: 'lose the answer' }, { nth: 1 });
      const waiting = failureOf(locks.acquire(scene.name, { signal: stop.signal }));
      await hold.hit;

      // Act
      stop.abort();
      const failure = await waiting;
      await hold.release();
      await until(async () => (await scene.item())?.['expiresAtMs'] === 0);

      // Assert
      expect(failure).toMatchObject({ name: 'AbortError' });
      expect(await scene.item()).not.toHaveProperty('owner');
    },
  );

  test('that was aborted before it began sends nothing', async () => {
    const { locks } = lockScene(bench).machine();
    const signal = AbortSignal.abort();
    expect(await failureOf(locks.acquire('x', { signal }))).toMatchObject({ name: 'AbortError' });
    expect(await failureOf(locks.acquireAll(['x', 'y'], { signal }))).toMatchObject({ name: 'AbortError' });
    expect(bench.transport.seen).toEqual([]);
  });
});

describe('work that waits for its own lock', () => {
  test('is told so instead of waiting for itself, also deep inside and in a set', async () => {
    // Arrange
    const scene = lockScene(bench);
    const { locks } = scene.machine();

    // Act
    const failures = await locks.using(scene.name, async () => {
      await Promise.resolve();
      return [
        await failureOf(locks.acquire(scene.name)),
        await failureOf(locks.acquireAll([`${scene.name}-other`, scene.name])),
        await locks.using(`${scene.name}-inner`, () => failureOf(locks.using(scene.name, () => Promise.resolve()))),
      ];
    });

    // Assert
    for (const failure of failures) {
      expect(failure).toMatchObject({ code: 'LOCK_REENTRY', lockNames: [scene.name], retryable: false });
    }
  });

  test('may wait again once it has given the lock back, and others may wait meanwhile', async () => {
    // Arrange
    const scene = lockScene(bench);
    const { locks } = scene.machine();

    // Act
    const held = await locks.using(scene.name, async (lock) => {
      await lock.finish([]);
      await using again = await locks.acquire(scene.name);
      return again.isHeld();
    });

    // Assert
    expect(held).toBe(true);
  });

  test('gets a plain answer when it only tries', async () => {
    // Arrange
    const scene = lockScene(bench);
    const { locks } = scene.machine({ holder: 'me' });

    // Act
    const attempt = await locks.using(scene.name, () => locks.tryAcquire(scene.name));

    // Assert
    expect(attempt).toMatchObject({ kind: 'busy', holder: 'me' });
  });
});

describe('a wrong name', () => {
  test('is refused by every call', async () => {
    const { locks } = lockScene(bench).machine();
    const calls = [
      locks.tryAcquire(''),
      locks.acquire(''),
      locks.using('', () => Promise.resolve()),
      locks.acquireAll(['a', '']),
    ];
    for (const call of calls) expect(await failureOf(call)).toMatchObject({ code: 'CONFIGURATION' });
    expect(bench.transport.seen).toEqual([]);
  });

  test.each(['a#LOCK', 'size', ' ', '\u{1f512}', 'x'.repeat(2_043)])('is not %j', async (name) => {
    await using lock = await acquired(lockScene(bench).machine().locks, name);
    expect(lock.isHeld()).toBe(true);
  });
});
