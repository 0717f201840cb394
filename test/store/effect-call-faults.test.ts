import { describe, expect, test } from 'vitest';
import { BackendError } from '../../src/errors.ts';
import type { EffectCallContext } from '../../src/store/effects/effect-call.ts';
import { LeaseLostError } from '../../src/store/leases/held-lease.ts';
import { useStoreBench } from '../support/store-bench.ts';
import { callScene, type CallScene } from '../support/store-effect-calls.ts';
import type { StoreClock } from '../support/store-clock.ts';
import { AFTER_THE_LEASE_MS, failureOf } from '../support/store-effects.ts';

const bench = useStoreBench();

const COMMIT = 'TransactWriteItems';

const START_MS = 1_800_000_000_000;

/** Lets a little time pass, and a request to the table with it: a beat that is due gets its answer meanwhile. */
async function pass(clock: StoreClock, scene: CallScene): Promise<void> {
  clock.advance(125);
  await scene.record();
  await scene.record();
}

/** A function that has begun and waits until the test lets it go on. */
function gate(): {
  readonly begun: Promise<EffectCallContext>;
  open: () => void;
  fn: (c: EffectCallContext) => Promise<string>;
} {
  const begun = Promise.withResolvers<EffectCallContext>();
  const opened = Promise.withResolvers<undefined>();
  return {
    begun: begun.promise,
    open: () => {
      opened.resolve(undefined);
    },
    async fn(context) {
      begun.resolve(context);
      await opened.promise;
      return 'late';
    },
  };
}

