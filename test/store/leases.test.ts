import { describe, expect, test } from 'vitest';
import { ConfigurationError } from '../../src/errors.ts';
import type { HeldLease } from '../../src/store/leases/held-lease.ts';
import { resolveLeaseOptions, type LeaseOptions } from '../../src/store/leases/lease-options.ts';
import type { Leases } from '../../src/store/leases/leases.ts';
import { createStore } from '../../src/store/store.ts';
import { lockKey, type Item } from '../../src/store/table.ts';
import { LOCAL_ACCESS, useStoreBench } from '../support/store-bench.ts';
import { StoreClock } from '../support/store-clock.ts';

const bench = useStoreBench();

const OPERATION = 'UpdateItem';

async function acquired(leases: Leases, name: string, holder = 'w1'): Promise<HeldLease> {
  const answer = await leases.tryAcquire(name, holder);
  if (answer.kind !== 'acquired') throw new Error(`${name} is held by ${answer.holder}`);
  return answer.lease;
}

function lockItem(name: string): Promise<Item | undefined> {
  return bench.truth.get(lockKey(name));
}

describe('a lock', () => {
  test('that is free is granted in one request, with everything on the item that a contender needs', async () => {
    // Arrange
    const clock = new StoreClock({ startMs: 1_800_000_000_000 });
    const leases = bench.store({ clock }).leases({ leaseMs: 10_000 });
    const name = bench.unique('lock');

    // Act
    const lease = await acquired(leases, name, 'host:1');

    // Assert
    expect(bench.transport.seen.map(({ operation }) => operation)).toEqual([OPERATION]);
    expect(await lockItem(name)).toEqual({
      ...lockKey(name),
      owner: lease.grant.owner,
      fencingToken: 1_800_000_000_001,
      holder: 'host:1',
      takenFrom: 'nobody',
      heartbeat: 0,
      leaseMs: 10_000,
      expiresAtMs: 1_800_000_010_000,
    });
    expect([lease.isHeld(), lease.remainingMs(), lease.grant.fencingToken]).toEqual([true, 9_000, 1_800_000_000_001]);
  });

  test('that is held is busy in one request, with its holder and how long to wait', async () => {
    // Arrange
    const clock = new StoreClock();
    const leases = bench.store({ clock }).leases({ leaseMs: 10_000, maxClockSkewMs: 500 });
    const name = bench.unique('lock');
    await acquired(leases, name, 'host:1');
    bench.transport.forget();
    clock.advance(4_000);

    // Act
    const answer = await leases.tryAcquire(name, 'host:2');

    // Assert
    expect(answer).toEqual({ kind: 'busy', holder: 'host:1', waitMs: 6_500 });
    expect(bench.transport.count(OPERATION)).toBe(1);
  });

  test('is held on by renewing, in one request each', async () => {
    // Arrange
    const clock = new StoreClock();
    const lease = await acquired(bench.store({ clock }).leases({ leaseMs: 10_000 }), bench.unique('lock'));
    bench.transport.forget();

    // Act
    for (let beat = 0; beat < 5; beat += 1) {
      clock.advance(5_000);
      await lease.renew();
    }

    // Assert
    expect([lease.isHeld(), lease.remainingMs()]).toEqual([true, 9_000]);
    expect(bench.transport.count(OPERATION)).toBe(5);
  });

  test('that was given back can be taken at once, with a higher token', async () => {
    // Arrange
    const leases = bench.store().leases();
    const name = bench.unique('lock');
    const first = await acquired(leases, name);

    // Act
    const isReleased = await first.release();
    const second = await acquired(leases, name);

    // Assert
    expect([isReleased, first.isHeld(), second.isHeld()]).toEqual([true, false, true]);
    expect(second.grant.fencingToken).toBe(first.grant.fencingToken + 1);
    expect(first.signal.aborted).toBe(false);
  });

  test('keeps its item and token when it is given back', async () => {
    // Arrange
    const name = bench.unique('lock');
    const lease = await acquired(bench.store().leases(), name);

    // Act
    await lease.release({ set: { note: 'done' } });

    // Assert
    const item = await lockItem(name);
    expect(item).toMatchObject({ fencingToken: lease.grant.fencingToken, expiresAtMs: 0, note: 'done' });
    expect(item).not.toHaveProperty('owner');
  });

  test('is given back twice without harm', async () => {
    // Arrange
    const lease = await acquired(bench.store().leases(), bench.unique('lock'));

    // Act
    const releases = [await lease.release(), await lease.release()];

    // Assert
    expect(releases).toEqual([true, true]);
  });

  test('cannot be given back by its former holder', async () => {
    // Arrange
    const leases = bench.store().leases();
    const name = bench.unique('lock');
    const former = await acquired(leases, name);
    await bench.truth.update({ key: lockKey(name), change: { remove: ['owner'] } });
    const current = await acquired(leases, name);
    const before = await lockItem(name);

    // Act
    const isReleased = await former.release({ set: { note: 'late' } });

    // Assert
    expect(isReleased).toBe(false);
    expect(await lockItem(name)).toEqual(before);
    expect(current.isHeld()).toBe(true);
  });
});

