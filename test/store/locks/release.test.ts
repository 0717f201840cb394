/** The release of a lock, and the acquisition next to it: what is lost, late or repeated on the way. */
import { describe, expect, test } from 'vitest';
import { lockKey } from '../../../src/store/table.ts';
import { useStoreBench } from '../../support/store-bench.ts';
import { until } from '../../support/until.ts';
import { acquired, BEAT_MS, LOCK_LEASE, lockScene, START_MS } from '../../support/store-locks.ts';

const bench = useStoreBench();
const UPDATE = 'UpdateItem';

/** By hand, as an operator's tool does it. */
async function freeByHand(name: string): Promise<void> {
  await bench.truth.update({ key: lockKey(name), change: { set: { expiresAtMs: 0 }, remove: ['owner'] } });
}

async function failureOf(promise: Promise<unknown>): Promise<unknown> {
  return promise.then(
    () => undefined,
    (error: unknown) => error,
  );
}

describe('the release', () => {
  test('L1: a beat that arrives after it is rejected, and the next acquires in one request', async () => {
    // Arrange
    const scene = lockScene(bench);
    const { clock, lock } = await scene.holder();
    const beat = bench.transport.fault(UPDATE, { kind: 'hold' });
    clock.advance(BEAT_MS);
    await beat.hit;
    const released = lock.release();
    clock.advance(LOCK_LEASE.heartbeatMs);
    await released;
    const free = await scene.item();

    // Act
    await beat.release();
    const afterBeat = await scene.item();
    bench.transport.forget();
    await acquired(scene.machine().locks, scene.name);

    // Assert
    expect(afterBeat).toEqual(free);
    expect(bench.transport.seen.map(({ operation }) => operation)).toEqual([UPDATE]);
  });

  test('L2: waits for a beat without an answer no longer than one beat, and the item is free when it resolves', async () => {
    // Arrange
    const scene = lockScene(bench);
    const { clock, lock } = await scene.holder({ store: { requestTimeoutMs: 60_000 } });
    const beat = bench.transport.fault(UPDATE, { kind: 'never answer' });
    clock.advance(BEAT_MS);
    await beat.hit;

    // Act
    const released = lock.release();
    clock.advance(LOCK_LEASE.heartbeatMs);

    // Assert
    expect(await released).toBe('released');
    expect(await scene.item()).toMatchObject({ expiresAtMs: 0, fencingToken: lock.fencingToken });
    expect(await scene.item()).not.toHaveProperty('owner');
  });

  test('whose answer was lost is known to have landed', async () => {
    // Arrange
    const scene = lockScene(bench);
    const { lock } = await scene.holder();
    bench.transport.fault(UPDATE, { kind: 'lose the answer' });

    // Act
    const answer = await lock.release();

    // Assert
    expect([answer, bench.transport.count(UPDATE)]).toEqual(['released', 2]);
  });

  test('can be repeated, and costs one request', async () => {
    // Arrange
    const scene = lockScene(bench);
    const { clock, lock } = await scene.holder();

    // Act
    const answers = [...(await Promise.all([lock.release(), lock.release()])), await lock.release()];
    clock.advance(60_000);

    // Assert
    expect([answers, bench.transport.count(UPDATE)]).toEqual([['released', 'released', 'released'], 1]);
    expect([clock.pendingTimers, lock.isHeld(), lock.signal.aborted, lock.remainingMs()]).toEqual([0, false, false, 0]);
  });

  test('that failed can be tried again', async () => {
    // Arrange
    const scene = lockScene(bench);
    const { lock } = await scene.holder();
    bench.transport.fault(UPDATE, { kind: 'refuse', name: 'AccessDeniedException' });

    // Act
    const first = await failureOf(lock.release());
    const second = await lock.release();

    // Assert
    expect(first).toMatchObject({ code: 'BACKEND', reason: 'denied' });
    expect([second, (await scene.item())?.['owner']]).toEqual(['released', undefined]);
  });

  test('of a lock that another has changes nothing', async () => {
    // Arrange
    const scene = lockScene(bench);
    const { clock, lock, events } = await scene.holder({ beats: 'manual' });
    await scene.takeOver(clock);
    const before = await scene.item();

    // Act
    const unaware = await lock.release();

    // Assert
    expect([unaware, events]).toEqual(['not owner', []]);
    expect(await scene.item()).toEqual(before);
  });

  test('after a known theft sends nothing', async () => {
    // Arrange
    const scene = lockScene(bench);
    const { clock, lock } = await scene.holder();
    await scene.takeOver(clock);
    await lock.renew();
    bench.transport.forget();

    // Act
    const answer = await lock.release();

    // Assert
    expect([answer, bench.transport.seen]).toEqual(['not owner', []]);
  });

  test('after a loss by the deadline still frees the lock for the next', async () => {
    // Arrange
    const scene = lockScene(bench);
    const { clock, lock } = await scene.holder({ beats: 'manual' });
    clock.advance(9_000);

    // Act
    const answer = await lock.release();

    // Assert
    expect([lock.signal.reason, answer]).toMatchObject([{ reason: 'deadline' }, 'released']);
    await acquired(scene.machine().locks, scene.name);
  });
});

