import fc from 'fast-check';
import { expect, test } from 'vitest';
import type { Acknowledger } from '../../src/workers/acknowledger.ts';
import { createReceiptHandles } from '../../src/workers/receipt-handles.ts';
import { allDone, scriptedSqs, type Answering, type EntryFate, type SentRequest } from '../support/scripted-sqs.ts';
import { refusedConnection, serviceError } from '../support/worker-faults.ts';

const FAILED: EntryFate = { Code: 'InternalError', SenderFault: false };
const THROTTLED: EntryFate = { Code: 'RequestThrottled', SenderFault: true };
const GONE: EntryFate = { Code: 'ReceiptHandleIsInvalid', SenderFault: true };

const all =
  (fate: EntryFate): Answering =>
  (request) =>
    request.entries.map(() => fate);
const handlesOf = (request: SentRequest | undefined): string[] => (request?.entries ?? []).map(({ handle }) => handle);
const names = (count: number): string[] => Array.from({ length: count }, (_, index) => `h${String(index)}`);

/** The answer when it is there, to be looked at without waiting. */
function watch<Value>(promise: Promise<Value>): { answer: Value | undefined } {
  const watched: { answer: Value | undefined } = { answer: undefined };
  void promise.then((value) => {
    watched.answer = value;
  });
  return watched;
}

test('M16: of ten deletes the three that fail are repeated alone, with a longer wait when the request fails too', async () => {
  // Arrange
  const fates: Answering = async ({ entries }, nth) => {
    if (nth === 1) return entries.map((_entry, index): EntryFate => (index < 7 ? 'done' : FAILED));
    if (nth === 2) throw serviceError('ServiceUnavailable', 503);
    return entries.map(() => 'done');
  };
  const { acknowledger, requests, pass } = scriptedSqs(fates, { random: () => 0.999 });

  // Act
  const confirmed = Promise.all(names(10).map((handle) => acknowledger.delete(handle)));
  await pass(1_000);

  // Assert
  expect(await confirmed).toEqual(names(10).map(() => true));
  expect(requests.map(handlesOf)).toEqual([names(10), ['h7', 'h8', 'h9'], ['h7', 'h8', 'h9']]);
  expect(requests.map(({ atMs }) => atMs)).toEqual([0, 110, 320]);
});

test.each<[string, Answering, number]>([
  ['every request hangs', () => new Promise(() => undefined), 6],
  ['every request fails', () => Promise.reject(refusedConnection()), 6],
  ['every entry fails', all(FAILED), 6],
  ['no entry is mentioned', all('missing'), 6],
  ['the handle is refused for good', all(GONE), 1],
  ['the credentials are refused', () => Promise.reject(serviceError('AccessDenied', 403)), 1],
])('M16: a delete settles within a bound when %s', async (_case, answering, tries) => {
  const { acknowledger, requests, pass, clock } = scriptedSqs(answering);
  const confirmed = watch(acknowledger.delete('h'));

  await pass(40_000);

  expect([confirmed.answer, requests.length, clock.pendingTimers]).toEqual([false, tries, 0]);
});

test('M5: a delete is repeated with the handle under which the message came back meanwhile', async () => {
  // Arrange
  const { acknowledger, requests, pass } = scriptedSqs(({ entries }, nth) =>
    entries.map(() => (nth === 1 ? FAILED : 'done')),
  );

  // Act
  const confirmed = acknowledger.delete('old', 'm1');
  await pass(15);
  const isSettling = acknowledger.arrived('m1', 'new');
  await pass(200);

  // Assert
  expect([isSettling, await confirmed, requests.map(handlesOf)]).toEqual([true, true, [['old'], ['new']]]);
  expect(acknowledger.arrived('m1', 'later')).toBe(false);
});