describe('a late or lost request', () => {
  test('L1: a heartbeat that arrives after the release is refused, and the next acquire takes one request', async () => {
    // Arrange
    const leases = bench.store().leases();
    const name = bench.unique('lock');
    const lease = await acquired(leases, name);
    const late = bench.transport.fault(OPERATION, { kind: 'deliver late' });
    await lease.renew();
    await lease.release();
    const afterRelease = await lockItem(name);

    // Act
    await late.release();
    const afterBeat = await lockItem(name);
    bench.transport.forget();
    const next = await leases.tryAcquire(name, 'w2');

    // Assert
    expect(afterBeat).toEqual(afterRelease);
    expect([next.kind, bench.transport.count(OPERATION)]).toEqual(['acquired', 1]);
  });

  test('L3: beats that were applied while their answers were lost do not lose the lease', async () => {
    // Arrange
    const name = bench.unique('lock');
    const lease = await acquired(bench.store().leases(), name);
    bench.transport.fault(OPERATION, { kind: 'lose the answer' }, { times: 3 });

    // Act
    const isHeld = await lease.renew();

    // Assert
    expect([isHeld, lease.isHeld(), lease.signal.aborted]).toEqual([true, true, false]);
    expect(await lockItem(name)).toMatchObject({
      owner: lease.grant.owner,
      fencingToken: lease.grant.fencingToken,
      heartbeat: 4,
    });
  });

  test('L4: an acquisition whose answer was lost succeeds at once with the token of its first write', async () => {
    // Arrange
    const clock = new StoreClock({ startMs: 1_700_000_000_000 });
    const name = bench.unique('lock');
    bench.transport.fault(OPERATION, { kind: 'lose the answer' }, { times: 2 });

    // Act
    const lease = await acquired(bench.store({ clock }).leases(), name);

    // Assert
    expect(lease.grant.fencingToken).toBe(1_700_000_000_001);
    expect(await lockItem(name)).toMatchObject({
      owner: lease.grant.owner,
      fencingToken: 1_700_000_000_001,
      takenFrom: 'nobody',
    });
    expect(bench.transport.count(OPERATION)).toBe(3);
  });

  test('an acquisition counts from before its first try, whatever its retries took', async () => {
    // Arrange
    const clock = new StoreClock({ waits: 'jump' });
    const leases = bench.store({ clock, random: () => 0.999 }).leases({ leaseMs: 10_000 });
    const startMs = clock.monotonicMs();
    bench.transport.fault(OPERATION, { kind: 'lose the answer' }, { times: 3 });

    // Act
    const lease = await acquired(leases, bench.unique('lock'));

    // Assert
    const tookMs = clock.monotonicMs() - startMs;
    expect(tookMs).toBeGreaterThan(0);
    expect(lease.remainingMs()).toBe(9_000 - tookMs);
  });

  test('a release that was applied while its answer was lost is a release', async () => {
    // Arrange
    const lease = await acquired(bench.store().leases(), bench.unique('lock'));
    bench.transport.fault(OPERATION, { kind: 'lose the answer' }, { times: 2 });

    // Act
    const isReleased = await lease.release();

    // Assert
    expect(isReleased).toBe(true);
  });

  test('a release that the network sent twice does not release the next holder', async () => {
    // Arrange
    const leases = bench.store().leases();
    const name = bench.unique('lock');
    const first = await acquired(leases, name);
    const late = bench.transport.fault(OPERATION, { kind: 'deliver late' });
    await first.release();
    const second = await acquired(leases, name);

    // Act
    await late.release();

    // Assert
    expect(await lockItem(name)).toMatchObject({ owner: second.grant.owner });
    expect(await second.renew()).toBe(true);
  });

  test('an acquisition is given up after a bounded number of tries', async () => {
    // Arrange
    bench.transport.fault(OPERATION, { kind: 'lose the request' }, { times: 1_000 });

    // Act
    const answer = bench.store().leases().tryAcquire(bench.unique('lock'), 'w1');

    // Assert
    await expect(answer).rejects.toMatchObject({ code: 'BACKEND', reason: 'ambiguous' });
    expect(bench.transport.count(OPERATION)).toBe(4);
  });

  test('an acquisition that is not allowed is not repeated', async () => {
    // Arrange
    bench.transport.fault(OPERATION, { kind: 'refuse', name: 'AccessDeniedException' }, { times: 1_000 });

    // Act
    const answer = bench.store().leases().tryAcquire(bench.unique('lock'), 'w1');

    // Assert
    await expect(answer).rejects.toMatchObject({ reason: 'denied' });
    expect(bench.transport.count(OPERATION)).toBe(1);
  });

  test.each(['TransactionConflictException', 'ThrottlingException', 'InternalServerError'])(
    '%s on an acquisition or a beat passes',
    async (name) => {
      // Arrange
      const refuse = { kind: 'refuse', name, status: name === 'InternalServerError' ? 500 : 400 } as const;
      bench.transport.fault(OPERATION, refuse, { times: 2 });
      const lease = await acquired(bench.store().leases(), bench.unique('lock'));
      bench.transport.fault(OPERATION, refuse, { times: 2 });

      // Act
      const isHeld = await lease.renew();

      // Assert
      expect(isHeld).toBe(true);
    },
  );
});

