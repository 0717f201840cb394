import { describe, expect, test } from 'vitest';
import { ResponseTooLargeError } from '../../src/store/effects/effect-call.ts';
import { absent } from '../../src/store/conditions.ts';
import { TransactionCancelledError } from '../../src/store/transactions/transaction-writer.ts';
import { useStoreBench } from '../support/store-bench.ts';
import { callScene } from '../support/store-effect-calls.ts';
import { claimedOf, failureOf } from '../support/store-effects.ts';

const bench = useStoreBench();

describe('An effect call', () => {
  test('27: makes charges of 50 and 20 out of three calls, the second of which repeats the first', async () => {
    // Arrange
    const { once } = callScene(bench).caller();
    const charges: number[] = [];
    const pay = (key: string, amount: number): Promise<unknown> =>
      once(
        key,
        () => {
          charges.push(amount);
          return { chargeId: `ch_${String(charges.length)}`, amount };
        },
        { payload: { amount } },
      );

    // Act
    const answers = [await pay('req-123', 50), await pay('req-123', 50), await pay('req-456', 20)];

    // Assert
    expect(answers).toEqual([
      { kind: 'completed', response: { chargeId: 'ch_1', amount: 50 } },
      { kind: 'replayed', response: { chargeId: 'ch_1', amount: 50 } },
      { kind: 'completed', response: { chargeId: 'ch_2', amount: 20 } },
    ]);
    expect(charges).toEqual([50, 20]);
  });

  test('costs one request to claim, one to commit, and one to be answered again', async () => {
    // Arrange
    const scene = callScene(bench);
    const { once } = scene.caller();

    // Act
    await once(scene.key, () => 'done');
    await once(scene.key, () => 'again');

    // Assert
    expect(bench.transport.seen.map(({ operation }) => operation)).toEqual([
      'UpdateItem',
      'TransactWriteItems',
      'UpdateItem',
    ]);
  });

  test('commits what was added to it together with the record, once', async () => {
    // Arrange
    const scene = callScene(bench);
    const { once } = scene.caller();
    const work = (): Promise<unknown> =>
      once(scene.key, ({ commitWith }) => {
        commitWith(scene.addFive);
        commitWith({ kind: 'put', label: 'note', item: { PK: `NOTE#${scene.scope}`, SK: 'n', text: 'hi' } });
      });

    // Act
    const answers = [await work(), await work()];

    // Assert
    expect(answers).toEqual([
      { kind: 'completed', response: null },
      { kind: 'replayed', response: null },
    ]);
    expect(await scene.balance()).toBe(5);
    expect(await bench.truth.get({ PK: `NOTE#${scene.scope}`, SK: 'n' })).toMatchObject({ text: 'hi' });
    expect(await scene.record()).toMatchObject({ status: 'COMPLETED', response: { json: 'null' } });
  });

  test('writes nothing when the condition of an added write fails, and the key can be tried again', async () => {
    // Arrange
    const scene = callScene(bench);
    const { once } = scene.caller();
    const taken = { PK: `TAKEN#${scene.scope}`, SK: 't' };
    await bench.truth.transactions.write([{ kind: 'put', label: 'taken', item: taken }]);

    // Act
    const error = await failureOf(
      once(scene.key, ({ commitWith }) => {
        commitWith(scene.addFive, { kind: 'put', label: 'name', item: taken, condition: absent() });
      }),
    );
    const second = await once(scene.key, ({ attempt, commitWith }) => {
      commitWith(scene.addFive);
      return attempt;
    });

    // Assert
    expect(error).toBeInstanceOf(TransactionCancelledError);
    expect(second).toEqual({ kind: 'completed', response: 2 });
    expect(await scene.balance()).toBe(5);
  });

  test('throws what its function throws, unchanged, and leaves the key to the next call', async () => {
    // Arrange
    const scene = callScene(bench);
    const { once } = scene.caller();
    const thrown = [new Error('declined 😀'.padEnd(600, '😀')), 'a text', Object.create(null) as object, undefined];

    // Act
    const caught: unknown[] = [];
    for (const reason of thrown) {
      await once(scene.key, ({ commitWith }) => {
        commitWith(scene.addFive);
        // eslint-disable-next-line typescript/only-throw-error -- whatever people throw
        throw reason;
      }).catch((error: unknown) => caught.push(error));
    }
    const record = await scene.record();
    const last = await once(scene.key, ({ attempt }) => attempt);

    // Assert
    expect(caught.map((error, index) => error === thrown[index])).toEqual(thrown.map(() => true));
    expect(record).toMatchObject({ status: 'FAILED', attempts: 4 });
    expect(record).not.toHaveProperty('owner');
    expect(last).toEqual({ kind: 'completed', response: 5 });
    expect(await scene.balance()).toBeUndefined();
  });

  test('answers a conflict to another payload and compares fields in any order', async () => {
    // Arrange
    const scene = callScene(bench);
    const { once } = scene.caller();
    const pay = (payload: unknown): Promise<unknown> => once(scene.key, () => 'paid', { payload });

    // Act
    const first = await pay({ amount: 50, to: { name: 'ann', zip: '1' } });
    const reordered = await pay({ to: { zip: '1', name: 'ann' }, amount: 50 });
    const others = [await pay({ amount: 51, to: { name: 'ann', zip: '1' } }), await pay(null), await pay('')];

    // Assert
    const hash = expect.stringMatching(/^[0-9a-f]{64}$/) as string;
    expect(first).toEqual({ kind: 'completed', response: 'paid' });
    expect(reordered).toEqual({ kind: 'replayed', response: 'paid' });
    expect(others).toEqual(others.map(() => ({ kind: 'conflict', recordedHash: hash, payloadHash: hash })));
    expect(new Set(others.map((answer) => JSON.stringify(answer))).size).toBe(3);
  });

  test('answers a conflict also while the first payload is at work or has failed', async () => {
    // Arrange
    const scene = callScene(bench);
    const { once } = scene.caller();
    const other = (): Promise<unknown> => once(scene.key, () => 'other', { payload: { amount: 2 } });
    let during: unknown;

    // Act
    const error = await failureOf(
      once(
        scene.key,
        async () => {
          during = await other();
          throw new Error('failed');
        },
        { payload: { amount: 1 } },
      ),
    );
    const after = await other();

    // Assert
    expect([error, during, after]).toMatchObject([{ message: 'failed' }, { kind: 'conflict' }, { kind: 'conflict' }]);
  });

  test('compares nothing when a payload is missing now or was missing then', async () => {
    // Arrange
    const [scene, other] = [callScene(bench), callScene(bench)];
    const { once } = scene.caller();
    const { once: onceMore } = other.caller();

    // Act
    await once(scene.key, () => 'first', { payload: { amount: 50 } });
    await onceMore(other.key, () => 'first');
    const answers = [
      await once(scene.key, () => 'second'),
      await onceMore(other.key, () => 'second', { payload: { amount: 50 } }),
      await once(scene.key, () => 'third', { payload: { amount: 51 } }),
    ];

    // Assert
    expect(answers.map(({ kind }) => kind)).toEqual(['replayed', 'replayed', 'conflict']);
  });

  test('lets a call with another payload take up a key that failed, when one of the two brings none', async () => {
    // Arrange
    const [scene, other] = [callScene(bench), callScene(bench)];
    const { once } = scene.caller();
    const fail = (key: string, payload?: unknown): Promise<unknown> =>
      failureOf(
        once(
          key,
          () => {
            throw new Error('failed');
          },
          { payload },
        ),
      );

    // Act
    await fail(scene.key);
    await fail(other.scope, { amount: 50 });
    const answers = [
      await once(scene.key, () => 'paid', { payload: { amount: 50 } }),
      await once(other.scope, () => 'paid'),
      await once(scene.key, () => 'paid', { payload: { amount: 51 } }),
      await once(other.scope, () => 'paid', { payload: { amount: 51 } }),
    ];

    // Assert
    expect(answers.map(({ kind }) => kind)).toEqual(['completed', 'completed', 'conflict', 'conflict']);
  });

  test('tells others that it is at work, by whom, and when to come back', async () => {
    // Arrange
    const scene = callScene(bench);
    const { once } = scene.caller(0, { holder: 'host-1:42' });
    const another = scene.caller(1_000);
    const late = scene.caller(1_000, { store: { random: () => 0.5 } });
    const atTheEnd = scene.caller(10_500);
    const answers: unknown[] = [];

    // Act
    await once(scene.key, async () => {
      for (const { once: call } of [another, late, atTheEnd]) answers.push(await call(scene.key, () => 'never'));
    });

    // Assert
    // The lease of 10 s and 500 ms for clocks that differ, of which one second is over; then half the spread of 950 ms.
    expect(answers).toEqual([
      { kind: 'inProgress', holder: 'host-1:42', retryAfterMs: 9_500 },
      { kind: 'inProgress', holder: 'host-1:42', retryAfterMs: 9_975 },
      { kind: 'inProgress', holder: 'host-1:42', retryAfterMs: 1 },
    ]);
  });

  test('runs one of twenty calls at once, and answers all of them from it', async () => {
    // Arrange
    const scene = callScene(bench);
    const callers = Array.from({ length: 20 }, () => scene.caller().once);
    let runs = 0;
    const work = async (): Promise<string> => {
      runs += 1;
      await Promise.resolve();
      return 'once';
    };

    // Act
    const first = await Promise.all(callers.map((once) => once(scene.key, work)));
    const second = await Promise.all(callers.map((once) => once(scene.key, work)));

    // Assert
    expect(runs).toBe(1);
    expect(first.filter(({ kind }) => kind === 'completed')).toEqual([{ kind: 'completed', response: 'once' }]);
    expect(second).toEqual(callers.map(() => ({ kind: 'replayed', response: 'once' })));
  });

  test('gives its function one idempotency key per scope and key, and a token that grows', async () => {
    // Arrange
    const [scene, other] = [callScene(bench), callScene(bench)];
    const { once } = scene.caller();
    const seen: { idempotencyKey: string; fencingToken: number; attempt: number }[] = [];
    const fail = (key: string, call = once): Promise<unknown> =>
      failureOf(
        call(key, ({ idempotencyKey, fencingToken, attempt }) => {
          seen.push({ idempotencyKey, fencingToken, attempt });
          throw new Error('again');
        }),
      );

    // Act
    await fail('a#b');
    await fail('a#b');
    await fail('a');
    await fail('a#b', other.caller().once);

    // Assert
    const keys = seen.map(({ idempotencyKey }) => idempotencyKey);
    expect(keys[0]).toMatch(/^onlyonce-[0-9a-f]{64}$/);
    expect(keys[1]).toBe(keys[0]);
    expect(new Set(keys).size).toBe(3);
    expect(seen[1]?.fencingToken).toBeGreaterThan(seen[0]?.fencingToken ?? Number.NaN);
    expect(seen.map(({ attempt }) => attempt)).toEqual([1, 2, 1, 1]);
  });

  test('keeps its keys apart from those of a queue with the name of its scope', async () => {
    // Arrange
    const scene = callScene(bench);
    const effects = bench.store().effectRecords();
    const ofQueue = { queue: scene.scope, key: scene.key, payloadHash: 'hash', holder: 'worker' };
    await effects.commit(claimedOf(await effects.claim(ofQueue)), {
      status: 'COMPLETED',
      response: 'of the queue',
      effects: [],
    });

    // Act
    const answer = await scene.caller().once(scene.key, () => 'of the scope');

    // Assert
    expect(answer).toEqual({ kind: 'completed', response: 'of the scope' });
  });
});

