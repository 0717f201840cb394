/** What a holder knows of its own lease while time does what time does to machines. */
import { afterEach, describe, expect, test } from 'vitest';
import { LeaseLostError, type HeldLease } from '../../src/store/leases/held-lease.ts';
import type { StoreOptions } from '../../src/store/store.ts';
import { lockKey } from '../../src/store/table.ts';
import { useStoreBench } from '../support/store-bench.ts';
import { StoreClock } from '../support/store-clock.ts';
import { until } from '../support/until.ts';

const bench = useStoreBench();

const OPERATION = 'UpdateItem';
const LEASE = { leaseMs: 10_000, heartbeatMs: 2_500, safetyMarginMs: 1_000, maxClockSkewMs: 500 } as const;

const unhandled: unknown[] = [];
const noteUnhandled = (reason: unknown): void => {
  unhandled.push(reason);
};
process.on('unhandledRejection', noteUnhandled);
process.on('uncaughtException', noteUnhandled);
afterEach(() => {
  unhandled.length = 0;
});

interface Held {
  readonly clock: StoreClock;
  readonly name: string;
  readonly lease: HeldLease;
}

async function held(options: StoreOptions = {}): Promise<Held> {
  const clock = new StoreClock();
  const name = bench.unique('lock');
  const answer = await bench
    .store({ clock, ...options })
    .leases(LEASE)
    .tryAcquire(name, 'w1');
  if (answer.kind !== 'acquired') throw new Error('the lock is not free');
  bench.transport.forget();
  return { clock, name, lease: answer.lease };
}

/** Another takes the lock over: its clock is beyond the end of the lease. */
async function takeOver(name: string, from: StoreClock): Promise<HeldLease> {
  const clock = new StoreClock({ startMs: from.nowMs() + LEASE.leaseMs + LEASE.maxClockSkewMs + 1 });
  const answer = await bench.store({ clock }).leases(LEASE).tryAcquire(name, 'w2');
  if (answer.kind !== 'acquired') throw new Error('the lock could not be taken over');
  bench.transport.forget();
  return answer.lease;
}

function lossOf(lease: HeldLease): LeaseLostError | undefined {
  const reason: unknown = lease.signal.reason;
  if (!lease.signal.aborted) return undefined;
  if (reason instanceof LeaseLostError) return reason;
  throw new Error('aborted with something else', { cause: reason });
}

describe('validity', () => {
  test('ends the safety margin before the lease does', async () => {
    // Arrange
    const { clock, lease } = await held();

    // Act
    clock.stallBeforeTimers(8_999);
    const before = lease.isHeld();
    clock.stallBeforeTimers(1);

    // Assert
    expect([before, lease.isHeld(), lease.remainingMs()]).toEqual([true, false, 0]);
  });

  test('counts a renewal from before it was sent', async () => {
    // Arrange
    const { clock, lease } = await held();
    const beat = bench.transport.fault(OPERATION, { kind: 'hold' });
    const renewed = lease.renew();
    await beat.hit;
    clock.stallBeforeTimers(2_000);

    // Act
    await beat.release();
    await renewed;

    // Assert
    expect(lease.remainingMs()).toBe(7_000);
  });

  test('is not extended by a wall clock that is set back', async () => {
    // Arrange
    const { clock, lease } = await held();
    clock.stallBeforeTimers(4_000);

    // Act
    clock.moveWallClock(-3_600_000);
    const remainingMs = lease.remainingMs();
    clock.stallBeforeTimers(5_000);

    // Assert
    expect([remainingMs, lease.isHeld()]).toEqual([5_000, false]);
  });

  test('is over when the wall clock says so, although the monotonic clock stood still', async () => {
    // Arrange
    const { clock, lease } = await held();

    // Act
    clock.moveWallClock(3_600_000);

    // Assert
    expect([lease.isHeld(), lease.signal.aborted]).toEqual([false, false]);
  });
});

