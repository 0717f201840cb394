import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { BackendError } from '../../src/errors.ts';
import { equals } from '../../src/store/conditions.ts';
import { normaliseText } from '../../src/store/unique/normalise.ts';
import type { UniqueAnswer, UniqueValues } from '../../src/store/unique/unique-constraint.ts';
import { useStoreBench } from '../support/store-bench.ts';
import { StoreClock } from '../support/store-clock.ts';
import type { Fault } from '../support/store-transport.ts';
import { uniqueScene, type UniqueScene } from '../support/store-unique.ts';
import { until } from '../support/until.ts';

const bench = useStoreBench();
const WRITE = 'TransactWriteItems';
const WRITTEN = { kind: 'written' };

function kinds(answers: readonly UniqueAnswer[]): string[] {
  return answers.map(({ kind }) => kind).toSorted();
}

/** The sentinels that there must be, by what the items say. */
async function sentinelsByItems(scene: UniqueScene): Promise<Record<string, string>> {
  const emails = Object.entries(await scene.emails());
  return Object.fromEntries(
    emails.flatMap(([id, email]) => (typeof email === 'string' ? [[normaliseText(email), id]] : [])),
  );
}

describe('changes at once', () => {
  test('L27: of two changes of one item, one is written and the other a conflict, and no value is lost', async () => {
    // Arrange: the first one has read the item, and is overtaken.
    const scene = uniqueScene(bench);
    await scene.truth.create(scene.user('ada', 'a'));
    const held = bench.transport.fault(WRITE, { kind: 'hold' });

    // Act
    const overtaken = scene.unique().change(scene.key('ada'), 'b');
    await held.hit;
    const faster = await scene.truth.change(scene.key('ada'), 'c');
    await held.release();

    // Assert
    expect(faster).toEqual(WRITTEN);
    expect(await overtaken).toEqual({ kind: 'conflict', current: scene.user('ada', 'c') });
    expect(await scene.sentinels()).toEqual({ c: 'ada' });
    expect(await scene.truth.create(scene.user('bob', 'a'))).toEqual(WRITTEN);
    expect(await scene.truth.create(scene.user('cy', 'b'))).toEqual(WRITTEN);
  });

  test('that meet in the midst leave one sentinel, the one of the value that stayed', async () => {
    for (let round = 0; round < 20; round += 1) {
      const scene = uniqueScene(bench);
      await scene.truth.create(scene.user('ada', 'a'));

      const values = ['b', 'c', 'd', 'e'];
      const answers = await Promise.all(values.map((value) => scene.unique().change(scene.key('ada'), value)));

      const winners = values.filter((_value, index) => answers[index]?.kind === 'written');
      expect(winners.length).toBeGreaterThanOrEqual(1);
      expect(kinds(answers).filter((kind) => kind === 'taken')).toEqual([]);
      expect(winners).toContain((await scene.emails())['ada']);
      expect(await scene.sentinels()).toEqual(await sentinelsByItems(scene));
    }
  });

  test('a change that is overtaken by a removal makes no item', async () => {
    const scene = uniqueScene(bench);
    await scene.truth.create(scene.user('ada', 'a'));
    const held = bench.transport.fault(WRITE, { kind: 'hold' });

    const overtaken = scene.unique().change(scene.key('ada'), 'b');
    await held.hit;
    await scene.truth.remove(scene.key('ada'));
    await held.release();

    expect(await overtaken).toEqual({ kind: 'conflict', current: undefined });
    expect([await scene.emails(), await scene.sentinels()]).toEqual([{}, {}]);
  });

  test('a value that changes hands between two items is never with both', async () => {
    const scene = uniqueScene(bench);
    await scene.truth.create(scene.user('ada', 'a'));
    await scene.truth.create(scene.user('bob', 'b'));

    const answers = await Promise.all([
      scene.unique().change(scene.key('ada'), 'b'),
      scene.unique().change(scene.key('bob'), 'a'),
    ]);

    expect(kinds(answers)).toEqual(['taken', 'taken']);
    expect(await scene.sentinels()).toEqual({ a: 'ada', b: 'bob' });
  });

  test('an item without a sentinel that gets one meanwhile leaves none behind when it is changed', async () => {
    // Arrange: from before the constraint, so there is nothing to free.
    const scene = uniqueScene(bench);
    await scene.put(scene.user('ada', 'a'));
    const second = bench.transport.fault(WRITE, { kind: 'hold' }, { nth: 2 });

    // Act
    const answer = scene.unique().change(scene.key('ada'), 'b');
    await second.hit;
    await bench.truth.transactions.write([
      { kind: 'check', label: 'user', key: scene.key('ada'), condition: equals('email', 'a') },
      scene.truth.claimAction('a', scene.key('ada')),
    ]);
    await second.release();

    // Assert
    expect(await answer).toEqual(WRITTEN);
    expect(await scene.sentinels()).toEqual({ b: 'ada' });
  });

  test('a sentinel that moves at every try ends in a conflict', async () => {
    const scene = uniqueScene(bench);
    await scene.truth.create(scene.user('ada', 'a'));
    const reasons = ['None', 'None', 'ConditionalCheckFailed'];
    const moving = bench.transport.fault(
      WRITE,
      { kind: 'refuse', name: 'TransactionCanceledException', reasons },
      { times: 100 },
    );

    const answer = await scene.unique().change(scene.key('ada'), 'b');

    expect(answer).toEqual({ kind: 'conflict', current: scene.user('ada', 'a') });
    expect(moving.hits).toBeLessThan(10);
  });
});

