/** Writes under a lock and its release: what is lost, late, repeated or too late on the way. */
import { describe, expect, test } from 'vitest';
import { TransactionCancelledError } from '../../../src/store/transactions/transaction-writer.ts';
import { absent, any, lessThan } from '../../../src/store/conditions.ts';
import { plus } from '../../../src/store/expressions.ts';
import type { Lock } from '../../../src/store/locks/lock.ts';
import { lockKey } from '../../../src/store/table.ts';
import type { TransactionAction } from '../../../src/store/transactions/transaction.ts';
import { useStoreBench } from '../../support/store-bench.ts';
import { BEAT_MS, LOCK_LEASE, lockScene, START_MS, type LockScene } from '../../support/store-locks.ts';
import type { Fault } from '../../support/store-transport.ts';
import { until } from '../../support/until.ts';

const bench = useStoreBench();
const UPDATE = 'UpdateItem';
const TRANSACTION = 'TransactWriteItems';

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

/** A holder whose first try meets `fault`, and whose second one comes after another took over, under another token. */
async function overtakenMeanwhile(
  scene: LockScene,
  fault: Fault,
): Promise<{ lock: Lock; written(write: (lock: Lock) => Promise<void>): Promise<unknown> }> {
  // So much chance that the wait between two tries is one.
  const { clock, lock } = await scene.holder({ store: { random: () => 0.5 } });
  return {
    lock,
    async written(write) {
      const first = bench.transport.fault(TRANSACTION, fault);
      bench.transport.fault(TRANSACTION, { kind: 'under another token' });
      const timers = clock.pendingTimers;
      const failure = failureOf(write(lock));
      await first.hit;
      await until(() => clock.pendingTimers > timers);
      await scene.takeOver(clock);
      clock.advance(100);
      return failure;
    },
  };
}

