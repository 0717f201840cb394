/** Who gets a lock whose holder has crashed, and what happens when clocks disagree. */
import { describe, expect, test } from 'vitest';
import { useStoreBench } from '../../support/store-bench.ts';
import { acquired, HOUR_MS, LOCK_LEASE, lockScene, SILENCE_MS } from '../../support/store-locks.ts';

const bench = useStoreBench();
const EVERY_MS = 200;

describe('L6: a process that only ever tries, every 200 ms,', () => {
  test.each<['expiry-or-observed' | 'observed', number]>([
    ['expiry-or-observed', LOCK_LEASE.leaseMs + LOCK_LEASE.maxClockSkewMs + EVERY_MS],
    ['observed', SILENCE_MS + EVERY_MS],
  ])('gets a crashed holder’s lock in time by %s, each try being one request', async (takeover, withinMs) => {
    // Arrange
    const scene = lockScene(bench);
    const crashed = await scene.holder({ beats: 'manual' });
    const { clock, locks } = scene.machine({ takeover });

    // Act
    let tries = 0;
    let attempt = await locks.tryAcquire(scene.name);
    while (attempt.kind === 'busy' && tries < 100) {
      clock.advance(EVERY_MS);
      tries += 1;
      attempt = await locks.tryAcquire(scene.name);
    }

    // Assert
    expect(attempt).toMatchObject({ kind: 'acquired', lock: { fencingToken: crashed.lock.fencingToken + 1 } });
    expect(tries * EVERY_MS).toBeLessThanOrEqual(withinMs);
    expect(tries * EVERY_MS).toBeGreaterThan(LOCK_LEASE.leaseMs);
    expect(bench.transport.seen).toHaveLength(tries + 1);
  });
});

describe('L7: a crashed holder whose clock was an hour ahead', () => {
  test.each(['expiry-or-observed', 'observed'] as const)(
    'is taken over one lease and the grace after it was first seen, by %s',
    async (takeover) => {
      // Arrange
      const scene = lockScene(bench);
      const crashed = await scene.holder({ aheadMs: HOUR_MS, beats: 'manual' });
      const { clock, locks } = scene.machine({ takeover });
      const first = await locks.tryAcquire(scene.name);

      // Act
      clock.advance(SILENCE_MS - 1);
      const early = await locks.tryAcquire(scene.name);
      clock.advance(1);
      const late = await locks.tryAcquire(scene.name);

      // Assert
      expect([first, early]).toMatchObject([
        { kind: 'busy', waitMs: SILENCE_MS },
        { kind: 'busy', waitMs: 1 },
      ]);
      expect(late).toMatchObject({ kind: 'acquired', lock: { fencingToken: crashed.lock.fencingToken + 1 } });
    },
  );
});

describe('L8: a contender whose clock is an hour ahead', () => {
  test('never takes a healthy holder over by observation, in 50 leases', async () => {
    // Arrange
    const scene = lockScene(bench);
    const { clock, lock, events } = await scene.holder({ beats: 'manual' });
    const contender = scene.machine({ aheadMs: HOUR_MS, takeover: 'observed' });

    // Act
    const answers = new Set<string>();
    for (let beat = 0; beat < 200; beat += 1) {
      answers.add((await contender.locks.tryAcquire(scene.name)).kind);
      for (const each of [clock, contender.clock]) each.advance(LOCK_LEASE.heartbeatMs);
      await lock.renew();
    }

    // Assert
    expect([answers, lock.isHeld(), events]).toEqual([new Set(['busy']), true, []]);
  });

  test('may take it over by the clock: the holder is told, and the effect is applied exactly once', async () => {
    // Arrange
    const scene = lockScene(bench);
    const { lock } = await scene.holder();
    const contender = scene.machine({ aheadMs: HOUR_MS });

    // Act
    const taken = await acquired(contender.locks, scene.name);
    const writes = await Promise.allSettled([lock.finish([scene.effect()]), taken.finish([scene.effect()])]);

    // Assert
    expect(writes.map(({ status }) => status)).toEqual(['rejected', 'fulfilled']);
    expect(lock.signal.reason).toMatchObject({ reason: 'stolen', observedToken: taken.fencingToken });
    expect(await scene.effects()).toBe(1);
  });

  test('is not helped by a wall clock that jumps while it only observes', async () => {
    // Arrange
    const scene = lockScene(bench);
    await scene.holder({ beats: 'manual' });
    const contender = scene.machine({ takeover: 'observed' });
    await contender.locks.tryAcquire(scene.name);

    // Act
    contender.clock.moveWallClock(HOUR_MS);

    // Assert
    expect(await contender.locks.tryAcquire(scene.name)).toMatchObject({ kind: 'busy', waitMs: SILENCE_MS });
  });
});
