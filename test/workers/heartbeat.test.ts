import fc from 'fast-check';
import { expect, test } from 'vitest';
import type { BeatAnswer } from '../../src/workers/beat-batch.ts';
import { startHeartbeat, VisibilityLostError, type HeartbeatOptions } from '../../src/workers/heartbeat.ts';
import { ManualClock } from '../payments/manual-clock.ts';

const HOUR_MS = 3_600_000;

type Settings = Partial<HeartbeatOptions> & { readonly answer?: BeatAnswer; readonly remainingMs?: number };

/** A heartbeat on a clock of the test's, with a lease that is always held: twelve hours cannot be waited for. */
function startBeating({ answer = 'changed', remainingMs = 24 * HOUR_MS, ...settings }: Settings = {}) {
  const clock = new ManualClock();
  const asked: { seconds: number; atMs: number }[] = [];
  let renewals = 0;
  const beganAtMs = clock.monotonicMs();
  const heartbeat = startHeartbeat({
    lease: {
      renew: () => {
        renewals += 1;
        return Promise.resolve(true);
      },
      remainingMs: () => remainingMs,
      signal: new AbortController().signal,
    },
    receiptHandle: 'handle',
    acknowledger: {
      extendVisibility: (_handle, seconds) => {
        asked.push({ seconds, atMs: clock.monotonicMs() - beganAtMs });
        return Promise.resolve(answer);
      },
      withdrawBeat: () => Promise.resolve(),
    },
    heartbeatMs: HOUR_MS,
    visibilityTimeoutSeconds: 6 * 3_600,
    clock,
    random: () => 0.5,
    ...settings,
  });
  const pass = async (ms: number): Promise<void> => {
    clock.advance(ms);
    await new Promise(setImmediate);
  };
  return { clock, heartbeat, asked, pass, renewals: () => renewals };
}

test('never asks for more than is left of the twelve hours after the receive, and tells the loss when they are over', async () => {
  const { heartbeat, asked, pass, clock } = startBeating();

  for (let hour = 1; hour <= 12; hour += 1) await pass(HOUR_MS);

  expect(asked.map(({ seconds }) => seconds / 3_600)).toEqual([6, 6, 6, 6, 6, 6, 5, 4, 3, 2, 1]);
  expect(heartbeat.isVisibilityLost).toBe(true);
  expect(heartbeat.signal.reason).toBeInstanceOf(VisibilityLostError);
  expect(clock.pendingTimers).toBe(0);
});

test('counts the twelve hours from the receive, not from the start', async () => {
  const receivedAtMonoMs = new ManualClock().monotonicMs() - 11 * HOUR_MS;
  const { heartbeat, asked, pass } = startBeating({ heartbeatMs: HOUR_MS / 2, receivedAtMonoMs });

  await pass(HOUR_MS / 2);
  await pass(HOUR_MS / 2);

  expect(asked.map(({ seconds }) => seconds / 3_600)).toEqual([0.5]);
  expect(heartbeat.isVisibilityLost).toBe(true);
});

test('goes on beating when SQS cannot be reached: the lease decides for how long', async () => {
  const { heartbeat, asked, pass } = startBeating({ answer: 'failed' });

  for (let hour = 1; hour <= 3; hour += 1) await pass(HOUR_MS);

  expect([asked.length, heartbeat.signal.aborted]).toEqual([3, false]);
});

test('M14 is told once that the message is gone, beats no more and aborts', async () => {
  const { heartbeat, asked, pass, clock } = startBeating({ answer: 'gone' });

  for (let hour = 1; hour <= 3; hour += 1) await pass(HOUR_MS);

  expect([asked.length, heartbeat.isVisibilityLost, clock.pendingTimers]).toEqual([1, true, 0]);
  expect(heartbeat.signal.reason).toBeInstanceOf(VisibilityLostError);
});

test('beats no more after it was stopped', async () => {
  const { heartbeat, asked, pass, clock } = startBeating();
  await pass(HOUR_MS);

  await heartbeat.stop();
  await pass(HOUR_MS);

  expect([asked.length, clock.pendingTimers, heartbeat.signal.aborted]).toEqual([1, 0, false]);
});

test('a beat whose renewal is on its way when it is stopped asks SQS for nothing', async () => {
  const renewal = Promise.withResolvers<boolean>();
  const lease = { renew: () => renewal.promise, remainingMs: () => HOUR_MS, signal: new AbortController().signal };
  const { heartbeat, asked, pass } = startBeating({ lease });
  await pass(HOUR_MS);

  const stopped = heartbeat.stop();
  renewal.resolve(true);
  await stopped;

  expect(asked).toEqual([]);
});

