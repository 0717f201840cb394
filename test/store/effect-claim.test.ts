/** What a claim answers for each state of the record, and what it writes. */
import { describe, expect, test } from 'vitest';
import { useStoreBench } from '../support/store-bench.ts';
import { AFTER_THE_LEASE_MS, claimedOf, effectScene } from '../support/store-effects.ts';

const bench = useStoreBench();

const NO_DOUBT = { error: 'no luck', inDoubt: false, startAfresh: false } as const;

describe('a claim of a key', () => {
  test('that is new is claimed, and the record says by whom', async () => {
    // Arrange
    const scene = effectScene(bench);
    const { effects, clock } = scene.worker();

    // Act
    const effect = claimedOf(await effects.claim(scene.request));

    // Assert
    expect(effect).toMatchObject({ attempt: 1, takenOver: false, inDoubtSinceMs: undefined, lastError: undefined });
    expect(effect.stepResult('charge')).toBeUndefined();
    expect(await scene.record()).toMatchObject({
      status: 'IN_PROGRESS',
      payloadHash: 'hash-1',
      owner: effect.lease.grant.owner,
      holder: 'host:1',
      attempts: 1,
      steps: {},
      ttl: Math.floor(clock.nowMs() / 1_000) + 35 * 86_400,
    });
  });

  test('that another holds is busy, with its holder and how long to wait', async () => {
    // Arrange
    const scene = effectScene(bench);
    claimedOf(await scene.worker().effects.claim(scene.request));

    // Act
    const claim = await scene.worker(3_000).effects.claim({ ...scene.request, holder: 'host:2' });

    // Assert
    expect(claim).toEqual({ kind: 'busy', holder: 'host:1', waitMs: 7_500 });
  });

  test('that failed is claimed again, with what the last attempt reported', async () => {
    // Arrange
    const scene = effectScene(bench);
    const { effects, clock } = scene.worker();
    await effects.release(claimedOf(await effects.claim(scene.request)), NO_DOUBT);
    clock.advance(1_000);

    // Act
    const effect = claimedOf(await effects.claim(scene.request));

    // Assert
    expect(effect).toMatchObject({ attempt: 2, takenOver: false, lastError: 'no luck', inDoubtSinceMs: undefined });
  });

  test('whose holder died is taken over after its lease, with a higher token', async () => {
    // Arrange
    const scene = effectScene(bench);
    const former = claimedOf(await scene.worker().effects.claim(scene.request));

    // Act
    const effect = claimedOf(await scene.worker(AFTER_THE_LEASE_MS).effects.claim(scene.request));

    // Assert
    expect(effect).toMatchObject({ attempt: 2, takenOver: true });
    expect(effect.lease.grant.fencingToken).toBe(former.lease.grant.fencingToken + 1);
  });

  test('that is completed is a replay of its response, also long after', async () => {
    // Arrange
    const scene = effectScene(bench);
    const { effects } = scene.worker();
    const response = { chargeId: 'c1', nested: [1, '', null] };
    await effects.commit(claimedOf(await effects.claim(scene.request)), scene.verdict(response));

    // Act
    const claims = [
      await effects.claim(scene.request),
      await scene.worker(30 * 86_400_000).effects.claim({ ...scene.request, holder: 'host:2' }),
    ];

    // Assert
    expect(claims).toEqual([
      { kind: 'completed', response },
      { kind: 'completed', response },
    ]);
  });

  test('that was rejected is a replay of the reason', async () => {
    // Arrange
    const scene = effectScene(bench);
    const { effects } = scene.worker();
    const effect = claimedOf(await effects.claim(scene.request));
    await effects.commit(effect, { status: 'REJECTED', reason: 'no stock' });

    // Act
    const claim = await effects.claim(scene.request);

    // Assert
    expect(claim).toEqual({ kind: 'rejected', reason: 'no stock' });
    expect(effect.lease.isHeld()).toBe(false);
  });

  test('of another queue is another key', async () => {
    // Arrange
    const scene = effectScene(bench);
    const { effects } = scene.worker();
    claimedOf(await effects.claim(scene.request));

    // Act
    const claim = await effects.claim({ ...scene.request, queue: 'orders' });

    // Assert
    expect(claim.kind).toBe('claimed');
  });

  test('whose answer was lost is claimed by its first write and counted once', async () => {
    // Arrange
    const scene = effectScene(bench);
    bench.transport.fault('UpdateItem', { kind: 'lose the answer' }, { times: 2 });

    // Act
    const effect = claimedOf(await scene.worker().effects.claim(scene.request));

    // Assert
    expect(effect).toMatchObject({ attempt: 1, takenOver: false, inDoubtSinceMs: undefined });
    expect(await scene.record()).toMatchObject({ attempts: 1, owner: effect.lease.grant.owner });
  });
});

