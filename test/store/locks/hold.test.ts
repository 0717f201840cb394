/** A lock that is held: beats, pauses, losses, and the timers behind them. */
import { afterEach, describe, expect, test } from 'vitest';
import { LeaseLostError } from '../../../src/store/leases/lease-loss.ts';
import type { Lock } from '../../../src/store/locks/lock.ts';
import { lockKey } from '../../../src/store/table.ts';
import { useStoreBench } from '../../support/store-bench.ts';
import { acquired, BEAT_MS, HOUR_MS, LOCK_LEASE, lockScene, START_MS } from '../../support/store-locks.ts';
import { until } from '../../support/until.ts';

const bench = useStoreBench();
const OPERATION = 'UpdateItem';
const DAY_SECONDS = 86_400;

const unhandled: unknown[] = [];
const noteUnhandled = (reason: unknown): void => {
  unhandled.push(reason);
};
process.on('unhandledRejection', noteUnhandled);
process.on('uncaughtException', noteUnhandled);
afterEach(() => {
  if (unhandled.length > 0) throw new Error('left unhandled', { cause: unhandled.splice(0) });
});

describe('an uncontended lock', () => {
  test('costs one request to acquire and none to release when the last write does it', async () => {
    // Arrange
    const scene = lockScene(bench);
    const { locks } = scene.machine();

    // Act
    await locks.using(scene.name, async (lock) => {
      await lock.finish([scene.effect()]);
    });

    // Assert
    expect(bench.transport.seen.map(({ operation }) => operation)).toEqual([OPERATION, 'TransactWriteItems']);
    expect([await scene.effects(), (await scene.item())?.['owner']]).toEqual([1, undefined]);
  });

  test('has everything on its item, kept for the retention', async () => {
    // Arrange
    const scene = lockScene(bench);

    // Act
    const { lock } = await scene.holder({ holder: 'host:1', retentionDays: 30 });

    // Assert
    expect(await scene.item()).toMatchObject({
      ...lockKey(scene.name),
      fencingToken: lock.fencingToken,
      holder: 'host:1',
      heartbeat: 0,
      leaseMs: 10_000,
      expiresAtMs: START_MS + 10_000,
      ttl: START_MS / 1_000 + 30 * DAY_SECONDS,
    });
  });

  test('prolongs the retention with each beat and with the release', async () => {
    // Arrange
    const scene = lockScene(bench);
    const { clock, lock } = await scene.holder({ retentionDays: 1, beats: 'manual' });

    // Act
    clock.advance(3_000);
    await lock.renew();
    const renewed = await scene.item();
    clock.advance(3_000);
    await lock.release();

    // Assert
    expect([renewed?.['ttl'], (await scene.item())?.['ttl']]).toEqual(
      [3, 6].map((seconds) => START_MS / 1_000 + seconds + DAY_SECONDS),
    );
  });
});