test('a stop withdraws the beat that waits for its request, and waits for nothing else', async () => {
  const answer = Promise.withResolvers<BeatAnswer>();
  const withdrawn: string[] = [];
  const { heartbeat, pass } = startBeating({
    acknowledger: {
      extendVisibility: () => answer.promise,
      withdrawBeat: (handle) => {
        withdrawn.push(handle);
        answer.resolve('withdrawn');
        return Promise.resolve();
      },
    },
  });
  await pass(HOUR_MS);

  await heartbeat.stop();

  expect([withdrawn, heartbeat.isVisibilityLost]).toEqual([['handle'], false]);
});

test('spreads its beats by a tenth to either side', () => {
  const due = [0, 0.999].map((chance) => {
    const { clock, asked, renewals } = startBeating({ random: () => chance });
    let minutes = 0;
    while (renewals() === 0 && asked.length === 0 && minutes < 120) {
      minutes += 1;
      clock.advance(60_000);
    }
    return minutes;
  });

  expect(due).toEqual([54, 66]);
});

test('beats sooner when a slow claim has used up most of the lease', async () => {
  const { asked, pass } = startBeating({ remainingMs: HOUR_MS });

  await pass(HOUR_MS / 2);

  expect(asked).toHaveLength(1);
});

test('what a beat takes does not put off the next one', async () => {
  const answers: PromiseWithResolvers<BeatAnswer>[] = [];
  const { pass, renewals } = startBeating({
    acknowledger: {
      extendVisibility: () => {
        const answer = Promise.withResolvers<BeatAnswer>();
        answers.push(answer);
        return answer.promise;
      },
      withdrawBeat: () => Promise.resolve(),
    },
  });
  await pass(HOUR_MS);
  await pass(HOUR_MS / 2);
  answers[0]?.resolve('changed');
  await new Promise(setImmediate);

  await pass(HOUR_MS / 2);

  expect(renewals()).toBe(2);
});

/** How a visibility fares over a minute or more under a heartbeat that wants to beat much more often. */
async function extensionsOf(settings: { visibilityTimeoutSeconds: number; heartbeatMs: number; random: () => number }) {
  const { asked, pass } = startBeating(settings);
  for (let passedMs = 0; passedMs < 20_000 * settings.visibilityTimeoutSeconds; passedMs += 25) await pass(25);
  const times = asked.map(({ atMs }) => atMs);
  return times.map((atMs, index) => atMs - (times[index - 1] ?? 0));
}

test.each([1, 2, 3, 5])(
  'M15: a visibility of %i s is extended at most once per third, and never runs out',
  async (visibilityTimeoutSeconds) => {
    const draws = [0.1, 0.9, 0.5, 0.3];
    let drawn = 0;
    const random = (): number => draws[(drawn += 1) % draws.length] ?? 0;
    const visibilityMs = visibilityTimeoutSeconds * 1_000;

    const gaps = await extensionsOf({ visibilityTimeoutSeconds, heartbeatMs: 100, random });

    expect(gaps.length).toBeGreaterThan(20);
    expect(Math.min(...gaps)).toBeGreaterThanOrEqual(Math.min(visibilityMs / 2, Math.max(1_000, visibilityMs / 3)));
    expect(Math.max(...gaps)).toBeLessThan(visibilityMs);
  },
);

test('M15: the visibility always outlasts the lease, and is left alone as long as it does', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.integer({ min: 6, max: 600 }),
      fc.integer({ min: 1, max: 100 }),
      async (visibilityTimeoutSeconds, share) => {
        const visibilityMs = visibilityTimeoutSeconds * 1_000;
        const leaseCountsMs = Math.max(2_000, (visibilityMs * share) / 100);
        const heartbeatMs = leaseCountsMs / 4;
        const { asked, pass, renewals } = startBeating({ visibilityTimeoutSeconds, heartbeatMs, leaseCountsMs });
        let [hiddenUntilMs, seen] = [visibilityMs, 0];
        for (let beat = 1; beat <= 60; beat += 1) {
          await pass(heartbeatMs);
          for (const { atMs, seconds } of asked.slice(seen)) hiddenUntilMs = atMs + seconds * 1_000;
          seen = asked.length;
          const nowMs = beat * heartbeatMs;
          // A beat that comes sooner than a second after the last one leaves it alone all the same.
          const slackMs = heartbeatMs < 1_000 ? 1_000 : 0;
          expect(hiddenUntilMs + slackMs).toBeGreaterThanOrEqual(nowMs + leaseCountsMs);
        }
        expect(renewals()).toBe(60);
      },
    ),
    { numRuns: 30 },
  );
});

test('extends a long visibility beside a short lease once per third of it, and not with every beat', async () => {
  const { asked, pass, renewals } = startBeating({
    visibilityTimeoutSeconds: 300,
    heartbeatMs: 5_000,
    leaseCountsMs: 22_000,
  });

  for (let beat = 1; beat <= 60; beat += 1) await pass(5_000);

  expect([asked.length, renewals()]).toEqual([3, 60]);
});
