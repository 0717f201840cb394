/** The end of all locks of a process. */
import { describe, expect, test } from 'vitest';
import type { Lock } from '../../../src/store/locks/lock.ts';
import { lockKey } from '../../../src/store/table.ts';
import { useStoreBench } from '../../support/store-bench.ts';
import { acquired, BEAT_MS, HOUR_MS, lockScene } from '../../support/store-locks.ts';
import { until } from '../../support/until.ts';

const bench = useStoreBench();
const GRACE_MS = 5_000;
const NOTHING = { released: [], failed: [], stillRunning: [], lost: [] };

async function failureOf(promise: Promise<unknown>): Promise<unknown> {
  return promise.then(
    () => undefined,
    (error: unknown) => error,
  );
}

function untilAborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    signal.addEventListener('abort', () => {
      resolve();
    });
  });
}

describe('L18: the closing of 20 locks', () => {
  test('releases 18, reports the one whose release fails, and leaves the one of stubborn work to expire', async () => {
    // Arrange
    const scene = lockScene(bench);
    const { clock, locks } = scene.machine();
    const names = Array.from({ length: 20 }, (_, index) => `${scene.name}-${String(index)}`);
    const [failing = '', stubborn = ''] = names;
    const running: Lock[] = [];
    const stubbornEnds = Promise.withResolvers<undefined>();
    const works = names.map((name) =>
      locks.using(name, async (lock) => {
        running.push(lock);
        await (name === stubborn ? stubbornEnds.promise : untilAborted(lock.signal));
      }),
    );
    await until(() => running.length === 20);
    bench.transport.fault(
      'UpdateItem',
      { kind: 'refuse', name: 'AccessDeniedException' },
      { times: 100, when: (body) => JSON.stringify(body['Key']).includes(`"LOCK#${failing}"`) },
    );

    // Act
    const closing = locks.close({ graceMs: GRACE_MS });
    await until(async () => {
      const items = await Promise.all(names.map((name) => bench.truth.get(lockKey(name))));
      return items.filter((item) => item?.['owner'] === undefined).length === 18;
    });
    clock.advance(GRACE_MS);
    const report = await closing;

    // Assert
    expect(report).toMatchObject({
      failed: [{ name: failing, error: { code: 'BACKEND', reason: 'denied' } }],
      stillRunning: [stubborn],
      lost: [],
    });
    expect(report.released.toSorted()).toEqual(names.slice(2).toSorted());
    expect(await bench.truth.get(lockKey(stubborn))).toHaveProperty('owner');

    // Act: the stubborn work wakes up after another has taken its lock over.
    const lockOfStubborn = running.find((lock) => lock.name === stubborn);
    await acquired(scene.machine({ aheadMs: HOUR_MS }).locks, stubborn);
    const commit = await failureOf(lockOfStubborn?.finish([scene.effect()]) ?? Promise.resolve());
    stubbornEnds.resolve(undefined);
    await Promise.all(works);

    // Assert
    expect(commit).toMatchObject({ code: 'LEASE_LOST', reason: 'stolen' });
    expect(await scene.effects()).toBe(0);
  });
});

describe('the closing', () => {
  test('aborts the work with its own reason, while what is under way may still be written', async () => {
    // Arrange
    const scene = lockScene(bench);
    const { locks } = scene.machine();
    const started = Promise.withResolvers<Lock>();
    const work = locks.using(scene.name, async (lock) => {
      started.resolve(lock);
      await untilAborted(lock.signal);
      const isHeld = lock.isHeld();
      await lock.finish([scene.effect()]);
      return { isHeld, reason: lock.signal.reason as unknown };
    });
    await started.promise;

    // Act
    const report = await locks.close();

    // Assert
    expect(await work).toMatchObject({ isHeld: true, reason: { code: 'LOCKS_CLOSED' } });
    expect([report, await scene.effects()]).toEqual([{ ...NOTHING, released: [scene.name] }, 1]);
  });

  test('stops the beats of work that goes on, whose lock is lost at the end of its lease', async () => {
    // Arrange
    const scene = lockScene(bench);
    const { locks, clock, lock } = await scene.holder();

    // Act
    const closing = locks.close({ graceMs: 1_000 });
    clock.advance(1_000);
    const report = await closing;
    bench.transport.forget();
    // The end of the lease and the longest hold; no beat, and nothing to be in danger.
    const timers = clock.pendingTimers;
    clock.advance(BEAT_MS * 3);
    const isHeld = lock.isHeld();
    clock.advance(9_000);

    // Assert
    expect(report).toEqual({ ...NOTHING, stillRunning: [scene.name] });
    expect([timers, isHeld, lock.isHeld(), bench.transport.seen]).toEqual([2, true, false, []]);
    expect(clock.pendingTimers).toBe(0);
  });

  test('tells of a lock that was lost meanwhile, and tries a failed release once more', async () => {
    // Arrange
    const scene = lockScene(bench);
    const { locks, lock } = await scene.holder();
    const other = await acquired(locks, `${scene.name}-other`);
    bench.transport.fault('UpdateItem', { kind: 'refuse', name: 'AccessDeniedException' });
    await failureOf(other.release());

    // Act
    const closing = locks.close();
    await scene.takeOver(scene.machine().clock);
    await lock.renew();

    // Assert
    expect(await closing).toEqual({ ...NOTHING, released: [other.name], lost: [scene.name] });
    expect(await bench.truth.get(lockKey(other.name))).not.toHaveProperty('owner');
  });

  test('waits for what a try that was under way still gets, and gives it back', async () => {
    // Arrange
    const scene = lockScene(bench);
    const { locks } = scene.machine();
    const slow = bench.transport.fault('UpdateItem', { kind: 'hold' });
    const attempts = [failureOf(locks.tryAcquire(scene.name))];
    await slow.hit;

    // Act
    const closing = locks.close();
    const failures = await Promise.all(attempts);
    await slow.release();
    const report = await closing;

    // Assert
    expect([failures, report]).toMatchObject([[{ code: 'LOCKS_CLOSED' }], NOTHING]);
    expect(await scene.item()).toMatchObject({ expiresAtMs: 0 });
  });

  test('happens once, and nothing is granted after it', async () => {
    // Arrange
    const scene = lockScene(bench);
    const { locks } = scene.machine();
    const reports = await Promise.all([locks.close(), locks.close({ graceMs: 0 })]);

    // Act
    const calls = [
      locks.tryAcquire('x'),
      locks.acquire('x'),
      locks.acquireAll(['x']),
      locks.using('x', () => Promise.resolve()),
    ];

    // Assert
    for (const call of calls) expect(await failureOf(call)).toMatchObject({ code: 'LOCKS_CLOSED' });
    expect([reports[0] === reports[1], bench.transport.seen]).toEqual([true, []]);
  });

  test.each([-1, Number.NaN, Infinity])('is refused with a grace of %s', async (graceMs) => {
    expect(await failureOf(lockScene(bench).machine().locks.close({ graceMs }))).toMatchObject({
      code: 'CONFIGURATION',
    });
  });

  test('forgets locks that are over, so that a long life costs no memory and reports only what matters', async () => {
    // Arrange
    const scene = lockScene(bench);
    const { locks } = scene.machine();
    for (let round = 0; round < 5; round += 1) await locks.using(scene.name, () => Promise.resolve());

    // Act
    const report = await locks.close();

    // Assert
    expect(report).toEqual(NOTHING);
  });
});
