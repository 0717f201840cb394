import { expect, test } from 'vitest';
import { WaitingAnswers } from '../../src/payments/waiting-answers.ts';
import { ManualClock } from './manual-clock.ts';

const request = { ruleId: 'r', reference: 'req-1', caller: 'w1', chargedAtMs: 5 };

function setUp() {
  const clock = new ManualClock();
  return { clock, waiting: new WaitingAnswers(clock), gone: new AbortController() };
}

test('holds until the rule is released, and lists the request meanwhile', async () => {
  const { waiting, gone } = setUp();
  const end = waiting.hold(request, gone.signal);

  expect(waiting.held()).toMatchObject([{ ...request, sequence: 1 }]);
  expect(waiting.release('another rule')).toBe(0);
  expect(waiting.release('r')).toBe(1);
  expect(await end).toBe('released');
  expect(waiting.held()).toEqual([]);
});

test('releases a single held request by its own id', async () => {
  const { waiting, gone } = setUp();
  const first = waiting.hold(request, gone.signal);
  void waiting.hold(request, gone.signal);

  expect(waiting.release(waiting.held()[0]?.id ?? '')).toBe(1);
  expect(await first).toBe('released');
  expect(waiting.held().map(({ sequence }) => sequence)).toEqual([2]);
});

test('lets go of a held request when its caller is gone', async () => {
  const { waiting, gone } = setUp();
  const end = waiting.hold(request, gone.signal);

  gone.abort();

  expect(await end).toBe('gone');
  expect(waiting.held()).toEqual([]);
});

test('keeps a late answer for its delay, on the injected clock, and does not list it as held', async () => {
  const { clock, waiting, gone } = setUp();
  let end = 'still waiting';
  const late = waiting.delay(100, gone.signal).then((how) => {
    end = how;
  });
  clock.advance(99);
  await Promise.resolve();

  expect(end).toBe('still waiting');
  expect(waiting.held()).toEqual([]);
  clock.advance(1);
  await late;
  expect(end).toBe('released');
});

test('lets everything go at once, late answers too, and leaves no timer behind', async () => {
  const { clock, waiting, gone } = setUp();
  const ends = [waiting.hold(request, gone.signal), waiting.delay(1000, gone.signal)];

  waiting.releaseAll();

  expect(await Promise.all(ends)).toEqual(['released', 'released']);
  expect(clock.pendingTimers).toBe(0);
});

test('keeps at most 128 answers waiting', async () => {
  const { waiting, gone } = setUp();
  for (let n = 0; n < 128; n += 1) void waiting.hold(request, gone.signal);

  expect(await waiting.hold(request, gone.signal)).toBe('full');
  expect(await waiting.delay(1, gone.signal)).toBe('full');
  expect(waiting.held()).toHaveLength(128);
});

test('wakes a watcher as soon as something new is held', async () => {
  const { clock, waiting, gone } = setUp();
  const seen = waiting.watch(0, 60_000, gone.signal);

  void waiting.hold(request, gone.signal);

  expect(await seen).toMatchObject([{ reference: 'req-1' }]);
  expect(clock.pendingTimers).toBe(0);
});

test('does not wake a watcher for what it has seen already', async () => {
  const { clock, waiting, gone } = setUp();
  void waiting.hold(request, gone.signal);
  const seen = waiting.watch(1, 60_000, gone.signal);

  expect(clock.pendingTimers).toBe(1);
  void waiting.hold({ ...request, reference: 'req-2' }, gone.signal);
  expect(await seen).toMatchObject([{ reference: 'req-2', sequence: 2 }]);
});

test('gives an empty list when the wait is over or the watcher is gone', async () => {
  const { clock, waiting, gone } = setUp();
  const first = waiting.watch(0, 50, new AbortController().signal);
  clock.advance(50);
  const second = waiting.watch(0, 50, gone.signal);
  gone.abort();

  expect(await Promise.all([first, second])).toEqual([[], []]);
  expect(clock.pendingTimers).toBe(0);
});

test('lets at most 32 watch at one time', async () => {
  const { waiting, gone } = setUp();
  for (let n = 0; n < 32; n += 1) void waiting.watch(0, 50, gone.signal);

  expect(await waiting.watch(0, 50, gone.signal)).toBe('full');
  gone.abort();
});