test.each<[string, EntryFate]>([
  ['said yes to', 'done'],
  ['refused', GONE],
])('an older handle that SQS %s while the message came back is not the end of its delete', async (_case, fate) => {
  // Arrange
  const answer = Promise.withResolvers<readonly EntryFate[]>();
  const { acknowledger, requests, pass } = scriptedSqs((_request, nth) => (nth === 1 ? answer.promise : ['done']));

  // Act
  const confirmed = acknowledger.delete('old', 'm1');
  await pass(15);
  acknowledger.arrived('m1', 'new');
  answer.resolve([fate]);
  await pass(200);

  // Assert
  expect([await confirmed, requests.map(handlesOf)]).toEqual([true, [['old'], ['new']]]);
});

test('a message counts as being settled until every settlement of it is over, and no more are kept than fit', () => {
  const handles = createReceiptHandles(2);
  const [first, again] = [handles.open('a1', 'a'), handles.open('a2', 'a')];
  handles.open('b1', 'b');
  const over = handles.open('c1', 'c');

  const arrived = [handles.arrived('a', 'a3'), handles.arrived('c', 'c2'), handles.arrived('d', 'd1')];
  first.close();
  first.close();
  const stillOpen = handles.arrived('a', 'a4');
  const newest = [first.newest(), again.newest(), over.newest()];
  again.close();

  expect([arrived, stillOpen, newest]).toEqual([[true, false, false], true, ['a4', 'a4', 'c1']]);
  expect([handles.arrived('a', 'a5'), handles.size]).toEqual([false, 1]);
});

test('a message that comes back when its delay is over is a new delivery, also before the answer to its hiding is here', () => {
  const handles = createReceiptHandles();
  let isOver = false;
  const open = handles.open('a1', 'a', () => isOver);

  const early = [handles.arrived('a', 'a2'), open.newest()];
  isOver = true;
  const due = [handles.arrived('a', 'a3'), open.newest()];

  expect([early, due]).toEqual([
    [true, 'a2'],
    [false, 'a2'],
  ]);
});

test('a settlement waits for nobody when all that is at work waits with it', async () => {
  let working = 3;
  const { acknowledger, requests, pass } = scriptedSqs(allDone, { inFlight: () => working });
  const settle = (handle: string): void => void acknowledger.delete(handle);

  ['a', 'b', 'c'].forEach(settle);
  await pass(0);
  const together = requests.map(handlesOf);
  working = 2;
  settle('d');
  await pass(5);
  const early = requests.length;
  await pass(5);

  expect([together, early, requests.map(handlesOf)]).toEqual([[['a', 'b', 'c']], 1, [['a', 'b', 'c'], ['d']]]);
});

test('a hundred beats within a short time are ten requests', async () => {
  const { acknowledger, requests, pass } = scriptedSqs();

  const answers = Promise.all(names(100).map((handle) => acknowledger.extendVisibility(handle, 30)));
  await pass(100);

  expect(new Set(await answers)).toEqual(new Set(['changed']));
  expect(requests.map(({ entries }) => entries.length)).toEqual(Array.from({ length: 10 }, () => 10));
  expect(requests.flatMap(handlesOf)).toEqual(names(100));
  for (const { entries } of requests) expect(new Set(entries.map(({ id }) => id)).size).toBe(10);
});

test('a few beats wait a tenth of their limit for each other, and no longer', async () => {
  const { acknowledger, requests, pass } = scriptedSqs();

  void acknowledger.extendVisibility('a', 30);
  await pass(60);
  void acknowledger.extendVisibility('b', 30);
  await pass(60);

  expect(requests).toMatchObject([{ atMs: 100, entries: [{ handle: 'a' }, { handle: 'b' }] }]);
});

test('M14: a dead handle among others is told to its own beat alone', async () => {
  const { acknowledger, pass } = scriptedSqs(({ entries }) =>
    entries.map(({ handle }) => (handle === 'h3' ? GONE : 'done')),
  );

  const answers = Promise.all(names(5).map((handle) => acknowledger.extendVisibility(handle, 30)));
  await pass(100);

  expect(await answers).toEqual(['changed', 'changed', 'changed', 'gone', 'changed']);
});