describe('beats', () => {
  test('go on by themselves, so that the lock is held far beyond one lease', async () => {
    // Arrange
    const scene = lockScene(bench);
    const { clock, lock, events } = await scene.holder();

    // Act
    for (let beat = 1; beat <= 20; beat += 1) {
      clock.advance(BEAT_MS);
      await until(() => lock.remainingMs() === 9_000);
    }

    // Assert
    expect([lock.isHeld(), events, (await scene.item())?.['heartbeat']]).toEqual([true, [], 20]);
    expect(bench.transport.count(OPERATION)).toBe(20);
  });

  test('of different locks do not wait for each other', async () => {
    // Arrange
    const [slow, quick] = [lockScene(bench), lockScene(bench)];
    const { clock, locks } = slow.machine();
    const lockOfSlow = await acquired(locks, slow.name);
    const lockOfQuick = await acquired(locks, quick.name);
    const frozen = bench.transport.fault(
      OPERATION,
      { kind: 'never answer' },
      { times: 100, when: (body) => JSON.stringify(body).includes(`"LOCK#${slow.name}"`) },
    );

    // Act
    clock.advance(BEAT_MS);
    await frozen.hit;
    await until(() => lockOfQuick.remainingMs() === 9_000);

    // Assert
    expect(lockOfSlow.remainingMs()).toBe(9_000 - BEAT_MS);
  });

  test('of a thousand locks go out at most 32 at once, and all are sent', async () => {
    // Arrange
    const scene = lockScene(bench);
    const { clock, locks } = scene.machine();
    const held = await Promise.all(
      Array.from({ length: 80 }, (_, index) => acquired(locks, `${scene.name}-${String(index)}`)),
    );
    bench.transport.forget();
    const all = bench.transport.fault(OPERATION, { kind: 'hold' }, { times: 80 });

    // Act
    clock.advance(BEAT_MS);
    await until(() => all.hits === 32);
    const first = all.hits;
    await until(async () => {
      await all.release();
      return held.every((lock) => lock.remainingMs() === 9_000);
    });

    // Assert
    expect([first, bench.transport.count(OPERATION)]).toEqual([32, 80]);
  });

  test('L3: that were applied while their answers were lost, three times running, lose nothing', async () => {
    // Arrange
    const scene = lockScene(bench);
    const { clock, lock, events } = await scene.holder();
    bench.transport.fault(OPERATION, { kind: 'lose the answer' }, { times: 3 });

    // Act
    clock.advance(BEAT_MS);
    await until(() => lock.remainingMs() === 9_000);

    // Assert
    expect([lock.isHeld(), events]).toEqual([true, []]);
    expect(await scene.item()).toMatchObject({ heartbeat: 4, fencingToken: lock.fencingToken });
  });

  test('that conflict with a transaction on the lock are sent again, and are no loss', async () => {
    // Arrange
    const scene = lockScene(bench);
    const { clock, lock, events } = await scene.holder();
    bench.transport.fault(OPERATION, { kind: 'refuse', name: 'TransactionConflictException' }, { times: 3 });

    // Act
    clock.advance(BEAT_MS);
    await until(() => lock.remainingMs() === 9_000);

    // Assert
    expect([lock.isHeld(), events, bench.transport.count(OPERATION)]).toEqual([true, [], 4]);
  });

  test.each(['AccessDeniedException', 'ResourceNotFoundException'])(
    'that are refused with %s are told at once, while the lock is held until its time is over',
    async (fault) => {
      // Arrange
      const scene = lockScene(bench);
      const { clock, lock, events } = await scene.holder();
      bench.transport.fault(OPERATION, { kind: 'refuse', name: fault }, { times: 1_000 });

      // Act
      clock.advance(BEAT_MS);
      await until(() => events.length > 0);
      const isHeld = lock.isHeld();
      clock.advance(9_000 - BEAT_MS);

      // Assert
      expect(events[0]).toMatchObject({ kind: 'heartbeatError', name: scene.name, remainingMs: 9_000 - BEAT_MS });
      expect([isHeld, lock.isHeld()]).toEqual([true, false]);
      expect(lock.signal.reason).toMatchObject({ reason: 'deadline' });
    },
  );

  test('are not sent for a process that is frozen between calls, which renews by itself', async () => {
    // Arrange
    const scene = lockScene(bench);
    const { clock, lock } = await scene.holder({ beats: 'manual' });

    // Act
    clock.advance(8_000);
    const renewed = await lock.renew();

    // Assert
    expect([renewed, lock.remainingMs(), bench.transport.count(OPERATION)]).toEqual([true, 9_000, 1]);
  });
});

describe('L13: throttled beats', () => {
  test('for 60 % of the lease are danger once and then go on, without a loss', async () => {
    // Arrange
    const scene = lockScene(bench);
    const { clock, lock, events } = await scene.holder();
    bench.transport.fault(
      OPERATION,
      { kind: 'refuse', name: 'ProvisionedThroughputExceededException' },
      { times: 1_000_000 },
    );

    // Act
    for (let step = 0; step < 24; step += 1) {
      clock.advance(250);
      await new Promise((resolve) => setImmediate(resolve));
    }
    bench.transport.heal();
    await until(() => lock.remainingMs() === 9_000);

    // Assert
    expect(events).toEqual([{ kind: 'danger', name: scene.name, remainingMs: 4_000 }]);
    expect(lock.isHeld()).toBe(true);
  });

  test('for longer than the lease lose it exactly at its end, before another can be granted it', async () => {
    // Arrange
    const scene = lockScene(bench);
    const { clock, lock, events } = await scene.holder();
    const contender = scene.machine();
    bench.transport.fault(
      OPERATION,
      { kind: 'refuse', name: 'InternalServerError', status: 500 },
      {
        times: 1_000_000,
        when: (body) => JSON.stringify(body).includes('heartbeat') && !JSON.stringify(body).includes('holder'),
      },
    );

    // Act
    clock.advance(8_999);
    const isHeldBefore = lock.isHeld();
    clock.advance(1);
    contender.clock.advance(9_000);
    const attempt = await contender.locks.tryAcquire(scene.name);

    // Assert
    expect([isHeldBefore, lock.isHeld(), attempt.kind]).toEqual([true, false, 'busy']);
    expect(lock.signal.reason).toMatchObject({ code: 'LEASE_LOST', reason: 'deadline' });
    expect(events.map(({ kind }) => kind)).toEqual(['danger', 'lost']);
  });
});