describe('64 at once', () => {
  const RACERS = Array.from({ length: 64 }, (_, index) => String(index));

  test('create with one value: one has it, and the others are told who', async () => {
    const scene = uniqueScene(bench);
    const unique = scene.unique();

    const answers = await Promise.all(RACERS.map((id) => unique.create(scene.user(id, id.length > 1 ? 'Ada' : 'aDA'))));

    const winner = RACERS.find((_id, index) => answers[index]?.kind === 'written') ?? '';
    const losers = answers.filter(({ kind }) => kind !== 'written');
    expect(losers).toEqual(Array.from({ length: 63 }, () => ({ kind: 'taken', owner: scene.key(winner) })));
    expect(await scene.sentinels()).toEqual({ ada: winner });
    expect(Object.keys(await scene.emails())).toEqual([winner]);
  });

  test('create one item with values of their own: one is there, with its value alone', async () => {
    const scene = uniqueScene(bench);
    const unique = scene.unique();

    const answers = await Promise.all(RACERS.map((value) => unique.create(scene.user('ada', `v${value}`))));

    const winner = RACERS.find((_value, index) => answers[index]?.kind === 'written') ?? '';
    expect(kinds(answers).filter((kind) => kind === 'conflict')).toHaveLength(63);
    expect(await scene.sentinels()).toEqual({ [`v${winner}`]: 'ada' });
  });

  test('change to one value: one has it, and the others keep theirs', async () => {
    const scene = uniqueScene(bench);
    const unique = scene.unique();
    await Promise.all(RACERS.map((id) => unique.create(scene.user(id, `v${id}`))));

    const answers = await Promise.all(RACERS.map((id) => unique.change(scene.key(id), 'wanted')));

    expect(kinds(answers).filter((kind) => kind === 'taken')).toHaveLength(63);
    const sentinels = await scene.sentinels();
    expect(Object.keys(sentinels)).toHaveLength(64);
    expect(sentinels).toEqual(await sentinelsByItems(scene));
  });

  test('remove one item: one has removed it', async () => {
    const scene = uniqueScene(bench);
    const unique = scene.unique();
    await unique.create(scene.user('ada', 'a'));

    const answers = await Promise.all(RACERS.map(() => unique.remove(scene.key('ada'))));

    expect(kinds(answers).filter((kind) => kind === 'written')).toHaveLength(1);
    expect(await scene.sentinels()).toEqual({});
  });
});

