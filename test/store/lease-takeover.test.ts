/** Who may take a lease that somebody holds, when, and what the former holder can still do. */
import { describe, expect, test } from 'vitest';
import type { HeldLease } from '../../src/store/leases/held-lease.ts';
import { createLeaseObservations } from '../../src/store/leases/lease-observations.ts';
import { checkedLeaseOptions } from '../../src/store/leases/lease-options.ts';
import { fenceAndFinish, fenceAndRenew, fenceCheck, type Leases } from '../../src/store/leases/leases.ts';
import { lockKey } from '../../src/store/table.ts';
import type { TransactionAction } from '../../src/store/transactions/transaction.ts';
import { TransactionCancelledError } from '../../src/store/transactions/transaction-writer.ts';
import { useStoreBench } from '../support/store-bench.ts';
import { StoreClock } from '../support/store-clock.ts';

const bench = useStoreBench();

const LEASE = { leaseMs: 10_000, heartbeatMs: 2_500, maxClockSkewMs: 500, takeoverGraceMs: 250 } as const;
/** A lease that is silent for this long on a contender's own clock is dead: 1 % drift and the grace on top. */
const SILENCE_MS = 10_350;
const HOUR_MS = 3_600_000;
const START_MS = 1_800_000_000_000;

/** One machine with a clock of its own. */
function machine(startMs = START_MS): { clock: StoreClock; leases: Leases } {
  const clock = new StoreClock({ startMs });
  return { clock, leases: bench.store({ clock }).leases(LEASE) };
}

async function acquired(leases: Leases, name: string): Promise<HeldLease> {
  const answer = await leases.tryAcquire(name, 'w');
  if (answer.kind !== 'acquired') throw new Error(`${name} is held, for ${String(answer.waitMs)} ms`);
  return answer.lease;
}

describe('a takeover by the clock', () => {
  test('waits for the end of the lease and the clock skew on top', async () => {
    // Arrange
    const name = bench.unique('lock');
    const [dead, contender] = [machine(), machine()];
    const former = await acquired(dead.leases, name);
    contender.clock.advance(LEASE.leaseMs + LEASE.maxClockSkewMs);

    // Act
    const early = await contender.leases.tryAcquire(name, 'w2');
    contender.clock.advance(1);
    const late = await contender.leases.tryAcquire(name, 'w2');

    // Assert
    expect(early.kind).toBe('busy');
    expect(late).toMatchObject({
      kind: 'acquired',
      lease: { grant: { fencingToken: former.grant.fencingToken + 1 } },
    });
  });

  test('does not happen to a healthy holder, however long it holds', async () => {
    // Arrange
    const name = bench.unique('lock');
    const [holder, contender] = [machine(), machine()];
    const lease = await acquired(holder.leases, name);

    // Act
    const answers: string[] = [];
    for (let beat = 0; beat < 40; beat += 1) {
      for (const { clock } of [holder, contender]) clock.advance(LEASE.heartbeatMs);
      await lease.renew();
      answers.push((await contender.leases.tryAcquire(name, 'w2')).kind);
    }

    // Assert
    expect(new Set(answers)).toEqual(new Set(['busy']));
    expect(lease.isHeld()).toBe(true);
  });

  test('leaves the displaced owner on the item', async () => {
    // Arrange
    const name = bench.unique('lock');
    const former = await acquired(machine().leases, name);

    // Act
    await acquired(machine(START_MS + HOUR_MS).leases, name);

    // Assert
    expect(await bench.truth.get(lockKey(name))).toMatchObject({ takenFrom: former.grant.owner });
  });
});