describe('The response of an effect call', () => {
  test.each([
    { title: 'nothing', response: undefined },
    { title: 'a date and what has no JSON', response: { at: new Date(0), gone: undefined, list: [undefined, -0] } },
    { title: 'no number', response: { amount: Number.NaN, most: Infinity } },
    { title: 'odd names and texts', response: { __proto: 1, '': '', 'a.b#c': '\u0000😀', half: '\ud83d' } },
    { title: 'what looks like a digest', response: { digest: 'sha256', sha256: 'x', bytes: 1 } },
    { title: 'what looks like a stored digest', response: { sha256: 'x', bytes: 1 } },
  ])('is the same for the first caller and all later ones: $title', async ({ response }) => {
    // Arrange
    const scene = callScene(bench);
    const { once } = scene.caller();

    // Act
    const first = await once(scene.key, () => response);
    const later = await once(scene.key, () => 'never');

    // Assert
    const plain = JSON.parse(JSON.stringify(response ?? null)) as unknown;
    expect([first, later]).toEqual([
      { kind: 'completed', response: plain },
      { kind: 'replayed', response: plain },
    ]);
  });

  test('is answered by its digest later when it is too large to keep', async () => {
    // Arrange
    const scene = callScene(bench);
    const { once } = scene.caller();
    const response = '€'.repeat(100_000);

    // Act
    const first = await once(scene.key, ({ commitWith }) => {
      commitWith(scene.addFive);
      return response;
    });
    const later = await once(scene.key, () => response);

    // Assert
    expect(first).toEqual({ kind: 'completed', response });
    const sha256 = expect.stringMatching(/^[0-9a-f]{64}$/) as string;
    expect(later).toEqual({ kind: 'replayedDigest', sha256, bytes: 300_002 });
    expect(await scene.balance()).toBe(5);
  });

  test('that is too large is refused before anything is written, where that is asked for', async () => {
    // Arrange
    const scene = callScene(bench);
    const { once } = scene.caller(0, { largeResponse: 'refuse' });
    const respond = (response: string): Promise<unknown> =>
      once(scene.key, ({ commitWith }) => {
        commitWith(scene.addFive);
        return response;
      });

    // Act
    const error = await failureOf(respond('x'.repeat(65_535)));
    const commits = bench.transport.count('TransactWriteItems');
    const record = await scene.record();
    const answer = await respond('x'.repeat(65_534));

    // Assert
    expect(error).toBeInstanceOf(ResponseTooLargeError);
    expect(error).toMatchObject({ code: 'RESPONSE_TOO_LARGE', retryable: false, bytes: 65_537, maxBytes: 65_536 });
    expect(commits).toBe(0);
    expect(record).toMatchObject({ status: 'FAILED' });
    expect(record).not.toHaveProperty('owner');
    expect(answer).toMatchObject({ kind: 'completed' });
    expect(await scene.balance()).toBe(5);
  });

  const cycle: { self?: unknown } = {};
  cycle.self = cycle;
  test.each([
    { title: 'a bigint', response: { amount: 1n } },
    { title: 'a cycle', response: cycle },
    { title: 'a function', response: () => 1 },
    { title: 'a symbol', response: Symbol('s') },
  ])('that has no JSON is refused before anything is written: $title', async ({ response }) => {
    // Arrange
    const scene = callScene(bench);
    const { once } = scene.caller();

    // Act
    const error = await failureOf(
      once(scene.key, ({ commitWith }) => {
        commitWith(scene.addFive);
        return response;
      }),
    );

    // Assert
    expect(error).toMatchObject({ code: 'NOT_STORABLE', retryable: false });
    expect(await scene.record()).toMatchObject({ status: 'FAILED' });
    expect([await scene.balance(), bench.transport.count('TransactWriteItems')]).toEqual([undefined, 0]);
  });
});