describe('a write under the lock', () => {
  test('renews it with the same request and postpones the next beat', async () => {
    // Arrange
    const scene = lockScene(bench);
    const { clock, lock } = await scene.holder();

    // Act
    for (let write = 0; write < 10; write += 1) {
      clock.advance(2_000);
      await lock.write([scene.effect()]);
    }

    // Assert
    expect([bench.transport.count(UPDATE), bench.transport.count(TRANSACTION)]).toEqual([0, 10]);
    expect([lock.remainingMs(), await scene.effects()]).toEqual([9_000, 10]);
  });

  test('L21: every 20 ms beside the beats loses nothing, whatever conflicts', async () => {
    // Arrange
    const scene = lockScene(bench);
    const { clock, lock, events } = await scene.holder();
    bench.transport.fault(
      TRANSACTION,
      { kind: 'refuse', name: 'TransactionCanceledException', reasons: ['TransactionConflict', 'None'] },
      { nth: 5, times: 20 },
    );
    bench.transport.fault(UPDATE, { kind: 'refuse', name: 'TransactionConflictException' }, { times: 3 });

    // Act
    for (let write = 0; write < 100; write += 1) {
      clock.advance(20);
      const beat = write % 10 === 0 ? lock.renew() : undefined;
      await Promise.all([lock.write([scene.effect()]), beat]);
    }

    // Assert
    expect([lock.isHeld(), events, await scene.effects()]).toEqual([true, [], 100]);
    expect(bench.transport.count(UPDATE)).toBe(13);
  });

  test('by a holder that was overtaken applies nothing and tells both tokens', async () => {
    // Arrange
    const scene = lockScene(bench);
    const { clock, lock, events } = await scene.holder();
    const successor = await scene.takeOver(clock);

    // Act
    const failure = await failureOf(lock.write([scene.effect()]));

    // Assert
    expect(failure).toMatchObject({
      code: 'LEASE_LOST',
      reason: 'stolen',
      fencingToken: lock.fencingToken,
      observedToken: successor.fencingToken,
    });
    expect(lock.signal.reason).toBe(failure);
    expect(events).toEqual([{ kind: 'lost', name: scene.name, reason: 'stolen' }]);
    expect(await scene.effects()).toBe(0);
  });

  test('on its way during the takeover applies nothing', async () => {
    // Arrange
    const scene = lockScene(bench);
    const { clock, lock } = await scene.holder();
    const slow = bench.transport.fault(TRANSACTION, { kind: 'hold' });
    const write = failureOf(lock.write([scene.effect()]));
    await slow.hit;
    await scene.takeOver(clock);

    // Act
    await slow.release();

    // Assert
    expect(await write).toMatchObject({ reason: 'stolen' });
    expect(await scene.effects()).toBe(0);
  });

  test('whose own action is refused keeps the lock', async () => {
    // Arrange
    const scene = lockScene(bench);
    const { lock } = await scene.holder();
    const taken: TransactionAction = {
      kind: 'put',
      label: 'mine',
      item: { ...lockKey(`${scene.name}#x`) },
      condition: absent(),
    };
    await lock.write([taken]);

    // Act
    const failure = await failureOf(lock.write([taken, scene.effect()]));

    // Assert
    expect(failure).toBeInstanceOf(TransactionCancelledError);
    expect(failure).toMatchObject({ failures: [{ label: 'mine' }] });
    expect([lock.isHeld(), await scene.effects()]).toEqual([true, 0]);
  });

  test('whose answer was lost, or which was sent twice, is applied once', async () => {
    // Arrange
    const scene = lockScene(bench);
    const { lock } = await scene.holder();
    bench.transport.fault(TRANSACTION, { kind: 'lose the answer' });
    bench.transport.fault(TRANSACTION, { kind: 'send twice' }, { nth: 2 });

    // Act
    await lock.write([scene.effect()]);

    // Assert
    expect([await scene.effects(), lock.isHeld()]).toEqual([1, true]);
  });

  test('that went unanswered before the lock was lost, beyond the memory of its token, is in doubt', async () => {
    // Arrange
    const scene = lockScene(bench);
    const holder = await overtakenMeanwhile(scene, { kind: 'lose the answer' });

    // Act
    const failure = await holder.written((lock) => lock.write([scene.effect()]));

    // Assert
    expect(failure).toMatchObject({ code: 'BACKEND', reason: 'ambiguous', cause: { reason: 'stolen' } });
    expect(holder.lock.signal.reason).toMatchObject({ reason: 'stolen' });
    expect(await scene.effects()).toBe(1);
  });

  test('after the release is refused without a request', async () => {
    // Arrange
    const scene = lockScene(bench);
    const { lock } = await scene.holder();
    await lock.release();
    bench.transport.forget();

    // Act
    const failures = [await failureOf(lock.write([scene.effect()])), await failureOf(lock.finish([]))];

    // Assert
    expect(failures).toMatchObject([{ reason: 'released' }, { reason: 'released' }]);
    expect(bench.transport.seen).toEqual([]);
  });

  test('of another kind can carry the plain fence, which refuses it once the lock is gone', async () => {
    // Arrange
    const scene = lockScene(bench);
    const { clock, lock } = await scene.holder();
    await bench.truth.transactions.write([lock.fence(), scene.effect()]);
    await scene.takeOver(clock);

    // Act
    const write = bench.truth.transactions.write([lock.fence(), scene.effect()]);

    // Assert
    await expect(write).rejects.toMatchObject({ failures: [{ label: `fence of LOCK#${scene.name}` }] });
    expect(await scene.effects()).toBe(1);
  });
});