describe('L14: a network that swallows everything', () => {
  test('loses the lock at its end, and a last release is given up after a second', async () => {
    // Arrange
    const scene = lockScene(bench);
    const { clock, lock } = await scene.holder({ store: { requestTimeoutMs: 60_000 } });
    const hole = bench.transport.fault(OPERATION, { kind: 'never answer' }, { times: 1_000_000 });

    // Act
    clock.advance(BEAT_MS);
    await hole.hit;
    clock.advance(LOCK_LEASE.heartbeatMs);
    await until(() => hole.hits >= 2);
    clock.advance(9_000 - BEAT_MS - LOCK_LEASE.heartbeatMs);
    const reason: unknown = lock.signal.reason;
    const released = lock.release();
    const sentBefore = hole.hits;
    await until(() => hole.hits > sentBefore);
    clock.advance(1_000);

    // Assert
    expect(reason).toMatchObject({ reason: 'deadline' });
    expect(await released).toBe('unanswered');
  });
});

describe('L20: work that hangs', () => {
  test('loses its lock after the longest hold, stops beating, and another takes over', async () => {
    // Arrange
    const scene = lockScene(bench);
    const { clock, locks, events } = scene.machine({ maxHoldMs: 30_000 });
    const started = Promise.withResolvers<Lock>();
    void locks.using(scene.name, (held) => {
      started.resolve(held);
      return new Promise(() => undefined);
    });
    const lock = await started.promise;
    for (let beat = 0; beat < 13; beat += 1) {
      clock.advance(BEAT_MS);
      await until(() => lock.remainingMs() === 9_000);
    }

    // Act
    clock.advance(30_000 - 13 * BEAT_MS);
    bench.transport.forget();
    clock.advance(60_000);

    // Assert
    expect(lock.signal.reason).toMatchObject({ reason: 'maxHold' });
    expect(events.at(-1)).toEqual({ kind: 'lost', name: scene.name, reason: 'maxHold' });
    expect([bench.transport.count(OPERATION), clock.pendingTimers]).toEqual([0, 0]);
    await acquired(scene.machine({ aheadMs: 60_000 }).locks, scene.name);
  });

  test('that reports no progress loses it earlier, and reporting keeps it', async () => {
    // Arrange
    const scene = lockScene(bench);
    const { clock, lock } = await scene.holder({ requireProgressMs: 5_000, beats: 'manual' });

    // Act
    clock.advance(4_000);
    lock.progress();
    clock.advance(4_000);
    const isHeld = lock.isHeld();
    await lock.renew();
    clock.advance(1_000);

    // Assert
    expect([isHeld, lock.isHeld()]).toEqual([true, false]);
    expect(lock.signal.reason).toMatchObject({ reason: 'noProgress' });
  });
});