describe('the same key with another payload', () => {
  test.each<[string, (scene: ReturnType<typeof effectScene>) => Promise<unknown>]>([
    ['in progress', (scene) => scene.worker().effects.claim(scene.request)],
    [
      'completed',
      async (scene) => {
        const { effects } = scene.worker();
        await effects.commit(claimedOf(await effects.claim(scene.request)), scene.verdict());
      },
    ],
    [
      'failed',
      async (scene) => {
        const { effects } = scene.worker();
        await effects.release(claimedOf(await effects.claim(scene.request)), NO_DOUBT);
      },
    ],
    [
      'rejected',
      async (scene) => {
        const { effects } = scene.worker();
        await effects.commit(claimedOf(await effects.claim(scene.request)), { status: 'REJECTED', reason: 'no' });
      },
    ],
    ['abandoned', (scene) => scene.worker(-2 * AFTER_THE_LEASE_MS).effects.claim(scene.request)],
  ])('is a conflict while the first is %s, and writes nothing', async (_title, prepare) => {
    // Arrange
    const scene = effectScene(bench);
    await prepare(scene);
    const before = await scene.record();

    // Act
    const claim = await scene.worker(1_000).effects.claim({ ...scene.request, payloadHash: 'hash-2' });

    // Assert
    expect(claim).toEqual({ kind: 'conflict', recordedHash: 'hash-1' });
    expect(await scene.record()).toEqual(before);
  });
});

describe('M11: a refused claim writes nothing', () => {
  test.each<[string, (scene: ReturnType<typeof effectScene>) => Promise<unknown>]>([
    ['busy', (scene) => scene.worker().effects.claim(scene.request)],
    [
      'completed',
      async (scene) => {
        const { effects } = scene.worker();
        await effects.commit(claimedOf(await effects.claim(scene.request)), scene.verdict());
      },
    ],
    [
      'rejected',
      async (scene) => {
        const { effects } = scene.worker();
        await effects.commit(claimedOf(await effects.claim(scene.request)), { status: 'REJECTED', reason: 'no' });
      },
    ],
  ])('when the record is %s', async (kind, prepare) => {
    // Arrange
    const scene = effectScene(bench);
    await prepare(scene);
    const before = await scene.record();

    // Act
    const contender = scene.worker(1_000);
    const claims = [await contender.effects.claim(scene.request), await contender.effects.claim(scene.request)];

    // Assert
    expect(claims.map((claim) => claim.kind)).toEqual([kind, kind]);
    expect(await scene.record()).toEqual(before);
  });
});