describe('a takeover by observation', () => {
  test('recovers a dead holder whose clock was an hour ahead', async () => {
    // Arrange
    const name = bench.unique('lock');
    const former = await acquired(machine(START_MS + HOUR_MS).leases, name);
    const contender = machine();
    const first = await contender.leases.tryAcquire(name, 'w2');

    // Act
    contender.clock.advance(SILENCE_MS - 1);
    const early = await contender.leases.tryAcquire(name, 'w2');
    contender.clock.advance(1);
    const late = await contender.leases.tryAcquire(name, 'w2');

    // Assert
    expect([first, early].map((answer) => answer.kind === 'busy' && answer.waitMs)).toEqual([SILENCE_MS, 1]);
    if (late.kind !== 'acquired') throw new Error('not recovered');
    expect(late.lease.grant.fencingToken).toBe(former.grant.fencingToken + 1);
  });

  test('never happens to a holder that beats, although its clock is an hour ahead', async () => {
    // Arrange
    const name = bench.unique('lock');
    const [holder, contender] = [machine(START_MS + HOUR_MS), machine()];
    const lease = await acquired(holder.leases, name);

    // Act
    const answers: string[] = [];
    for (let beat = 0; beat < 12; beat += 1) {
      answers.push((await contender.leases.tryAcquire(name, 'w2')).kind);
      for (const { clock } of [holder, contender]) clock.advance(8_500);
      await lease.renew();
    }

    // Assert
    expect(new Set(answers)).toEqual(new Set(['busy']));
  });

  test('is refused by the write itself when the holder has beaten since it was last seen', async () => {
    // Arrange
    const name = bench.unique('lock');
    const [holder, contender] = [machine(START_MS + HOUR_MS), machine()];
    const lease = await acquired(holder.leases, name);
    await contender.leases.tryAcquire(name, 'w2');
    contender.clock.advance(SILENCE_MS);
    await lease.renew();

    // Act
    const answer = await contender.leases.tryAcquire(name, 'w2');

    // Assert
    expect(answer).toMatchObject({ kind: 'busy', waitMs: SILENCE_MS });
    expect(await lease.renew()).toBe(true);
  });

  test('is not helped by a contender whose wall clock jumps: only its monotonic clock counts silence', async () => {
    // Arrange
    const name = bench.unique('lock');
    await acquired(machine(START_MS + 2 * HOUR_MS).leases, name);
    const contender = machine();
    await contender.leases.tryAcquire(name, 'w2');

    // Act
    contender.clock.moveWallClock(HOUR_MS);
    const answer = await contender.leases.tryAcquire(name, 'w2');

    // Assert
    expect(answer.kind).toBe('busy');
  });
});

describe('observations', () => {
  const key = lockKey('observed');
  const item = (heartbeat: number) => ({
    owner: 'a',
    fencingToken: 7,
    heartbeat,
    leaseMs: 10_000,
    expiresAtMs: Number.MAX_SAFE_INTEGER,
  });

  test('start anew with each beat that is seen', () => {
    // Arrange
    const clock = new StoreClock();
    const observations = createLeaseObservations(clock, checkedLeaseOptions(LEASE));

    // Act
    observations.record(key, item(1));
    clock.advance(10_000);
    const { waitMs } = observations.record(key, item(2));
    clock.advance(SILENCE_MS - 1);

    // Assert
    expect([waitMs, observations.silent(key)]).toEqual([SILENCE_MS, undefined]);
  });

  test('are not refreshed by looking again', () => {
    // Arrange
    const clock = new StoreClock();
    const observations = createLeaseObservations(clock, checkedLeaseOptions(LEASE));

    // Act
    for (let look = 0; look < 10; look += 1) {
      observations.record(key, item(1));
      clock.advance(SILENCE_MS / 10);
    }

    // Assert
    expect(observations.silent(key)).toMatchObject({ owner: 'a', fencingToken: 7, heartbeat: 1 });
  });

  test('are forgotten with the lease, and the oldest when there are too many', () => {
    // Arrange
    const clock = new StoreClock();
    const observations = createLeaseObservations(clock, checkedLeaseOptions(LEASE));
    observations.record(lockKey('oldest'), item(1));
    observations.record(key, item(1));

    // Act
    for (let index = 0; index < 9_999; index += 1) observations.record(lockKey(String(index)), item(1));
    clock.advance(SILENCE_MS);
    const kept = [lockKey('oldest'), key].map((observed) => observations.silent(observed) !== undefined);
    observations.forget(key);

    // Assert
    expect([kept, observations.silent(key)]).toEqual([[false, true], undefined]);
  });
});