describe('many contenders', () => {
  test('64 at once: exactly one is granted, in every round, and tokens only ever grow', async () => {
    // Arrange
    const [left, right] = [bench.store().leases(), bench.store().leases()];
    const name = bench.unique('lock');
    const tokens: number[] = [];
    const grantsPerRound: number[] = [];

    // Act
    for (let round = 0; round < 12; round += 1) {
      const tries = Array.from({ length: 64 }, (_, index) =>
        (index % 2 === 0 ? left : right).tryAcquire(name, `w${String(index)}`),
      );
      const answers = await Promise.all(tries);
      const granted = answers.flatMap((answer) => (answer.kind === 'acquired' ? [answer.lease] : []));
      grantsPerRound.push(granted.length);
      tokens.push(...granted.map((lease) => lease.grant.fencingToken));
      await Promise.all(granted.map((lease) => lease.release()));
      if (round % 4 === 3)
        await bench.truth.transactions.write([{ kind: 'delete', label: 'lock', key: lockKey(name) }]);
    }

    // Assert
    expect(grantsPerRound).toEqual(Array.from({ length: 12 }, () => 1));
    expect(tokens).toEqual(tokens.toSorted((first, second) => first - second));
    expect(new Set(tokens).size).toBe(12);
  });

  test('a token grows past all earlier ones although the item was deleted in between', async () => {
    // Arrange
    const clock = new StoreClock();
    const leases = bench.store({ clock }).leases();
    const name = bench.unique('lock');
    let lastToken = 0;
    for (let grant = 0; grant < 20; grant += 1) {
      const lease = await acquired(leases, name);
      lastToken = lease.grant.fencingToken;
      await lease.release();
    }
    await bench.truth.transactions.write([{ kind: 'delete', label: 'lock', key: lockKey(name) }]);
    clock.advance(1_000);

    // Act
    const lease = await acquired(leases, name);

    // Assert
    expect(lease.grant.fencingToken).toBeGreaterThan(lastToken);
  });
});

describe('lease options', () => {
  test('have defaults that fit together for any allowed length', () => {
    for (const leaseMs of [500, 1_000, 20_000, 600_000]) {
      const { lease, faults } = resolveLeaseOptions({ leaseMs });
      expect(faults).toEqual([]);
      expect(lease.leaseMs).toBeGreaterThanOrEqual(3 * lease.heartbeatMs + lease.safetyMarginMs);
    }
  });

  test.each<[string, LeaseOptions, string[]]>([
    ['too short a lease', { leaseMs: 400 }, ['leaseMs', 'safetyMarginMs']],
    ['beats that are too far apart', { leaseMs: 10_000, heartbeatMs: 3_200 }, ['leaseMs']],
    ['no number', { takeoverGraceMs: Number.NaN, maxClockSkewMs: -1 }, ['maxClockSkewMs', 'takeoverGraceMs']],
  ])('%s is refused with every wrong option named', (_title, options, names) => {
    // Act
    const build = () => createStore({ ...LOCAL_ACCESS }).leases(options);

    // Assert
    expect(build).toThrow(ConfigurationError);
    expect(resolveLeaseOptions(options).faults.map(({ name }) => name)).toEqual(names);
  });
});