describe('L25: a suspend', () => {
  test('is told as a stall, and one beat makes sure of the lock', async () => {
    // Arrange
    const scene = lockScene(bench);
    const { clock, lock, events } = await scene.holder();

    // Act
    clock.moveWallClock(HOUR_MS);
    const during = [lock.isHeld(), lock.signal.aborted];
    await lock.write([scene.effect()]);

    // Assert
    expect(during).toEqual([false, false]);
    expect([lock.isHeld(), lock.signal.aborted, await scene.effects()]).toEqual([true, false, 1]);
    expect(bench.transport.count(OPERATION)).toBe(1);
    expect(events.map(({ kind }) => kind)).toEqual(['stall']);
    expect(() => {
      lock.assertHeld();
    }).not.toThrow();
  });

  test('loses the lock at once where that is asked for, without a request', async () => {
    // Arrange
    const scene = lockScene(bench);
    const { clock, lock } = await scene.holder({ onStall: 'abort' });

    // Act
    clock.moveWallClock(HOUR_MS);
    const write = lock.write([scene.effect()]);

    // Assert
    await expect(write).rejects.toMatchObject({ code: 'LEASE_LOST', reason: 'deadline' });
    expect([bench.transport.seen, await scene.effects()]).toEqual([[], 0]);
  });

  test('of which nothing is known yet is a deadline for whoever asserts the lock', async () => {
    // Arrange
    const scene = lockScene(bench);
    const { clock, lock } = await scene.holder();

    // Act
    clock.moveWallClock(HOUR_MS);

    // Assert
    expect(() => {
      lock.assertHeld();
    }).toThrow(LeaseLostError);
    expect(lock.signal.aborted).toBe(false);
  });

  test('a wall clock that is set back an hour neither extends the lease nor loses it', async () => {
    // Arrange
    const scene = lockScene(bench);
    const { clock, lock, events } = await scene.holder({ beats: 'manual' });
    clock.advance(4_000);

    // Act
    clock.moveWallClock(-HOUR_MS);
    const [remainingMs, isHeld] = [lock.remainingMs(), lock.isHeld()];
    clock.advance(5_000);

    // Assert
    expect([remainingMs, isHeld, lock.isHeld()]).toEqual([5_000, true, false]);
    expect(events.map(({ kind }) => kind)).not.toContain('stall');
  });

  test('a stalled process beats once when it goes on, and keeps the lock when nobody took it', async () => {
    // Arrange
    const scene = lockScene(bench);
    const { clock, lock, events } = await scene.holder();

    // Act
    clock.stall(60_000);
    await until(() => lock.isHeld());

    // Assert
    expect([lock.signal.aborted, bench.transport.count(OPERATION)]).toEqual([false, 1]);
    expect(events.filter(({ kind }) => kind === 'stall')).toHaveLength(1);
    expect(events.map(({ kind }) => kind)).not.toContain('lost');
  });
});

describe('L30: the time to live', () => {
  test('grants nothing: a lock whose ttl is long over is held, whether the item is there or not yet deleted', async () => {
    // Arrange
    const scene = lockScene(bench);
    const { lock } = await scene.holder({ beats: 'manual' });
    await bench.truth.update({ key: lockKey(scene.name), change: { set: { ttl: 1 } } });

    // Act
    const attempt = await scene.machine().locks.tryAcquire(scene.name);

    // Assert
    expect(attempt.kind).toBe('busy');
    expect([await lock.renew(), lock.isHeld()]).toEqual([true, true]);
  });

  test('that deletes the item between two beats is a loss, and the next token is larger', async () => {
    // Arrange
    const scene = lockScene(bench);
    const { clock, lock, events } = await scene.holder();
    await bench.truth.transactions.write([{ kind: 'delete', label: 'ttl', key: lockKey(scene.name) }]);

    // Act
    clock.advance(BEAT_MS);
    await until(() => lock.signal.aborted);
    const next = await acquired(scene.machine({ aheadMs: BEAT_MS }).locks, scene.name);

    // Assert
    expect(lock.signal.reason).toMatchObject({ reason: 'deleted' });
    expect(events.at(-1)).toEqual({ kind: 'lost', name: scene.name, reason: 'deleted' });
    expect(next.fencingToken).toBeGreaterThan(lock.fencingToken);
  });
});

describe('listeners', () => {
  test('that throw or reject do no harm to the lock or to other listeners', async () => {
    // Arrange
    const scene = lockScene(bench);
    const { clock, locks, events } = scene.machine();
    locks.on(() => {
      throw new Error('listener');
    });
    locks.on(async () => Promise.reject(new Error('async listener')));
    const lock = await acquired(locks, scene.name);

    // Act
    clock.moveWallClock(HOUR_MS);
    lock.isHeld();
    await new Promise((resolve) => setImmediate(resolve));

    // Assert
    expect(events.map(({ kind }) => kind)).toEqual(['stall']);
  });

  test('are told nothing after they were taken off', async () => {
    // Arrange
    const scene = lockScene(bench);
    const { clock, locks } = scene.machine();
    const told: unknown[] = [];
    const off = locks.on((event) => told.push(event));
    const lock = await acquired(locks, scene.name);

    // Act
    off();
    clock.moveWallClock(HOUR_MS);
    lock.isHeld();

    // Assert
    expect(told).toEqual([]);
  });
});
