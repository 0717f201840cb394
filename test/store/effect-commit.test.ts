/** Committing and giving back a claimed record: all or nothing, once, and only by its holder. */
import { describe, expect, test } from 'vitest';
import { absent } from '../../src/store/conditions.ts';
import { LeaseLostError } from '../../src/store/leases/held-lease.ts';
import { fenceAndFinish } from '../../src/store/leases/leases.ts';
import { lockKey } from '../../src/store/table.ts';
import { TransactionCancelledError } from '../../src/store/transactions/transaction-writer.ts';
import { useStoreBench } from '../support/store-bench.ts';
import { AFTER_THE_LEASE_MS, claimedOf, effectScene, failureOf } from '../support/store-effects.ts';
import { StoreClock } from '../support/store-clock.ts';

const bench = useStoreBench();

const OPERATION = 'TransactWriteItems';
const ONCE = { balance: 5, entry: true } as const;
const NEVER = { balance: undefined, entry: false } as const;
const FAILED = { error: 'no luck', inDoubt: false, startAfresh: false } as const;

describe('a commit', () => {
  test('completes the record and applies the effects in one request', async () => {
    // Arrange
    const scene = effectScene(bench);
    const { effects, clock } = scene.worker();
    const effect = claimedOf(await effects.claim(scene.request));
    bench.transport.forget();

    // Act
    await effects.commit(effect, scene.verdict());

    // Assert
    expect(bench.transport.seen.map(({ operation }) => operation)).toEqual([OPERATION]);
    expect(await scene.charged()).toEqual(ONCE);
    const record = await scene.record();
    expect(record).toMatchObject({
      status: 'COMPLETED',
      completedAtMs: clock.nowMs(),
      fencingToken: effect.lease.grant.fencingToken,
    });
    expect(record).not.toHaveProperty('owner');
  });

  test('ends its lease: no beat follows, no loss is told, no timer stays', async () => {
    // Arrange
    const scene = effectScene(bench);
    const { effects, clock } = scene.worker();
    const effect = claimedOf(await effects.claim(scene.request));

    // Act
    await effects.commit(effect, scene.verdict());
    const isRenewed = await effect.lease.renew();
    clock.advance(AFTER_THE_LEASE_MS);

    // Assert
    expect([isRenewed, effect.lease.signal.aborted, clock.pendingTimers]).toEqual([false, false, 0]);
  });

  test('releases a lock in the same transaction', async () => {
    // Arrange
    const scene = effectScene(bench);
    const { effects } = scene.worker();
    const effect = claimedOf(await effects.claim(scene.request));
    const name = bench.unique('lock');
    const lock = await bench.store().leases().tryAcquire(name, 'w1');
    if (lock.kind !== 'acquired') throw new Error('busy');

    // Act
    await effects.commit(effect, {
      status: 'COMPLETED',
      response: 1,
      effects: [{ ...fenceAndFinish(lock.lease), label: 'lock' }],
    });

    // Assert
    expect(await bench.truth.get(lockKey(name))).not.toHaveProperty('owner');
  });

  test('of a rejection applies no effect', async () => {
    // Arrange
    const scene = effectScene(bench);
    const { effects } = scene.worker();

    // Act
    await effects.commit(claimedOf(await effects.claim(scene.request)), { status: 'REJECTED', reason: 'no stock' });

    // Assert
    expect(await scene.record()).toMatchObject({ status: 'REJECTED', reason: 'no stock' });
    expect(await scene.charged()).toEqual(NEVER);
  });

  test('whose own effect is refused applies nothing and leaves the record to its holder', async () => {
    // Arrange
    const scene = effectScene(bench);
    const { effects } = scene.worker();
    const effect = claimedOf(await effects.claim(scene.request));
    const verdict = scene.verdict();
    if (verdict.status !== 'COMPLETED') throw new Error('not completed');
    const taken = { PK: bench.unique('taken'), SK: 's' };
    await bench.truth.transactions.write([{ kind: 'put', label: 'taken', item: { ...taken, ref: 'x' } }]);
    const before = await scene.record();

    // Act
    const error = await failureOf(
      effects.commit(effect, {
        ...verdict,
        effects: [...verdict.effects, { kind: 'put', label: 'email', item: taken, condition: absent() }],
      }),
    );

    // Assert
    expect(error).toBeInstanceOf(TransactionCancelledError);
    expect(error).toMatchObject({ failures: [{ label: 'email', item: { ref: 'x' } }] });
    expect(await scene.charged()).toEqual(NEVER);
    expect([await scene.record(), effect.lease.isHeld()]).toEqual([before, true]);
  });

  test('beside another of the same holder is refused: only one verdict was applied', async () => {
    // Arrange
    const scene = effectScene(bench);
    const { effects } = scene.worker();
    const effect = claimedOf(await effects.claim(scene.request));

    // Act
    const [first, second] = await Promise.all([
      failureOf(effects.commit(effect, scene.verdict('first'))),
      failureOf(effects.commit(effect, { status: 'REJECTED', reason: 'second' })),
    ]);

    // Assert
    expect([first, second]).toMatchObject([undefined, { code: 'LEASE_LOST', reason: 'released' }]);
    expect(await scene.record()).toMatchObject({ status: 'COMPLETED', response: { json: '"first"' } });
  });

  test('waits for a beat that is on its way', async () => {
    // Arrange
    const scene = effectScene(bench);
    const { effects } = scene.worker();
    const effect = claimedOf(await effects.claim(scene.request));
    const beat = bench.transport.fault('UpdateItem', { kind: 'hold' });
    const renewed = effect.lease.renew();
    await beat.hit;
    const committed = effects.commit(effect, scene.verdict());

    // Act
    const sentBefore = bench.transport.count(OPERATION);
    await beat.release();
    await Promise.all([renewed, committed]);

    // Assert
    expect([sentBefore, bench.transport.count(OPERATION)]).toEqual([0, 1]);
  });

  test('with one of sixteen workers at once charges once, and all get the one answer', async () => {
    // Arrange
    const scene = effectScene(bench);
    const workers = Array.from({ length: 16 }, () => scene.worker());

    // Act
    await Promise.all(
      workers.map(async ({ effects }, index) => {
        const claim = await effects.claim(scene.request);
        if (claim.kind === 'claimed') await effects.commit(claim.effect, scene.verdict(`by ${String(index)}`));
      }),
    );
    const claims = await Promise.all(workers.map(({ effects }) => effects.claim(scene.request)));

    // Assert
    expect(await scene.charged()).toEqual(ONCE);
    expect(new Set(claims.map((claim) => claim.kind === 'completed' && claim.response)).size).toBe(1);
  });
});