test.each<[string, Answering, boolean]>([
  ['the request fails', () => Promise.reject(serviceError('InternalFailure', 500)), true],
  ['the request hangs', () => new Promise(() => undefined), false],
  ['SQS throttles the entry', all(THROTTLED), true],
  ['permissions are missing', () => Promise.reject(serviceError('AccessDenied', 403)), false],
])('a beat is over in time and not taken for a loss when %s', async (_case, answering, isRepeated) => {
  const { acknowledger, requests, pass, clock } = scriptedSqs(answering);
  const beat = watch(acknowledger.extendVisibility('h', 30));

  await pass(1_000);

  expect([beat.answer, requests.length > 1, clock.pendingTimers]).toEqual(['failed', isRepeated, 0]);
});

test('a beat that fails is repeated by itself while others are done', async () => {
  const { acknowledger, requests, pass } = scriptedSqs(({ entries }, nth) =>
    entries.map(({ handle }) => (handle === 'h1' && nth === 1 ? FAILED : 'done')),
  );

  const answers = Promise.all(names(3).map((handle) => acknowledger.extendVisibility(handle, 30)));
  await pass(400);

  expect(await answers).toEqual(['changed', 'changed', 'changed']);
  expect(requests.map(handlesOf)).toEqual([names(3), ['h1']]);
});

test.each<[string, (acknowledger: Acknowledger) => Promise<unknown>, SentRequest['kind']]>([
  ['hidden for a retry', (acknowledger) => acknowledger.changeVisibility('a', 5), 'change'],
  ['deleted', (acknowledger) => acknowledger.delete('a'), 'delete'],
])('a beat that waits is taken out when its message is %s', async (_case, settle, kind) => {
  // Arrange
  const { acknowledger, requests, pass } = scriptedSqs();
  const [beat, other] = [acknowledger.extendVisibility('a', 30), acknowledger.extendVisibility('b', 30)];

  // Act
  const settled = settle(acknowledger);
  const late = acknowledger.extendVisibility('a', 30);
  await pass(150);
  await settled;

  // Assert
  expect([await beat, await late, await other]).toEqual(['withdrawn', 'withdrawn', 'changed']);
  expect(requests.map((request) => [request.kind, handlesOf(request)])).toEqual([
    [kind, ['a']],
    ['change', ['b']],
  ]);
});

test('a settlement waits for the beat that is on its way, which is not repeated then', async () => {
  // Arrange
  const answer = Promise.withResolvers<readonly EntryFate[]>();
  const { acknowledger, requests, pass } = scriptedSqs((_request, nth) => (nth === 1 ? answer.promise : ['done']));
  const beat = acknowledger.extendVisibility('a', 30);
  await pass(100);

  // Act
  const hidden = acknowledger.changeVisibility('a', 5);
  await pass(100);
  const sentBefore = requests.length;
  answer.resolve([FAILED]);
  await pass(500);

  // Assert
  expect([sentBefore, await beat, await hidden]).toEqual([1, 'withdrawn', 'changed']);
  expect(requests.map(({ entries }) => entries[0]?.seconds)).toEqual([30, 5]);
});

test('a delay counts from its first request: a repeated one asks for what is left of it', async () => {
  const { acknowledger, requests, pass } = scriptedSqs(({ entries }, nth) =>
    nth === 1 ? new Promise(() => undefined) : entries.map(() => 'done'),
  );
  const hidden = acknowledger.changeVisibility('a', 2);

  await pass(2_000);

  expect(await hidden).toBe('changed');
  expect(requests.map(({ atMs, entries }) => [atMs, entries[0]?.seconds])).toEqual([
    [10, 2],
    [1_070, 1],
  ]);
});

test('a change that may have been made is not repeated once the delay is over', async () => {
  const { acknowledger, requests, pass } = scriptedSqs(() => Promise.reject(serviceError('InternalFailure', 500)));
  const [atOnce, later] = [watch(acknowledger.changeVisibility('a', 0)), watch(acknowledger.changeVisibility('b', 1))];

  await pass(5_000);

  expect([atOnce.answer, later.answer]).toEqual(['failed', 'failed']);
  expect(requests.map(handlesOf)).toEqual([['a', 'b'], ['b'], ['b'], ['b']]);
  for (const { atMs } of requests) expect(atMs).toBeLessThan(1_010);
});