describe('the last write', () => {
  test('that went unanswered before the lock was lost left no mark, and so was not applied', async () => {
    // Arrange
    const scene = lockScene(bench);
    const holder = await overtakenMeanwhile(scene, { kind: 'lose the request' });

    // Act
    const failure = await holder.written((lock) => lock.finish([scene.effect()]));

    // Assert
    expect(failure).toMatchObject({ code: 'LEASE_LOST', reason: 'stolen' });
    expect(await scene.effects()).toBe(0);
  });

  test.each<[string, Parameters<typeof bench.transport.fault>[1][]]>([
    ['with the same token', [{ kind: 'lose the answer' }]],
    ['after the ten minutes of the token', [{ kind: 'lose the answer' }, { kind: 'under another token' }]],
  ])('L22: that was applied while its answer was lost is known to have landed, %s', async (_title, faults) => {
    // Arrange
    const scene = lockScene(bench);
    const { clock, lock, events } = await scene.holder();
    faults.forEach((fault, index) =>
      bench.transport.fault(TRANSACTION, fault, { nth: index + 1 - (index > 0 ? 1 : 0) }),
    );

    // Act
    await lock.finish([scene.effect()]);
    clock.advance(60_000);

    // Assert
    expect([await scene.effects(), await lock.release(), events]).toEqual([1, 'released', []]);
    expect([bench.transport.count(TRANSACTION), bench.transport.count(UPDATE)]).toEqual([2, 0]);
  });

  test.each(['at once', 'after a beat has seen it', 'after another has the lock'])(
    'L22: that was given up without an answer is known to have landed when it is called again, %s',
    async (moment) => {
      // Arrange
      const scene = lockScene(bench);
      const { clock, lock } = await scene.holder();
      bench.transport.fault(TRANSACTION, { kind: 'lose the answer' });
      bench.transport.fault(TRANSACTION, { kind: 'refuse', name: 'AccessDeniedException' }, { nth: 1 });
      const first = await failureOf(lock.finish([scene.effect()]));
      if (moment === 'after a beat has seen it') await lock.renew();
      if (moment === 'after another has the lock') await scene.takeOver(clock);

      // Act
      await lock.finish([scene.effect()]);

      // Assert
      expect(first).toMatchObject({ code: 'BACKEND' });
      expect(await scene.effects()).toBe(1);
    },
  );

  test('with other actions is not taken for an earlier one that has landed', async () => {
    // Arrange
    const scene = lockScene(bench);
    const { lock } = await scene.holder();
    bench.transport.fault(TRANSACTION, { kind: 'lose the answer' });
    bench.transport.fault(TRANSACTION, { kind: 'refuse', name: 'AccessDeniedException' }, { nth: 1 });
    await failureOf(lock.finish([scene.effect()]));

    // Act
    const other = lockScene(bench);
    const failure = await failureOf(lock.finish([other.effect()]));

    // Assert
    expect(failure).toMatchObject({ code: 'LEASE_LOST', reason: 'released' });
    expect([await scene.effects(), await other.effects()]).toEqual([1, 0]);
  });

  test('is not taken for done when an operator has freed the lock: nothing was applied then', async () => {
    // Arrange
    const scene = lockScene(bench);
    const { lock } = await scene.holder();
    await freeByHand(scene.name);

    // Act
    const failure = await failureOf(lock.finish([scene.effect()]));

    // Assert
    expect(failure).toMatchObject({ code: 'LEASE_LOST', reason: 'released' });
    expect(await scene.effects()).toBe(0);
  });

  test('leaves the lock held when an action is refused', async () => {
    // Arrange
    const scene = lockScene(bench);
    const { lock } = await scene.holder();
    const present: TransactionAction = {
      kind: 'put',
      label: 'mine',
      item: { ...lockKey(`${scene.name}#y`) },
      condition: absent(),
    };
    await bench.truth.transactions.write([present]);

    // Act
    const failure = await failureOf(lock.finish([present]));

    // Assert
    expect(failure).toBeInstanceOf(TransactionCancelledError);
    expect([lock.isHeld(), await lock.renew()]).toEqual([true, true]);
  });

  test('can leave something on the item of the lock, but nothing that the lock is made of', async () => {
    // Arrange
    const scene = lockScene(bench);
    const { lock } = await scene.holder();

    // Act
    const failure = await failureOf(
      lock.finish([], { set: { owner: 'me', ttl: 1, 'holder.x': 1 }, remove: ['fencingToken'] }),
    );
    await lock.finish([], { set: { lastRun: 'ok', runs: plus(1, 0) } });

    // Assert
    expect(failure).toMatchObject({
      code: 'CONFIGURATION',
      faults: ['owner', 'ttl', 'holder.x', 'fencingToken'].map((name) => ({ name })),
    });
    expect(await scene.item()).toMatchObject({ lastRun: 'ok', runs: 1, fencingToken: lock.fencingToken });
  });

  test.each<[string, unknown]>([
    ['a function', () => 1],
    ['a symbol', Symbol('s')],
    ['a class instance', new Date(0)],
  ])('refuses what cannot be kept as a write does, and keeps the lock: %s', async (_title, value) => {
    // Arrange
    const scene = lockScene(bench);
    const { lock } = await scene.holder();
    const put: TransactionAction = { kind: 'put', label: 'wrong', item: { PK: scene.name, SK: 's', a: value } };

    // Act
    const failures = [
      await failureOf(lock.write([put])),
      await failureOf(lock.finish([put])),
      await failureOf(lock.finish([], { set: { a: { value } } })),
      await failureOf(lock.finish([[put] as unknown as TransactionAction])),
    ];

    // Assert
    expect(failures).toMatchObject(failures.map(() => ({ code: 'CONFIGURATION' })));
    expect(lock.isHeld()).toBe(true);
  });

  test('together with a beat that arrives late leaves the lock free', async () => {
    // Arrange
    const scene = lockScene(bench);
    const { clock, lock } = await scene.holder();
    const late = bench.transport.fault(UPDATE, { kind: 'deliver late' });
    clock.advance(BEAT_MS);
    await late.hit;

    // Act
    await until(() => lock.remainingMs() === 9_000);
    await lock.finish([scene.effect()]);
    await late.release();

    // Assert
    expect(await scene.item()).toMatchObject({ expiresAtMs: 0 });
    expect(await scene.item()).not.toHaveProperty('owner');
  });
});

