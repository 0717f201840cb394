import { describe, expect, test } from 'vitest';
import { orAborted } from '../../src/or-aborted.ts';
import { keepAlive } from '../../src/store/leases/keep-alive.ts';
import { StoreClock } from '../support/store-clock.ts';

/** A lease that counts its renewals, each of which ends when the test says so. */
class FakeLease {
  readonly #loss = new AbortController();
  renewals = 0;
  leftMs = 8_000;
  isEnded = false;
  givenUp: string | undefined;
  answer: Promise<boolean> = Promise.resolve(true);

  get signal(): AbortSignal {
    return this.#loss.signal;
  }
  remainingMs(): number {
    return this.leftMs;
  }
  renew(): Promise<boolean> {
    this.renewals += 1;
    return this.answer;
  }
  giveUp(reason: string): void {
    this.givenUp = reason;
    this.lose();
  }
  lose(): void {
    this.#loss.abort(new Error('lost'));
  }
}

function start(options: { lease?: FakeLease; chance?: number; maxHoldMs?: number } = {}) {
  const { lease = new FakeLease(), chance = 0.5, maxHoldMs = 1_000_000 } = options;
  const clock = new StoreClock();
  const beats = keepAlive({ lease, heartbeatMs: 2_000, maxHoldMs, clock, random: () => chance });
  const pass = async (ms: number): Promise<void> => {
    clock.advance(ms);
    // A renewal that has been answered plans the next one a few turns later.
    for (let turn = 0; turn < 5; turn += 1) await Promise.resolve();
  };
  return { lease, clock, beats, pass };
}

describe('keepAlive', () => {
  test.each([
    { chance: 0, dueMs: 1_800 },
    { chance: 0.5, dueMs: 2_000 },
    { chance: 0.999_999, dueMs: 2_200 },
  ])('beats within a tenth of its interval, at $dueMs ms by a chance of $chance', async ({ chance, dueMs }) => {
    const { lease, pass } = start({ chance });

    await pass(dueMs - 1);
    const before = lease.renewals;
    await pass(1);
    await pass(dueMs);

    expect([before, lease.renewals]).toEqual([0, 2]);
  });

  test('beats sooner when little of the lease is left, and never in a hot loop', async () => {
    const lease = new FakeLease();
    lease.leftMs = 1_600;
    const { pass } = start({ lease });

    await pass(800);
    lease.leftMs = 0;
    await pass(800);
    const soon = lease.renewals;
    await pass(499);
    const early = lease.renewals;
    await pass(1);

    expect([soon, early, lease.renewals]).toEqual([2, 2, 3]);
  });

  test('goes on beating after a renewal that failed', async () => {
    const { lease, pass } = start();
    lease.answer = Promise.reject(new Error('denied'));

    await pass(2_000);
    await pass(2_000);

    expect(lease.renewals).toBe(2);
  });

  test.each([
    { title: 'is lost', end: (lease: FakeLease) => lease.lose() },
    { title: 'has ended', end: (lease: FakeLease) => void (lease.isEnded = true) },
  ])('does not beat once its lease $title', async ({ end }) => {
    const { lease, pass } = start();

    end(lease);
    await pass(2_000);
    await pass(2_000);

    expect(lease.renewals).toBe(0);
  });

  test('gives the lease up after the longest hold, and not when it has ended before', async () => {
    const [held, ended] = [start({ maxHoldMs: 5_000 }), start({ maxHoldMs: 5_000 })];
    ended.lease.isEnded = true;

    for (const { pass } of [held, ended]) {
      await pass(2_000);
      await pass(2_999);
    }
    const before = held.lease.givenUp;
    for (const { pass } of [held, ended]) await pass(1);

    expect([before, held.lease.givenUp, ended.lease.givenUp]).toEqual([undefined, 'maxHold', undefined]);
  });

  test('stops when no beat is on its way any more, and leaves no timer', async () => {
    const { lease, clock, beats, pass } = start();
    const renewal = Promise.withResolvers<boolean>();
    lease.answer = renewal.promise;
    await pass(2_000);
    const order: string[] = [];

    const stopped = beats.stop().then(() => order.push('stopped'));
    await pass(0);
    order.push('answered');
    renewal.resolve(true);
    await stopped;
    await pass(10_000);

    expect(order).toEqual(['answered', 'stopped']);
    expect([lease.renewals, clock.pendingTimers]).toEqual([1, 0]);
  });
});

describe('orAborted', () => {
  test('settles as the work does while nothing aborts', async () => {
    const { signal } = new AbortController();

    expect(await orAborted(Promise.resolve(1), signal)).toBe(1);
    await expect(orAborted(Promise.reject(new Error('own')), signal)).rejects.toThrow('own');
  });

  test('rejects at once with the reason, also when it has aborted before', async () => {
    const loss = new AbortController();
    const endless = new Promise<never>(() => undefined);
    const during = orAborted(endless, loss.signal);

    loss.abort(new Error('lost'));

    await expect(during).rejects.toThrow('lost');
    await expect(orAborted(endless, loss.signal)).rejects.toThrow('lost');
  });
});