describe('M3: a commit without an answer', () => {
  test('that was applied is a commit, and the effects are applied once', async () => {
    // Arrange
    const scene = effectScene(bench);
    const { effects } = scene.worker();
    const effect = claimedOf(await effects.claim(scene.request));
    bench.transport.fault(OPERATION, { kind: 'lose the answer' }, { times: 3 });

    // Act
    await effects.commit(effect, scene.verdict());

    // Assert
    expect(await scene.charged()).toEqual(ONCE);
    expect(effect.lease.signal.aborted).toBe(false);
  });

  test('that was not applied is sent again and applied once', async () => {
    // Arrange
    const scene = effectScene(bench);
    const { effects } = scene.worker();
    const effect = claimedOf(await effects.claim(scene.request));
    bench.transport.fault(OPERATION, { kind: 'lose the request' }, { times: 3 });

    // Act
    await effects.commit(effect, scene.verdict());

    // Assert
    expect(await scene.charged()).toEqual(ONCE);
  });

  test.each(['COMPLETED', 'REJECTED'] as const)(
    'is known as its own %s when DynamoDB has forgotten the request token',
    async (status) => {
      // Arrange
      const scene = effectScene(bench);
      const { effects } = scene.worker();
      const effect = claimedOf(await effects.claim(scene.request));
      bench.transport.fault(OPERATION, { kind: 'lose the answer' });
      bench.transport.fault(OPERATION, { kind: 'under another token' });

      // Act
      await effects.commit(effect, status === 'COMPLETED' ? scene.verdict() : { status, reason: 'no stock' });

      // Assert
      expect(await scene.record()).toMatchObject({ status });
      expect(await scene.charged()).toEqual(status === 'COMPLETED' ? ONCE : NEVER);
      expect([bench.transport.count(OPERATION), effect.lease.signal.aborted]).toEqual([2, false]);
    },
  );

  test('up to its deadline is told as ambiguous, and the next claim finds the truth', async () => {
    // Arrange
    const scene = effectScene(bench);
    const { effects } = scene.worker(0, { clock: new StoreClock({ waits: 'jump' }), random: () => 0.999 });
    const effect = claimedOf(await effects.claim(scene.request));
    bench.transport.fault(OPERATION, { kind: 'lose the answer' });
    bench.transport.fault(OPERATION, { kind: 'refuse', name: 'ThrottlingException' }, { times: 1_000 });

    // Act
    const error = await failureOf(effects.commit(effect, scene.verdict('mine')));
    const claim = await scene.worker(AFTER_THE_LEASE_MS).effects.claim(scene.request);

    // Assert
    expect(error).toMatchObject({ code: 'BACKEND', reason: 'ambiguous' });
    expect(claim).toEqual({ kind: 'completed', response: 'mine' });
    expect(await scene.charged()).toEqual(ONCE);
  });

  test('that arrives after a release is refused', async () => {
    // Arrange
    const scene = effectScene(bench);
    const { effects } = scene.worker(0, { clock: new StoreClock({ waits: 'jump' }), random: () => 0.999 });
    const effect = claimedOf(await effects.claim(scene.request));
    const late = bench.transport.fault(OPERATION, { kind: 'deliver late' });
    bench.transport.fault(OPERATION, { kind: 'lose the request' }, { times: 1_000 });
    await failureOf(effects.commit(effect, scene.verdict()));
    await effects.release(effect, FAILED);

    // Act
    await late.release();

    // Assert
    expect(await scene.record()).toMatchObject({ status: 'FAILED' });
    expect(await scene.charged()).toEqual(NEVER);
  });
});

