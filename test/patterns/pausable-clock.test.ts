import { expect, test } from 'vitest';
import { createPausableClock } from '../../src/patterns/pausable-clock.ts';
import { StoreClock } from '../support/store-clock.ts';

test('no timer of a paused process runs, and what fell due meanwhile runs when it wakes up', () => {
  // Arrange
  const time = new StoreClock();
  const clock = createPausableClock(time);
  const ran: string[] = [];
  const add = (name: string, delayMs: number) => clock.schedule(() => void ran.push(name), delayMs);
  add('before', 10);
  add('meanwhile', 20);
  const cancelLate = add('cancelled after it fell due', 20);
  add('afterwards', 40);

  // Act
  time.advance(10);
  clock.pause();
  time.advance(20);
  const whilePaused = [...ran];
  cancelLate();
  clock.resume();
  const whenAwake = [...ran];
  time.advance(10);

  // Assert
  expect(whilePaused).toEqual(['before']);
  expect(whenAwake).toEqual(['before', 'meanwhile']);
  expect(ran).toEqual(['before', 'meanwhile', 'afterwards']);
});

test('a paused process sees the time go on', () => {
  const time = new StoreClock();
  const clock = createPausableClock(time);
  const before = { wall: clock.nowMs(), mono: clock.monotonicMs() };

  clock.pause();
  time.advance(500);

  expect(clock.nowMs() - before.wall).toBe(500);
  expect(clock.monotonicMs() - before.mono).toBe(500);
});