describe('the release after the longest hold', () => {
  test('does not wait for a beat that hangs', async () => {
    // Arrange
    const scene = lockScene(bench);
    const { clock, lock } = await scene.holder({ maxHoldMs: 11_300, store: { requestTimeoutMs: 60_000 } });
    for (let beat = 0; beat < 4; beat += 1) {
      clock.advance(BEAT_MS);
      await until(() => lock.remainingMs() === 9_000);
    }
    const hanging = bench.transport.fault(UPDATE, { kind: 'never answer' });
    clock.advance(BEAT_MS);
    await hanging.hit;

    // Act
    clock.advance(50);
    const answer = await lock.release();

    // Assert
    expect([lock.signal.reason, answer]).toMatchObject([{ reason: 'maxHold' }, 'released']);
    expect(await scene.item()).not.toHaveProperty('owner');
  });
});

describe('await using and using', () => {
  test('release at the end of the block', async () => {
    // Arrange
    const scene = lockScene(bench);
    const { locks } = scene.machine();

    // Act
    {
      await using lock = await locks.acquire(scene.name);
      expect(lock.isHeld()).toBe(true);
    }

    // Assert
    expect(await scene.item()).not.toHaveProperty('owner');
  });

  test('let the error of the work win over a release that fails, which is told by an event', async () => {
    // Arrange
    const scene = lockScene(bench);
    const { locks, events } = scene.machine();
    const workFails = new Error('work');
    const denied = { kind: 'refuse', name: 'AccessDeniedException' } as const;
    const inBlock = async (): Promise<void> => {
      await using _lock = await locks.acquire(scene.name);
      bench.transport.fault(UPDATE, denied, { times: 10 });
      throw workFails;
    };

    // Act
    const failures = [await failureOf(inBlock())];
    bench.transport.heal();
    await freeByHand(scene.name);
    failures.push(
      await failureOf(
        locks.using(scene.name, () => {
          bench.transport.fault(UPDATE, denied, { times: 10 });
          throw workFails;
        }),
      ),
    );

    // Assert
    expect(failures).toEqual([workFails, workFails]);
    expect(events).toMatchObject([
      { kind: 'releaseFailed', name: scene.name, error: { reason: 'denied' } },
      { kind: 'releaseFailed', name: scene.name },
    ]);
  });

  test('give what the work gives, also when the release fails', async () => {
    // Arrange
    const scene = lockScene(bench);
    const { locks } = scene.machine();

    // Act
    const result = await locks.using(scene.name, async (lock) => {
      bench.transport.fault(UPDATE, { kind: 'refuse', name: 'AccessDeniedException' }, { times: 10 });
      return Promise.resolve(lock.fencingToken);
    });

    // Assert
    expect(result).toBeGreaterThan(START_MS);
  });
});

describe('an acquisition', () => {
  test('L4: whose answer was lost succeeds at once, with the token of the first write', async () => {
    // Arrange
    const scene = lockScene(bench);
    const { locks } = scene.machine();
    bench.transport.fault(UPDATE, { kind: 'lose the answer' });

    // Act
    const lock = await acquired(locks, scene.name);

    // Assert
    expect([lock.fencingToken, bench.transport.count(UPDATE)]).toEqual([START_MS + 1, 2]);
    expect(await lock.renew()).toBe(true);
  });
});