describe('An effect call that is taken over', () => {
  test('commits nothing, aborts its signal, and leaves the record to the other', async () => {
    // Arrange
    const scene = callScene(bench);
    const [slow, other] = [scene.caller(), scene.caller(AFTER_THE_LEASE_MS)];
    const work = gate();
    const lost = failureOf(
      slow.once(scene.key, (context) => {
        context.commitWith(scene.addFive);
        return work.fn(context);
      }),
    );
    const { signal } = await work.begun;

    // Act
    const answer = await other.once(scene.key, ({ commitWith, takenOver, attempt }) => {
      commitWith(scene.addFive);
      return { takenOver, attempt };
    });
    const before = await scene.record();
    work.open();
    const error = await lost;

    // Assert
    expect(answer).toEqual({ kind: 'completed', response: { takenOver: true, attempt: 2 } });
    expect(error).toBeInstanceOf(LeaseLostError);
    expect(error).toMatchObject({ reason: 'stolen' });
    expect(signal.aborted).toBe(true);
    expect([await scene.balance(), await scene.record()]).toEqual([5, before]);
  });

  test('learns of it by its next renewal, and is not waited for when it ignores its signal', async () => {
    // Arrange
    const scene = callScene(bench);
    const [slow, other] = [scene.caller(), scene.caller(AFTER_THE_LEASE_MS)];
    const work = gate();
    const lost = failureOf(slow.once(scene.key, work.fn));
    const { signal } = await work.begun;
    await other.once(scene.key, () => 'taken');

    // Act
    bench.transport.forget();
    slow.clock.advance(2_500);
    const error = await lost;
    work.open();

    // Assert
    // One renewal, and nothing after it: what was lost is not touched.
    expect(bench.transport.seen.map(({ operation }) => operation)).toEqual(['UpdateItem']);
    expect(error).toMatchObject({ code: 'LEASE_LOST', reason: 'stolen' });
    expect(signal.reason).toBe(error);
    expect(await other.once(scene.key, () => 'never')).toEqual({ kind: 'replayed', response: 'taken' });
  });

  test('throws the loss also when its function throws because of it, and frees nothing', async () => {
    // Arrange
    const scene = callScene(bench);
    const [slow, other] = [scene.caller(), scene.caller(AFTER_THE_LEASE_MS)];
    const work = gate();
    const held = gate();
    const lost = failureOf(
      slow.once(scene.key, async (context) => {
        await work.fn(context);
        throw new Error('cut off');
      }),
    );
    const { signal } = await work.begun;
    const second = other.once(scene.key, held.fn);
    await held.begun;
    const before = await scene.record();

    // Act
    slow.clock.advance(2_500);
    await new Promise((resolve) => {
      signal.addEventListener('abort', resolve);
    });
    work.open();
    const error = await lost;
    const after = await scene.record();
    held.open();

    // Assert
    expect(error).toBeInstanceOf(LeaseLostError);
    expect(after).toEqual(before);
    expect(await second).toMatchObject({ kind: 'completed' });
  });

  test('tells later attempts since when an outside call is in doubt, also after one that threw', async () => {
    // Arrange
    const scene = callScene(bench);
    const crashed = scene.caller();
    const work = gate();
    const end = failureOf(crashed.once(scene.key, work.fn));
    await work.begun;
    const seen: unknown[] = [];
    const look = (aheadMs: number, fail: boolean): Promise<unknown> =>
      failureOf(
        scene.caller(aheadMs).once(scene.key, ({ takenOver, inDoubtSinceMs }) => {
          seen.push({ takenOver, inDoubtSinceMs });
          if (fail) throw new Error('again');
        }),
      );

    // Act
    await look(60_000, true);
    await look(61_000, true);
    await look(62_000, false);
    work.open();
    await end;

    // Assert
    const since = START_MS;
    expect(seen).toEqual([
      { takenOver: true, inDoubtSinceMs: since },
      { takenOver: false, inDoubtSinceMs: since },
      { takenOver: false, inDoubtSinceMs: since },
    ]);
  });

  test('is in doubt after an attempt that threw: nobody knows what that did outside', async () => {
    // Arrange
    const scene = callScene(bench);
    await failureOf(
      scene.caller().once(scene.key, () => {
        throw new Error('no answer from the provider');
      }),
    );

    // Act
    const answer = await scene.caller(1_000).once(scene.key, ({ inDoubtSinceMs }) => inDoubtSinceMs);

    // Assert
    expect(answer).toEqual({ kind: 'completed', response: START_MS });
  });

  test('has no doubt at its first attempt', async () => {
    const scene = callScene(bench);

    const answer = await scene
      .caller()
      .once(scene.key, ({ takenOver, inDoubtSinceMs }) => ({ takenOver, inDoubtSinceMs }));

    expect(answer).toEqual({ kind: 'completed', response: { takenOver: false } });
  });
});

describe('The lease of an effect call', () => {
  test('is renewed for as long as its function works', async () => {
    // Arrange
    const scene = callScene(bench);
    const { clock, once } = scene.caller();
    const work = gate();
    const done = once(scene.key, work.fn);
    await work.begun;

    // Act
    while (clock.nowMs() < START_MS + 30_000) await pass(clock, scene);
    const record = await scene.record();
    const contender = await scene.caller(clock.nowMs() - START_MS).once(scene.key, () => 'never');
    work.open();

    // Assert
    // The lease of 10 s was begun anew again and again.
    expect(Number(record?.['heartbeat'])).toBeGreaterThanOrEqual(8);
    expect(Number(record?.['expiresAtMs'])).toBeGreaterThan(clock.nowMs());
    expect(contender).toMatchObject({ kind: 'inProgress' });
    expect(await done).toEqual({ kind: 'completed', response: 'late' });
  });

  test('is given up when its function hangs for longer than it may', async () => {
    // Arrange
    const scene = callScene(bench);
    const { clock, once } = scene.caller(0, { maxHoldMs: 20_000 });
    const work = gate();
    const lost = failureOf(once(scene.key, work.fn));
    const { signal } = await work.begun;

    // Act
    while (!signal.aborted && clock.nowMs() < START_MS + 30_000) await pass(clock, scene);
    expect(signal.aborted).toBe(true);
    const error = await lost;

    // Assert
    expect(error).toMatchObject({ code: 'LEASE_LOST', reason: 'maxHold' });
    expect([signal.reason, clock.nowMs() - START_MS, clock.pendingTimers]).toEqual([error, 20_000, 0]);
    work.open();
  });

  test('leaves no timer behind', async () => {
    const scene = callScene(bench);
    const { clock, once } = scene.caller();

    await once(scene.key, () => 1);
    await failureOf(
      once('other', () => {
        throw new Error('failed');
      }),
    );
    await once(scene.key, () => 2);

    expect(clock.pendingTimers).toBe(0);
  });
});