describe('after a suspend', () => {
  test('one renewal makes sure of the lease when nobody took over', async () => {
    // Arrange
    const { clock, lease } = await held();
    clock.moveWallClock(3_600_000);

    // Act
    await lease.ensureHeld();

    // Assert
    expect([lease.isHeld(), lease.remainingMs(), bench.transport.count(OPERATION)]).toEqual([true, 9_000, 1]);
  });

  test('callers at the same time share that one renewal', async () => {
    // Arrange
    const { clock, lease } = await held();
    clock.moveWallClock(3_600_000);

    // Act
    await Promise.all([lease.ensureHeld(), lease.ensureHeld(), lease.ensureHeld()]);

    // Assert
    expect(bench.transport.count(OPERATION)).toBe(1);
  });

  test('the next beat makes sure of the lease by itself', async () => {
    // Arrange
    const { clock, lease } = await held();
    clock.moveWallClock(3_600_000);

    // Act
    const isHeld = await lease.renew();

    // Assert
    expect([isHeld, lease.isHeld(), bench.transport.count(OPERATION)]).toEqual([true, true, 1]);
  });

  test('the watchdog asks once before it calls the lease lost', async () => {
    // Arrange
    const { clock, lease } = await held();
    clock.moveWallClock(3_600_000);
    const beat = bench.transport.fault(OPERATION, { kind: 'send twice' });

    // Act
    clock.advance(9_000);
    await beat.hit;
    await until(() => lease.isHeld());

    // Assert
    expect(lease.signal.aborted).toBe(false);
  });

  test('a lease that was taken over meanwhile is stolen', async () => {
    // Arrange
    const { clock, name, lease } = await held();
    clock.moveWallClock(3_600_000);
    const successor = await takeOver(name, clock);

    // Act
    const ensured = lease.ensureHeld();

    // Assert
    await expect(ensured).rejects.toMatchObject({ reason: 'stolen', observedToken: successor.grant.fencingToken });
    expect(lossOf(lease)?.reason).toBe('stolen');
  });

  test('a lease that cannot be made sure of is lost by its deadline', async () => {
    // Arrange
    const { clock, lease } = await held();
    clock.moveWallClock(3_600_000);
    bench.transport.fault(OPERATION, { kind: 'lose the request' }, { times: 100 });

    // Act
    const ensured = lease.ensureHeld();

    // Assert
    await expect(ensured).rejects.toMatchObject({ code: 'LEASE_LOST', reason: 'deadline' });
    expect(bench.transport.count(OPERATION)).toBe(1);
  });
});

describe('the watchdog', () => {
  test('calls the lease lost when an outage outlasts it', async () => {
    // Arrange
    const { clock, lease } = await held();
    bench.transport.fault(OPERATION, { kind: 'never answer' }, { times: 1_000 });
    const renewed = lease.renew();

    // Act
    clock.advance(9_000);

    // Assert
    expect(lossOf(lease)?.reason).toBe('deadline');
    expect(await renewed).toBe(false);
  });

  test('says nothing while renewals succeed', async () => {
    // Arrange
    const { clock, lease } = await held();

    // Act
    for (let beat = 0; beat < 20; beat += 1) {
      clock.advance(8_999);
      await lease.renew();
    }

    // Assert
    expect([lease.isHeld(), lossOf(lease)]).toEqual([true, undefined]);
  });

  test('that runs late after a stall asks once, and the lease is still held when nobody took over', async () => {
    // Arrange
    const { clock, lease } = await held();

    // Act
    clock.stall(60_000);
    await until(() => lease.isHeld());

    // Assert
    expect([lease.signal.aborted, lease.remainingMs(), bench.transport.count(OPERATION)]).toEqual([false, 9_000, 1]);
  });

  test('that runs late after a stall tells of a takeover', async () => {
    // Arrange
    const { clock, name, lease } = await held();
    clock.stallBeforeTimers(60_000);
    const successor = await takeOver(name, clock);

    // Act
    clock.runDue();
    await until(() => lease.signal.aborted);

    // Assert
    expect(lossOf(lease)).toMatchObject({ reason: 'stolen', observedToken: successor.grant.fencingToken });
  });

  test('leaves no timer behind after a release or a loss', async () => {
    // Arrange
    const [released, lost] = [await held(), await held()];

    // Act
    await released.lease.release();
    lost.clock.advance(9_000);

    // Assert
    expect([released.clock.pendingTimers, lost.clock.pendingTimers]).toEqual([0, 0]);
  });
});