describe('a try without an answer', () => {
  const LOST: Fault = { kind: 'lose the answer' };
  const FORGOTTEN: Fault = { kind: 'under another token' };

  /** Applied, unanswered, and then repeated where nobody remembers the token: our own write refuses us. */
  function loseAnswerAndToken(): void {
    bench.transport.fault(WRITE, LOST);
    bench.transport.fault(WRITE, FORGOTTEN);
  }

  const WRITES: readonly [string, (unique: UniqueValues, scene: UniqueScene) => Promise<UniqueAnswer>, object][] = [
    ['creation', (unique, scene) => unique.create(scene.user('bob', 'B')), { a: 'ada', b: 'bob' }],
    ['change', (unique, scene) => unique.change(scene.key('ada'), 'B'), { b: 'ada' }],
    ['change of the spelling', (unique, scene) => unique.change(scene.key('ada'), ' A'), { a: 'ada' }],
    ['removal', (unique, scene) => unique.remove(scene.key('ada')), {}],
  ];

  test.each(WRITES)('of a %s knows its own write again', async (_what, write, sentinels) => {
    const scene = uniqueScene(bench);
    await scene.truth.create(scene.user('ada', 'a'));
    loseAnswerAndToken();

    expect(await write(scene.unique(), scene)).toEqual(WRITTEN);
    expect(await scene.sentinels()).toEqual(sentinels);
    expect(bench.transport.count(WRITE)).toBe(2);
  });

  test.each(WRITES)('of a %s is applied once where the token is remembered', async (_what, write, sentinels) => {
    const scene = uniqueScene(bench);
    await scene.truth.create(scene.user('ada', 'a'));
    bench.transport.fault(WRITE, LOST);

    expect(await write(scene.unique(), scene)).toEqual(WRITTEN);
    expect(await scene.sentinels()).toEqual(sentinels);
  });

  test('that never arrived does not hide that the value is taken', async () => {
    const scene = uniqueScene(bench);
    await scene.truth.create(scene.user('ada', 'a'));
    bench.transport.fault(WRITE, { kind: 'lose the request' });

    const answer = await scene.unique().create(scene.user('bob', 'a'));

    expect(answer).toEqual({ kind: 'taken', owner: scene.key('ada') });
  });

  const OVERTAKEN: readonly [string, UniqueWrite, UniqueWrite][] = [
    [
      'creation',
      (unique, { user }) => unique.create(user('bob', 'b')),
      (unique, { key }) => unique.change(key('bob'), 'c'),
    ],
    [
      'change',
      (unique, { key }) => unique.change(key('ada'), 'b'),
      (unique, { key }) => unique.change(key('ada'), 'c'),
    ],
    ['removal', (unique, { key }) => unique.remove(key('ada')), (unique, { user }) => unique.create(user('ada', 'c'))],
  ];

  test.each(OVERTAKEN)(
    'of a %s that another has changed since is ambiguous, and loses no value',
    async (_what, write, next) => {
      // Arrange: applied, and the repeat waits.
      const scene = uniqueScene(bench);
      await scene.truth.create(scene.user('ada', 'a'));
      const clock = new StoreClock();
      loseAnswerAndToken();

      // Act
      const answer = write(scene.unique({ clock, random: () => 0.999 }), scene).catch((error: unknown) => error);
      await until(() => clock.pendingTimers > 0);
      expect(await next(scene.truth, scene)).toEqual(WRITTEN);
      clock.advance(1_000);

      // Assert
      const error = await answer;
      expect(error).toBeInstanceOf(BackendError);
      expect(error).toMatchObject({ reason: 'ambiguous' });
      expect(await scene.sentinels()).toEqual(await sentinelsByItems(scene));
    },
  );

  test('of a creation is not taken for the creation of another', async () => {
    const scene = uniqueScene(bench);
    const clock = new StoreClock();
    bench.transport.fault(WRITE, { kind: 'lose the request' });

    const answer = scene
      .unique({ clock, random: () => 0.999 })
      .create(scene.user('ada', 'a'))
      .catch((error: unknown) => error);
    await until(() => clock.pendingTimers > 0);
    expect(await scene.truth.create(scene.user('ada', 'a'))).toEqual(WRITTEN);
    clock.advance(1_000);

    expect(await answer).toMatchObject({ reason: 'ambiguous' });
    expect(await scene.sentinels()).toEqual({ a: 'ada' });
  });
});

type UniqueWrite = (unique: UniqueValues, scene: UniqueScene) => Promise<UniqueAnswer>;

describe('whatever happens at once', () => {
  const id = fc.constantFrom('ada', 'bob', 'cy');
  const value = fc.constantFrom('a', 'A', 'b', ' B', 'c', 'ß', 'SS');
  const step = fc.record({ does: fc.constantFrom('create', 'change', 'remove'), who: id, to: value });
  const fault = fc.constantFrom<Fault>(
    { kind: 'lose the answer' },
    { kind: 'lose the request' },
    { kind: 'under another token' },
    { kind: 'refuse', name: 'TransactionCanceledException', reasons: ['TransactionConflict'] },
  );
  const faults = fc.array(fc.record({ fault, nth: fc.integer({ min: 1, max: 12 }) }), { maxLength: 4 });

  function run(scene: UniqueScene, unique: UniqueValues, { does, who, to }: { does: string; who: string; to: string }) {
    if (does === 'create') return unique.create(scene.user(who, to));
    return does === 'change' ? unique.change(scene.key(who), to) : unique.remove(scene.key(who));
  }

  test(
    'sentinels are the normalised values of the items that there are, each with its owner',
    { timeout: 60_000 },
    async () => {
      await fc.assert(
        fc.asyncProperty(fc.array(step, { minLength: 2, maxLength: 16 }), faults, async (steps, planned) => {
          const scene = uniqueScene(bench);
          await scene.truth.create(scene.user('ada', 'a'));
          const unique = scene.unique();
          for (const each of planned) bench.transport.fault(WRITE, each.fault, { nth: each.nth });

          const answers = await Promise.allSettled(steps.map((each) => run(scene, unique, each)));
          bench.transport.heal();

          const failures = answers.flatMap((answer) =>
            answer.status === 'rejected' ? [answer.reason as unknown] : [],
          );
          for (const failure of failures) expect(failure).toMatchObject({ reason: 'ambiguous' });
          expect(await scene.sentinels()).toEqual(await sentinelsByItems(scene));
        }),
        { numRuns: 60 },
      );
    },
  );
});