describe('the count of attempts', () => {
  test('is not raised by deliveries that met a busy key', async () => {
    // Arrange
    const scene = effectScene(bench);
    const { effects } = scene.worker();
    const first = claimedOf(await effects.claim(scene.request));
    for (let delivery = 0; delivery < 5; delivery += 1) await scene.worker().effects.claim(scene.request);
    await effects.release(first, NO_DOUBT);

    // Act
    const second = claimedOf(await effects.claim(scene.request));

    // Assert
    expect(second.attempt).toBe(2);
  });

  test('is raised by each failure and each takeover', async () => {
    // Arrange
    const scene = effectScene(bench);
    const attempts: number[] = [];

    // Act
    for (let attempt = 0; attempt < 4; attempt += 1) {
      const { effects } = scene.worker(attempt * AFTER_THE_LEASE_MS);
      const effect = claimedOf(await effects.claim(scene.request));
      attempts.push(effect.attempt);
      if (attempt % 2 === 0) await effects.release(effect, NO_DOUBT);
    }

    // Assert
    expect(attempts).toEqual([1, 2, 3, 4]);
  });

  test('starts afresh when the message is dead-lettered', async () => {
    // Arrange
    const scene = effectScene(bench);
    const { effects } = scene.worker();
    await effects.release(claimedOf(await effects.claim(scene.request)), NO_DOUBT);
    await effects.release(claimedOf(await effects.claim(scene.request)), { ...NO_DOUBT, startAfresh: true });

    // Act
    const redriven = claimedOf(await effects.claim(scene.request));

    // Assert
    expect(redriven).toMatchObject({ attempt: 1, lastError: 'no luck' });
  });
});

describe('the doubt about outside calls', () => {
  test('is cleared by a clean failure', async () => {
    // Arrange
    const scene = effectScene(bench);
    const { effects, clock } = scene.worker();
    await effects.release(claimedOf(await effects.claim(scene.request)), NO_DOUBT);
    clock.advance(5_000);

    // Act
    const effect = claimedOf(await effects.claim(scene.request));

    // Assert
    expect(effect.inDoubtSinceMs).toBeUndefined();
  });

  test('is kept by a failure with a call unanswered, from the time of its claim', async () => {
    // Arrange
    const scene = effectScene(bench);
    const { effects, clock } = scene.worker();
    const sinceMs = clock.nowMs();
    await effects.release(claimedOf(await effects.claim(scene.request)), { ...NO_DOUBT, inDoubt: true });
    clock.advance(5_000);

    // Act
    const effect = claimedOf(await effects.claim(scene.request));

    // Assert
    expect(effect.inDoubtSinceMs).toBe(sinceMs);
  });

  test('is kept when the next claim comes at the very same millisecond', async () => {
    // Arrange
    const scene = effectScene(bench);
    const { effects, clock } = scene.worker();
    await effects.release(claimedOf(await effects.claim(scene.request)), { ...NO_DOUBT, inDoubt: true });

    // Act
    const effect = claimedOf(await effects.claim(scene.request));

    // Assert
    expect(effect.inDoubtSinceMs).toBe(clock.nowMs());
  });

  test('of the first of several crashed and doubtful attempts is the one that is kept', async () => {
    // Arrange
    const scene = effectScene(bench);
    const first = scene.worker();
    const sinceMs = first.clock.nowMs();
    claimedOf(await first.effects.claim(scene.request));
    const second = scene.worker(AFTER_THE_LEASE_MS);
    const secondEffect = claimedOf(await second.effects.claim(scene.request));
    await second.effects.release(secondEffect, { ...NO_DOUBT, inDoubt: true });
    claimedOf(await scene.worker(2 * AFTER_THE_LEASE_MS).effects.claim(scene.request));

    // Act
    const effect = claimedOf(await scene.worker(3 * AFTER_THE_LEASE_MS).effects.claim(scene.request));

    // Assert
    expect([secondEffect.inDoubtSinceMs, effect.inDoubtSinceMs, effect.attempt]).toEqual([sinceMs, sinceMs, 4]);
  });

  test('of a crash is cleared once a later holder says that none is left', async () => {
    // Arrange
    const scene = effectScene(bench);
    claimedOf(await scene.worker().effects.claim(scene.request));
    const later = scene.worker(AFTER_THE_LEASE_MS);
    await later.effects.release(claimedOf(await later.effects.claim(scene.request)), NO_DOUBT);
    later.clock.advance(1);

    // Act
    const effect = claimedOf(await later.effects.claim(scene.request));

    // Assert
    expect(effect.inDoubtSinceMs).toBeUndefined();
  });
});