test('a change that was surely not made is repeated, and settles within a bound', async () => {
  const { acknowledger, requests, pass } = scriptedSqs(() => Promise.reject(refusedConnection()));
  const hidden = watch(acknowledger.changeVisibility('a', 0));

  await pass(5_000);

  expect([hidden.answer, requests.length]).toEqual(['failed', 4]);
});

test('a hidden message that came back meanwhile is hidden under its new handle', async () => {
  const { acknowledger, requests, pass } = scriptedSqs(({ entries }, nth) =>
    entries.map(() => (nth === 1 ? FAILED : 'done')),
  );

  const hidden = acknowledger.changeVisibility('old', 60, 'm1');
  await pass(15);
  acknowledger.arrived('m1', 'new');
  await pass(200);

  expect([await hidden, requests.map(handlesOf)]).toEqual(['changed', [['old'], ['new']]]);
});

const fates = fc.constantFrom<EntryFate | 'reject' | 'hang'>(
  'done',
  'missing',
  FAILED,
  THROTTLED,
  GONE,
  'reject',
  'hang',
);

test('whatever SQS answers, no message is beaten once its settlement is sent, and everything settles', async () => {
  const action = fc.record({
    waitMs: fc.integer({ min: 0, max: 300 }),
    message: fc.integer({ min: 0, max: 14 }),
    does: fc.constantFrom('beat', 'beat', 'beat', 'hide', 'delete'),
  });
  await fc.assert(
    fc.asyncProperty(
      fc.array(action, { maxLength: 60 }),
      fc.array(fates, { minLength: 1 }),
      async (actions, script) => {
        let drawn = 0;
        const next = (): EntryFate | 'reject' | 'hang' => script[(drawn += 1) % script.length] ?? 'done';
        const { acknowledger, requests, pass, clock } = scriptedSqs(async ({ entries }) => {
          const first = next();
          if (first === 'reject') throw serviceError('InternalFailure', 500);
          if (first === 'hang') return new Promise<never>(() => undefined);
          return entries.map((_entry, index): EntryFate => {
            const fate = index === 0 ? first : next();
            return typeof fate === 'object' || fate === 'missing' ? fate : 'done';
          });
        });
        const [settled, settling] = [new Set<string>(), new Set<string>()];
        let open = 0;
        const track = (promise: Promise<unknown>): void => {
          open += 1;
          void promise.then(() => (open -= 1));
        };
        for (const { waitMs, message, does } of actions) {
          const handle = `h${String(message)}`;
          // A beat may be asked for as long as the settlement goes on; a second settlement, or a beat after it, may not.
          if (settled.has(handle) && (does !== 'beat' || !settling.has(handle))) continue;
          if (does === 'beat') track(acknowledger.extendVisibility(handle, 30));
          else {
            settled.add(handle);
            settling.add(handle);
            const settlement = does === 'hide' ? acknowledger.changeVisibility(handle, 5) : acknowledger.delete(handle);
            track(settlement);
            void settlement.then(() => settling.delete(handle));
          }
          if (waitMs > 250) await pass(waitMs - 250);
        }
        await pass(40_000);

        expect([open, clock.pendingTimers]).toEqual([0, 0]);
        const isSettling = new Set<string>();
        for (const { entries } of requests) {
          expect(entries.length).toBeLessThanOrEqual(10);
          expect(new Set(entries.map(({ id }) => id)).size).toBe(entries.length);
          expect(new Set(entries.map(({ handle }) => handle)).size).toBe(entries.length);
          const beats = entries.filter(({ seconds }) => seconds === 30);
          expect(beats.filter(({ handle }) => isSettling.has(handle))).toEqual([]);
          for (const { handle, seconds } of entries) if (seconds !== 30) isSettling.add(handle);
        }
      },
    ),
    { numRuns: 25 },
  );
}, 60_000);
