import { expect, test } from 'vitest';
import { seededRandom, type Random } from '../../src/clock.ts';
import { BackendError } from '../../src/errors.ts';
import type { Store } from '../../src/store/store.ts';
import type { VersionedItem } from '../../src/store/versioned.ts';
import { useStoreBench } from '../support/store-bench.ts';
import { versionedScene } from '../support/store-versioned.ts';

const bench = useStoreBench();
const { freshKey, made, stored } = versionedScene(bench);

const RACERS = 64;

const racers = (): number[] => Array.from({ length: RACERS }, (_none, index) => index);

/** Waits spread as in life, but short: whether all get through does not depend on their length. */
function shortWaits(): Random {
  const random = seededRandom(64);
  return () => random() / 20;
}

/** Over a thousand requests, on machines that are busy with other tests. */
const RACE = { timeout: 60_000 };

/** With time enough for a busy machine: an answer that comes too late is one that was lost. */
const racingStore = (): Store =>
  bench.store({ random: shortWaits(), connectTimeoutMs: 60_000, requestTimeoutMs: 60_000 });

function plusOne(now: VersionedItem) {
  return { size: Number(now['size']) + 1 };
}

test('64 updates at once lose none of each other', RACE, async () => {
  // Arrange
  const { key } = await made({ size: 0 });
  const { versioned } = racingStore();

  // Act
  const updates = racers().map(() => versioned.update(key, plusOne, { maxAttempts: 1_000 }));
  const outcomes = await Promise.all(updates);

  // Assert
  expect(await stored(key)).toMatchObject({ size: RACERS, version: RACERS + 1 });
  // Each got the item as its own write left it.
  const versions = outcomes.map((outcome) => (outcome.kind === 'updated' ? outcome.item.version : 0));
  expect(versions.toSorted((left, right) => left - right)).toEqual(racers().map((index) => index + 2));
});

test('of 64 saves of the same version one wins, and all others are shown its item', RACE, async () => {
  // Arrange
  const { key, item } = await made({});
  const { versioned } = racingStore();

  // Act
  const answers = await Promise.all(racers().map((by) => versioned.save(key, { set: { by } }, item)));

  // Assert
  const current = await stored(key);
  const [won, lost] = [answers.filter(({ kind }) => kind === 'saved'), answers.filter(({ kind }) => kind !== 'saved')];
  expect(won).toEqual([{ kind: 'saved', item: current }]);
  expect(lost).toEqual(Array.from({ length: RACERS - 1 }, () => ({ kind: 'conflict', current })));
});

test('of 64 that create one item one wins, and all others are shown its item', RACE, async () => {
  const key = freshKey();
  const { versioned } = racingStore();
  const answers = await Promise.all(racers().map((by) => versioned.create({ ...key, by })));
  const item = await stored(key);
  expect(answers.filter(({ kind }) => kind === 'created')).toEqual([{ kind: 'created', item }]);
  expect(answers.filter(({ kind }) => kind === 'exists').map((answer) => answer.item)).toEqual(
    Array.from({ length: RACERS - 1 }, () => item),
  );
});

test('of 64 that remove one version one wins, also when answers are lost', RACE, async () => {
  // Arrange
  const { key, item } = await made({});
  const { versioned } = racingStore();
  bench.transport.fault('TransactWriteItems', { kind: 'lose the answer' }, { times: 20 });
  bench.transport.fault('TransactWriteItems', { kind: 'lose the request' }, { times: 20 });

  // Act
  const answers = await Promise.all(racers().map(() => versioned.remove(key, item)));

  // Assert
  expect(answers.filter(({ kind }) => kind === 'removed')).toHaveLength(1);
  expect(await bench.truth.get(key)).toBeUndefined();
});

test('64 updates at once are each applied once or said to be ambiguous when answers are lost', RACE, async () => {
  // Arrange
  const { key } = await made({ size: 0 });
  const { versioned } = racingStore();
  bench.transport.fault('UpdateItem', { kind: 'lose the answer' }, { nth: 5, times: 40 });
  bench.transport.fault('UpdateItem', { kind: 'lose the request' }, { nth: 60, times: 40 });

  // Act
  const updates = racers().map(() => versioned.update(key, plusOne, { maxAttempts: 1_000 }));
  const settled = await Promise.allSettled(updates);

  // Assert
  const errors = settled.flatMap((each) => (each.status === 'rejected' ? [each.reason as unknown] : []));
  expect(errors.filter((error) => !(error instanceof BackendError && error.reason === 'ambiguous'))).toEqual([]);
  const confirmed = RACERS - errors.length;
  const { size, version } = await stored(key);
  expect(Number(size)).toBeGreaterThanOrEqual(confirmed);
  expect(Number(size)).toBeLessThanOrEqual(RACERS);
  expect(version).toBe(Number(size) + 1);
});