describe('pattern 29', () => {
  test('walks as in the book: true, false, true, true, true, false, and worker-C holds the lock', async () => {
    // Arrange
    const scene = lockScene(bench);
    const [a, b] = [scene.machine({ holder: 'worker-A' }), scene.machine({ holder: 'worker-B', beats: 'manual' })];
    const c = scene.machine({ holder: 'worker-C', aheadMs: LOCK_LEASE.leaseMs + LOCK_LEASE.maxClockSkewMs + 1 });
    const answers: boolean[] = [];

    // Act
    const ofA = await a.locks.tryAcquire(scene.name);
    answers.push(ofA.kind === 'acquired');
    answers.push((await b.locks.tryAcquire(scene.name)).kind === 'acquired');
    answers.push(ofA.kind === 'acquired' && (await ofA.lock.release()) === 'released');
    const ofB = await b.locks.tryAcquire(scene.name);
    answers.push(ofB.kind === 'acquired');
    answers.push((await c.locks.tryAcquire(scene.name)).kind === 'acquired');
    answers.push(ofB.kind === 'acquired' && (await ofB.lock.release()) === 'released');

    // Assert
    expect(answers).toEqual([true, false, true, true, true, false]);
    expect(await scene.item()).toMatchObject({ holder: 'worker-C' });
  });

  test('is kept towards a writer that only knows absence and expiry', async () => {
    // Arrange
    const scene = lockScene(bench);
    const { lock } = await scene.holder();
    const published = async (): Promise<string> => {
      const condition = any(absent(), lessThan('expiresAtMs', START_MS));
      return (await bench.truth.update({ key: lockKey(scene.name), change: { set: { note: 1 } }, condition })).kind;
    };

    // Act
    const whileHeld = await published();
    await lock.release();
    const whenFree = await published();

    // Assert
    expect([whileHeld, whenFree]).toEqual(['refused', 'updated']);
  });
});