describe('a fence', () => {
  const effectKey = (name: string) => ({ PK: `EFFECT#${name}`, SK: 'S' });
  const effect = (name: string): TransactionAction => ({ kind: 'put', label: 'effect', item: effectKey(name) });

  async function takenOver(): Promise<{ name: string; former: HeldLease; current: HeldLease }> {
    const name = bench.unique('lock');
    const former = await acquired(machine().leases, name);
    const current = await acquired(machine(START_MS + HOUR_MS).leases, name);
    return { name, former, current };
  }

  test.each<[string, (lease: HeldLease) => TransactionAction]>([
    ['checked', fenceCheck],
    ['renewed', (lease) => fenceAndRenew(lease, START_MS, LEASE.leaseMs)],
    ['finished', (lease) => fenceAndFinish(lease, { set: { note: 'late' } })],
  ])('that is %s refuses the former holder, and nothing of its transaction is applied', async (_title, fence) => {
    // Arrange
    const { name, former, current } = await takenOver();
    const before = await bench.truth.get(lockKey(name));

    // Act
    const write = bench.store().transactions.write([fence(former), effect(name)]);

    // Assert
    await expect(write).rejects.toBeInstanceOf(TransactionCancelledError);
    await expect(write).rejects.toMatchObject({ failures: [{ label: 'fence', item: { owner: current.grant.owner } }] });
    expect(await bench.truth.get(effectKey(name))).toBeUndefined();
    expect(await bench.truth.get(lockKey(name))).toEqual(before);
  });

  test.each<[string, (lease: HeldLease) => TransactionAction, object]>([
    ['checks', fenceCheck, { heartbeat: 0 }],
    [
      'renews',
      (lease) => fenceAndRenew(lease, START_MS + 5_000, LEASE.leaseMs),
      { heartbeat: 1, expiresAtMs: START_MS + 15_000 },
    ],
    ['finishes', (lease) => fenceAndFinish(lease, { set: { note: 'done' } }), { expiresAtMs: 0, note: 'done' }],
  ])('that %s lets its holder through', async (_title, fence, expected) => {
    // Arrange
    const name = bench.unique('lock');
    const lease = await acquired(machine().leases, name);

    // Act
    await bench.store().transactions.write([fence(lease), effect(name)]);

    // Assert
    expect(await bench.truth.get(effectKey(name))).toBeDefined();
    expect(await bench.truth.get(lockKey(name))).toMatchObject(expected);
  });

  test('refuses its own holder after it gave the lease back', async () => {
    // Arrange
    const name = bench.unique('lock');
    const lease = await acquired(machine().leases, name);
    await lease.release();

    // Act
    const write = bench.store().transactions.write([fenceCheck(lease), effect(name)]);

    // Assert
    await expect(write).rejects.toBeInstanceOf(TransactionCancelledError);
    expect(await bench.truth.get(effectKey(name))).toBeUndefined();
  });

  test('refuses an earlier grant of the same owner, which a late copy of its own acquisition replaced', async () => {
    // Arrange
    const name = bench.unique('lock');
    const late = bench.transport.fault('UpdateItem', { kind: 'deliver late' });
    const lease = await acquired(machine().leases, name);
    await lease.release();
    await late.release();

    // Act
    const write = bench.store().transactions.write([fenceCheck(lease), effect(name)]);

    // Assert
    await expect(write).rejects.toMatchObject({
      failures: [{ item: { owner: lease.grant.owner, fencingToken: lease.grant.fencingToken + 1 } }],
    });
    expect(await bench.truth.get(effectKey(name))).toBeUndefined();
  });

  test('refuses a commit that was on its way during the takeover', async () => {
    // Arrange
    const name = bench.unique('lock');
    const former = await acquired(machine().leases, name);
    const slow = bench.transport.fault('TransactWriteItems', { kind: 'hold' });
    const write = bench
      .store()
      .transactions.write([fenceCheck(former), effect(name)])
      .catch((error: unknown) => error);
    await slow.hit;
    await acquired(machine(START_MS + HOUR_MS).leases, name);

    // Act
    await slow.release();

    // Assert
    expect(await write).toBeInstanceOf(TransactionCancelledError);
    expect(await bench.truth.get(effectKey(name))).toBeUndefined();
  });
});