describe('The signal of a caller', () => {
  test('reaches the function, and what that throws is thrown', async () => {
    // Arrange
    const scene = callScene(bench);
    const { once } = scene.caller();
    const request = new AbortController();
    const reason = new Error('the client went away');

    // Act
    const error = await failureOf(
      once(
        scene.key,
        ({ signal }) => {
          request.abort(reason);
          signal.throwIfAborted();
        },
        { signal: request.signal },
      ),
    );

    // Assert
    expect(error).toBe(reason);
    expect(await scene.record()).toMatchObject({ status: 'FAILED', lastError: 'the client went away' });
  });

  test('does not throw away what is done: whoever comes back is answered', async () => {
    // Arrange
    const scene = callScene(bench);
    const { once } = scene.caller();
    const request = new AbortController();

    // Act
    const first = await once(
      scene.key,
      () => {
        request.abort();
        return 'done';
      },
      { signal: request.signal },
    );

    // Assert
    expect(first).toEqual({ kind: 'completed', response: 'done' });
    expect(await once(scene.key, () => 'never')).toEqual({ kind: 'replayed', response: 'done' });
  });

  test('that has aborted keeps the function from starting, before and after the claim', async () => {
    // Arrange
    const scene = callScene(bench);
    const { once } = scene.caller();
    const request = new AbortController();
    const reason = new Error('gone');
    let runs = 0;
    const call = (): Promise<unknown> => failureOf(once(scene.key, () => (runs += 1), { signal: request.signal }));
    const claim = bench.transport.fault('UpdateItem', { kind: 'hold' });

    // Act
    const during = call();
    await claim.hit;
    request.abort(reason);
    await claim.release();
    const errors = [await during, await call()];
    const record = await scene.record();

    // Assert
    expect(errors).toEqual([reason, reason]);
    expect(runs).toBe(0);
    expect(record).toMatchObject({ status: 'FAILED', attempts: 1 });
    expect(record).not.toHaveProperty('inDoubtSinceMs');
  });
});