describe('a holder that lost its lease', () => {
  test('and knows it cannot commit, and sends nothing', async () => {
    // Arrange
    const scene = effectScene(bench);
    const { effects, clock } = scene.worker();
    const effect = claimedOf(await effects.claim(scene.request));
    clock.advance(AFTER_THE_LEASE_MS);
    bench.transport.forget();

    // Act
    const error = await failureOf(effects.commit(effect, scene.verdict()));

    // Assert
    expect(error).toBeInstanceOf(LeaseLostError);
    expect(bench.transport.seen).toEqual([]);
    expect(await scene.charged()).toEqual(NEVER);
  });

  test('and does not know it cannot commit: the ledger stays untouched and the loss is told', async () => {
    // Arrange
    const scene = effectScene(bench);
    const { effects } = scene.worker();
    const effect = claimedOf(await effects.claim(scene.request));
    const successor = claimedOf(await scene.worker(AFTER_THE_LEASE_MS).effects.claim(scene.request));
    const before = await scene.record();

    // Act
    const error = await failureOf(effects.commit(effect, scene.verdict()));

    // Assert
    expect(error).toMatchObject({
      code: 'LEASE_LOST',
      reason: 'stolen',
      observedToken: successor.lease.grant.fencingToken,
    });
    expect(effect.lease.signal.reason).toBe(error);
    expect([await scene.charged(), await scene.record()]).toEqual([NEVER, before]);
  });

  test('after a stall asks once more, and its commit is refused', async () => {
    // Arrange
    const scene = effectScene(bench);
    const { effects, clock } = scene.worker();
    const effect = claimedOf(await effects.claim(scene.request));
    clock.stallBeforeTimers(AFTER_THE_LEASE_MS);
    claimedOf(await scene.worker(AFTER_THE_LEASE_MS).effects.claim(scene.request));

    // Act
    const error = await failureOf(effects.commit(effect, scene.verdict()));

    // Assert
    expect(error).toMatchObject({ code: 'LEASE_LOST', reason: 'stolen' });
    expect([await scene.charged(), bench.transport.count(OPERATION)]).toEqual([NEVER, 0]);
  });

  test('after a stall commits when nobody took over', async () => {
    // Arrange
    const scene = effectScene(bench);
    const { effects, clock } = scene.worker();
    const effect = claimedOf(await effects.claim(scene.request));
    clock.stallBeforeTimers(AFTER_THE_LEASE_MS);

    // Act
    await effects.commit(effect, scene.verdict());

    // Assert
    expect(await scene.charged()).toEqual(ONCE);
  });

  test('hears of the loss, not of its effect, when both were refused', async () => {
    // Arrange
    const scene = effectScene(bench);
    const { effects } = scene.worker();
    const effect = claimedOf(await effects.claim(scene.request));
    const successor = scene.worker(AFTER_THE_LEASE_MS);
    await successor.effects.commit(claimedOf(await successor.effects.claim(scene.request)), scene.verdict());
    const verdict = scene.verdict();
    if (verdict.status !== 'COMPLETED') throw new Error('not completed');
    const guarded = verdict.effects.map((action) => ({ ...action, condition: absent() }));

    // Act
    const error = await failureOf(effects.commit(effect, { ...verdict, effects: guarded }));

    // Assert
    expect(error).toMatchObject({ code: 'LEASE_LOST', reason: 'stolen' });
    expect(await scene.charged()).toEqual(ONCE);
  });

  test('M1: cannot give back a record that its successor completed', async () => {
    // Arrange
    const scene = effectScene(bench);
    const { effects } = scene.worker();
    const effect = claimedOf(await effects.claim(scene.request));
    const successor = scene.worker(AFTER_THE_LEASE_MS);
    await successor.effects.commit(claimedOf(await successor.effects.claim(scene.request)), scene.verdict());
    const before = await scene.record();

    // Act
    const isReleased = await effects.release(effect, FAILED);

    // Assert
    expect(isReleased).toBe(false);
    expect(await scene.record()).toEqual(before);
    expect(before).toMatchObject({ status: 'COMPLETED' });
  });

  test('cannot store a step', async () => {
    // Arrange
    const scene = effectScene(bench);
    const { effects } = scene.worker();
    const effect = claimedOf(await effects.claim(scene.request));
    claimedOf(await scene.worker(AFTER_THE_LEASE_MS).effects.claim(scene.request));

    // Act
    const error = await failureOf(effects.storeStep(effect, 'charge', 'late'));

    // Assert
    expect(error).toMatchObject({ code: 'LEASE_LOST', reason: 'stolen' });
    expect(await scene.record()).toMatchObject({ steps: {} });
  });
});