describe('a beat', () => {
  test('is cut off by its own time-out and repeated while the lease lasts', async () => {
    // Arrange
    // The client itself would wait for a minute.
    const { clock, lease } = await held({ requestTimeoutMs: 60_000 });
    const frozen = bench.transport.fault(OPERATION, { kind: 'never answer' });
    const renewed = lease.renew();
    await frozen.hit;

    // Act
    clock.advance(LEASE.heartbeatMs);

    // Assert
    expect([await renewed, lease.isHeld(), lease.remainingMs()]).toEqual([true, true, 9_000]);
  });

  test('that is not allowed leaves the lease held until its time is over', async () => {
    // Arrange
    const { clock, lease } = await held();
    bench.transport.fault(OPERATION, { kind: 'refuse', name: 'AccessDeniedException' }, { times: 1_000 });

    // Act
    const isHeld = await lease.renew();
    clock.advance(9_000);

    // Assert
    expect([isHeld, lease.isHeld(), lossOf(lease)?.reason]).toEqual([true, false, 'deadline']);
  });

  test('is not sent by a lease that ended or was lost', async () => {
    // Arrange
    const [ended, lost] = [await held(), await held()];
    ended.lease.end();
    lost.clock.advance(9_000);
    bench.transport.forget();

    // Act
    const beats = [await ended.lease.renew(), await lost.lease.renew()];

    // Assert
    expect([beats, bench.transport.count(OPERATION)]).toEqual([[false, false], 0]);
  });

  test('never overlaps with another beat or the release of its lease', async () => {
    // Arrange
    const { name, lease } = await held();
    const first = bench.transport.fault(OPERATION, { kind: 'hold' });
    const beats = [lease.renew(), lease.renew()];
    await first.hit;
    const released = lease.release();

    // Act
    const sentWhileHeld = bench.transport.count(OPERATION);
    await first.release();
    await Promise.all([...beats, released]);

    // Assert
    expect([sentWhileHeld, await released, bench.transport.count(OPERATION)]).toEqual([1, true, 2]);
    expect(await bench.truth.get(lockKey(name))).not.toHaveProperty('owner');
  });
});

describe('a loss', () => {
  test.each<[string, (scene: Held) => Promise<unknown>]>([
    ['stolen', ({ name, clock }) => takeOver(name, clock)],
    ['released', ({ name }) => bench.truth.update({ key: lockKey(name), change: { remove: ['owner'] } })],
    ['deleted', ({ name }) => bench.truth.transactions.write([{ kind: 'delete', label: 'lock', key: lockKey(name) }])],
  ])('is told as %s by what the item says', async (reason, act) => {
    // Arrange
    const scene = await held();
    await act(scene);

    // Act
    const isHeld = await scene.lease.renew();

    // Assert
    expect([isHeld, scene.lease.isHeld()]).toEqual([false, false]);
    expect(lossOf(scene.lease)).toMatchObject({
      name: 'LeaseLostError',
      code: 'LEASE_LOST',
      reason,
      fencingToken: scene.lease.grant.fencingToken,
    });
  });

  test('aborts a wait of the handler with its error', async () => {
    // Arrange
    const { name, clock, lease } = await held();
    const aborted = new Promise((resolve) => {
      lease.signal.addEventListener('abort', () => {
        resolve(lease.signal.reason);
      });
    });
    await takeOver(name, clock);

    // Act
    await lease.renew();

    // Assert
    expect(await aborted).toBeInstanceOf(LeaseLostError);
  });

  test('without any listener crashes nothing and leaves no rejection unhandled', async () => {
    // Arrange
    const [stolen, late] = [await held(), await held()];
    await takeOver(stolen.name, stolen.clock);

    // Act
    await stolen.lease.renew();
    late.clock.advance(9_000);
    await new Promise((resolve) => setImmediate(resolve));

    // Assert
    expect([stolen.lease.signal.aborted, late.lease.signal.aborted, unhandled]).toEqual([true, true, []]);
  });

  test('is told once: a release after it says false and changes nothing', async () => {
    // Arrange
    const { name, clock, lease } = await held();
    await takeOver(name, clock);
    await lease.renew();
    const [loss, before] = [lossOf(lease), await bench.truth.get(lockKey(name))];

    // Act
    const isReleased = await lease.release();

    // Assert
    expect([isReleased, lossOf(lease) === loss]).toEqual([false, true]);
    expect(await bench.truth.get(lockKey(name))).toEqual(before);
  });

  test('by the deadline still lets the lease be given back, so that the next need not wait', async () => {
    // Arrange
    const { clock, name, lease } = await held();
    clock.advance(9_000);

    // Act
    const isReleased = await lease.release();

    // Assert
    expect([lossOf(lease)?.reason, isReleased]).toEqual(['deadline', true]);
    expect(await bench.truth.get(lockKey(name))).not.toHaveProperty('owner');
  });

  test('is no longer told after the lease ended', async () => {
    // Arrange
    const { clock, lease } = await held();

    // Act
    lease.end();
    clock.advance(60_000);

    // Assert
    expect([lease.isHeld(), lease.signal.aborted]).toEqual([false, false]);
    await expect(lease.ensureHeld()).rejects.toMatchObject({ reason: 'released' });
  });
});