describe('A lost answer', () => {
  test('to the claim does not keep the caller out of its own key', async () => {
    const scene = callScene(bench);
    bench.transport.fault('UpdateItem', { kind: 'lose the answer' }, { times: 3 });

    const answer = await scene.caller().once(scene.key, ({ attempt }) => attempt);

    expect(answer).toEqual({ kind: 'completed', response: 1 });
  });

  test('to the commit makes no second effect, also when DynamoDB has forgotten the request token', async () => {
    // Arrange
    const scene = callScene(bench);
    const { once } = scene.caller();
    bench.transport.fault(COMMIT, { kind: 'lose the answer' });
    bench.transport.fault(COMMIT, { kind: 'under another token' });

    // Act
    const answer = await once(scene.key, ({ commitWith }) => {
      commitWith(scene.addFive);
      return 'paid';
    });

    // Assert
    expect(answer).toEqual({ kind: 'completed', response: 'paid' });
    expect(bench.transport.count(COMMIT)).toBe(2);
    expect(await scene.balance()).toBe(5);
  });

  test('to every commit is told as ambiguous, and the record knows better', async () => {
    // Arrange
    const scene = callScene(bench);
    const { clock, once } = scene.caller();
    const stopped = bench.transport.fault(COMMIT, { kind: 'lose the answer' }, { times: 1_000 });
    void stopped.hit.then(() => {
      // Half of what is left of the lease is over, so no further try is made.
      clock.stallBeforeTimers(5_000);
    });

    // Act
    const error = await failureOf(
      once(scene.key, ({ commitWith }) => {
        commitWith(scene.addFive);
        return 'paid';
      }),
    );
    bench.transport.heal();
    const later = await once(scene.key, () => 'never');

    // Assert
    expect(error).toBeInstanceOf(BackendError);
    expect(error).toMatchObject({ reason: 'ambiguous' });
    expect(later).toEqual({ kind: 'replayed', response: 'paid' });
    expect(await scene.balance()).toBe(5);
  });

  test('to a commit is not told as a loss without a write, also when the lease is given up meanwhile', async () => {
    // Arrange
    const scene = callScene(bench);
    const { clock, once } = scene.caller(0, { maxHoldMs: 10_000 });
    const lost = bench.transport.fault(COMMIT, { kind: 'lose the answer' });
    void lost.hit.then(() => {
      clock.stall(10_000);
    });

    // Act
    const error = await failureOf(
      once(scene.key, ({ commitWith, signal }) => {
        commitWith(scene.addFive);
        return signal.aborted;
      }),
    );

    // Assert
    expect(error).toMatchObject({ code: 'BACKEND', reason: 'ambiguous' });
    expect([lost.hits, await scene.balance()]).toEqual([1, 5]);
    expect(await once(scene.key, () => 'never')).toEqual({ kind: 'replayed', response: false });
  });

  test('to every commit, of which none arrives, lets the next call do it', async () => {
    // Arrange
    const scene = callScene(bench);
    const { clock, once } = scene.caller();
    const late = bench.transport.fault(COMMIT, { kind: 'deliver late' });
    void late.hit.then(() => {
      clock.stallBeforeTimers(5_000);
    });
    const pay = (): Promise<unknown> =>
      once(scene.key, ({ commitWith, attempt }) => {
        commitWith(scene.addFive);
        return attempt;
      });

    // Act
    const error = await failureOf(pay());
    const second = await pay();
    await late.release();

    // Assert
    expect(error).toMatchObject({ code: 'BACKEND', reason: 'ambiguous' });
    expect(second).toEqual({ kind: 'completed', response: 2 });
    expect(await scene.balance()).toBe(5);
  });

  test('to the release does not hide what the function has thrown', async () => {
    // Arrange
    const scene = callScene(bench);
    const { once } = scene.caller();
    const own = new Error('own');
    // The claim is the first update, the release the second and its repetitions.
    bench.transport.fault('UpdateItem', { kind: 'lose the request' }, { nth: 2, times: 10 });

    // Act
    const error = await failureOf(
      once(scene.key, () => {
        throw own;
      }),
    );
    bench.transport.heal();
    const other = await scene.caller(AFTER_THE_LEASE_MS).once(scene.key, ({ takenOver }) => takenOver);

    // Assert
    expect(error).toBe(own);
    expect(other).toEqual({ kind: 'completed', response: true });
  });

  test('to a release that hangs is not waited for without end', async () => {
    // Arrange
    const scene = callScene(bench);
    const { clock, once } = scene.caller();
    const own = new Error('own');
    const hung = bench.transport.fault('UpdateItem', { kind: 'never answer' }, { nth: 2, times: 10 });

    // Act
    const failed = failureOf(
      once(scene.key, () => {
        throw own;
      }),
    );
    await hung.hit;
    clock.advance(5_000);

    // Assert
    expect(await failed).toBe(own);
    expect(hung.hits).toBe(1);
  });
});

test('A store that cannot be reached starts no function', async () => {
  const scene = callScene(bench);
  bench.transport.fault('UpdateItem', { kind: 'lose the request' }, { times: 100 });
  let runs = 0;

  const error = await failureOf(scene.caller().once(scene.key, () => (runs += 1)));

  expect(error).toMatchObject({ code: 'BACKEND', retryable: true });
  expect(runs).toBe(0);
});