describe('a release', () => {
  test('gives the record back as failed, with the first part of its error', async () => {
    // Arrange
    const scene = effectScene(bench);
    const { effects } = scene.worker();

    // Act
    const isReleased = await effects.release(claimedOf(await effects.claim(scene.request)), {
      ...FAILED,
      error: 'x'.repeat(900),
    });

    // Assert
    expect(isReleased).toBe(true);
    expect(await scene.record()).toMatchObject({ status: 'FAILED', lastError: 'x'.repeat(500), expiresAtMs: 0 });
  });

  test('whose answer was lost is a release', async () => {
    // Arrange
    const scene = effectScene(bench);
    const { effects } = scene.worker();
    const effect = claimedOf(await effects.claim(scene.request));
    bench.transport.fault('UpdateItem', { kind: 'lose the answer' });

    // Act
    const isReleased = await effects.release(effect, FAILED);

    // Assert
    expect(isReleased).toBe(true);
  });

  test('after its own commit changes nothing', async () => {
    // Arrange
    const scene = effectScene(bench);
    const { effects } = scene.worker();
    const effect = claimedOf(await effects.claim(scene.request));
    await effects.commit(effect, scene.verdict());
    const before = await scene.record();

    // Act
    await effects.release(effect, FAILED);

    // Assert
    expect(await scene.record()).toEqual(before);
  });
});

describe('step results', () => {
  test('are stored and found by the attempts that follow, also after a takeover', async () => {
    // Arrange
    const scene = effectScene(bench);
    const { effects } = scene.worker();
    const first = claimedOf(await effects.claim(scene.request));
    bench.transport.fault('UpdateItem', { kind: 'lose the answer' });
    await effects.storeStep(first, 'charge', { chargeId: 'c1', amount: 0.1 });
    await effects.storeStep(first, 'send-email', null);
    await effects.release(first, FAILED);
    claimedOf(await effects.claim(scene.request));

    // Act
    const third = claimedOf(await scene.worker(AFTER_THE_LEASE_MS).effects.claim(scene.request));

    // Assert
    expect(['charge', 'send-email', 'other'].map((step) => third.stepResult(step))).toEqual([
      { json: '{"chargeId":"c1","amount":0.1}' },
      { json: 'null' },
      undefined,
    ]);
  });

  test('that are too large are stored by digest', async () => {
    // Arrange
    const scene = effectScene(bench);
    const { effects } = scene.worker();

    // Act
    await effects.storeStep(claimedOf(await effects.claim(scene.request)), 'report', 'x'.repeat(100_000));

    // Assert
    expect(await scene.record()).toMatchObject({ steps: { report: { bytes: 100_002 } } });
  });
});

test('M24: a response of 410 KB is kept by digest, the effect is applied once, and a duplicate is a replay', async () => {
  // Arrange
  const scene = effectScene(bench);
  const { effects } = scene.worker();

  // Act
  await effects.commit(claimedOf(await effects.claim(scene.request)), scene.verdict('x'.repeat(410_000)));
  const claim = await effects.claim(scene.request);

  // Assert
  expect(claim).toMatchObject({ kind: 'completed', response: { digest: 'sha256', bytes: 410_002 } });
  expect(await scene.charged()).toEqual(ONCE);
});
