import { describe, expect, test } from 'vitest';
import { ConfigurationError } from '../../src/errors.ts';
import { createOnlyonceEffect } from '../../src/store/effects/effect-call.ts';
import { checkRetention } from '../../src/store/effects/retention.ts';
import { useStoreBench } from '../support/store-bench.ts';
import { callScene } from '../support/store-effect-calls.ts';
import { failureOf } from '../support/store-effects.ts';

const bench = useStoreBench();

describe('An effect call refuses', () => {
  test('wrong options, all at once', () => {
    const store = bench.store({ recordRetentionDays: 7 });
    const options = {
      scope: 'a#b',
      lease: { leaseMs: 100 },
      callersRetryForDays: 8,
      largeResponse: 'cut' as 'digest',
      maxHoldMs: Number.NaN,
      holder: '',
    };

    const create = (): unknown => createOnlyonceEffect(store, options);

    const names = ['lease.leaseMs', 'lease.heartbeatMs', 'lease.safetyMarginMs'];
    const all = [...names, 'scope', 'callersRetryForDays', 'largeResponse', 'maxHoldMs', 'holder'];
    const error = caughtBy(create);
    expect(error).toBeInstanceOf(ConfigurationError);
    expect(error instanceof ConfigurationError && error.faults.map(({ name }) => name)).toEqual(all);
  });

  test.each(['', 'a'.repeat(81), 'ä', 'a b', 'a.fifo', 'scope:a', 'a\n'])('the scope %j', (scope) => {
    expect(() => createOnlyonceEffect(bench.store(), { scope })).toThrow(/scope: from 1 to 80 letters/);
  });

  test.each([0, -1, Number.NaN, Infinity, 35.01])('callers that come back for %d days', (callersRetryForDays) => {
    const create = (): unknown => createOnlyonceEffect(bench.store(), { scope: 's', callersRetryForDays });

    expect(create).toThrow(/callersRetryForDays: more than 0 and at most the store's recordRetentionDays \(35\)/);
  });

  test.each([
    { title: 'nothing', key: '' },
    { title: 'over 512 letters', key: 'a'.repeat(513) },
    { title: 'over 512 bytes', key: '€'.repeat(171) },
    { title: 'a null byte', key: 'a\u0000b' },
    { title: 'a line break', key: 'a\n' },
    { title: 'half a surrogate pair', key: '\ud83d' },
    { title: 'a number', key: 42 as unknown as string },
  ])('a key without a request: $title', async ({ key }) => {
    const { once } = callScene(bench).caller();
    let runs = 0;

    const error = await failureOf(once(key, () => (runs += 1)));

    expect(error).toMatchObject({ code: 'INVALID_MESSAGE' });
    expect([runs, bench.transport.seen.length]).toEqual([0, 0]);
  });

  test.each([undefined, null, 'text', 1, {}, Promise.resolve(1)])(
    'what is no function, without a request: %j',
    async (fn) => {
      const { once } = callScene(bench).caller();

      const error = await failureOf(once('k', fn as () => void));

      expect(error).toMatchObject({ code: 'CONFIGURATION', faults: [{ name: 'fn' }] });
      expect(bench.transport.seen).toEqual([]);
    },
  );

  test('half of a surrogate pair as its holder', () => {
    expect(() => createOnlyonceEffect(bench.store(), { scope: 's', holder: 'a\ud83d' })).toThrow(
      /holder: a well-formed/,
    );
  });

  test.each(['a list', 'nothing', 'a text'])(
    'to commit %s in the place of an action, and completes nothing',
    async (what) => {
      const scene = callScene(bench);
      const { once } = scene.caller();
      const wrong = { 'a list': [scene.addFive], nothing: undefined, 'a text': 'addFive' }[what];

      const error = await failureOf(
        once(scene.key, ({ commitWith }) => {
          commitWith(scene.addFive, wrong as unknown as typeof scene.addFive);
        }),
      );

      expect(error).toMatchObject({ code: 'CONFIGURATION', faults: [{ name: 'action 1' }] });
      expect(await scene.record()).not.toMatchObject({ status: 'COMPLETED' });
      expect(await scene.balance()).toBeUndefined();
    },
  );

  test('no key of 512 bytes, with spaces, # and characters beyond the basic plane', async () => {
    const { once } = callScene(bench).caller();
    const key = `a #b/${'😀'.repeat(126)}...`;

    const answers = [await once(key, () => 1), await once(key, () => 2), await once(`${key.slice(0, -1)}!`, () => 3)];

    expect(Buffer.byteLength(key)).toBe(512);
    expect(answers.map(({ kind }) => kind)).toEqual(['completed', 'replayed', 'completed']);
  });

  const deep = JSON.parse(`${'['.repeat(40)}${']'.repeat(40)}`) as unknown;
  test.each([
    { title: 'a bigint', payload: { amount: 1n } },
    { title: 'NaN, which JSON writes as null', payload: { amount: Number.NaN } },
    { title: 'a function', payload: () => 1 },
    { title: 'nesting beyond 32 levels', payload: deep },
    { title: 'half a surrogate pair', payload: ['\udc00'] },
  ])('a payload that cannot be compared, without a request: $title', async ({ payload }) => {
    const { once } = callScene(bench).caller();

    const error = await failureOf(once('k', () => 1, { payload }));

    expect(error).toMatchObject({ code: 'INVALID_MESSAGE' });
    expect(bench.transport.seen).toEqual([]);
  });

  test('a write that is added after its function has ended', async () => {
    const scene = callScene(bench);
    const { once } = scene.caller();
    let commitLater: () => void = () => undefined;

    await once(scene.key, ({ commitWith }) => {
      commitLater = () => {
        commitWith(scene.addFive);
      };
    });

    expect(commitLater).toThrow(/commitWith: called before fn has ended/);
    expect(await scene.balance()).toBeUndefined();
  });

  test('more writes than a transaction takes, and frees the key', async () => {
    const scene = callScene(bench);
    const { once } = scene.caller();
    const writes = Array.from({ length: 100 }, (_, index) => ({
      kind: 'put' as const,
      label: `item ${String(index)}`,
      item: { PK: `MANY#${scene.scope}`, SK: String(index) },
    }));

    const error = await failureOf(
      once(scene.key, ({ commitWith }) => {
        commitWith(...writes);
      }),
    );

    expect(error).toBeInstanceOf(ConfigurationError);
    expect(await scene.record()).toMatchObject({ status: 'FAILED' });
  });
});

describe('checkRetention', () => {
  const days = (count: number): number => count * 86_400;

  test('takes records that outlive the queue and its dead-letter queue', () => {
    const times = { queueRetentionSeconds: days(14), deadLetterRetentionSeconds: days(14), callersRetryForDays: 28 };

    expect(() => {
      checkRetention({ recordRetentionDays: 28 }, times);
    }).not.toThrow();
  });

  test('refuses records that are gone before a redriven message comes back, and wrong times', () => {
    const check = (times: object) => (): void => {
      checkRetention({ recordRetentionDays: 27 }, times);
    };

    expect(check({ queueRetentionSeconds: days(14), deadLetterRetentionSeconds: days(14) })).toThrow(
      /at least 28 days/,
    );
    expect(check({ queueRetentionSeconds: -1, deadLetterRetentionSeconds: Number.NaN })).toThrow(/2 wrong options/);
    expect(check({ callersRetryForDays: 28 })).toThrow(/callersRetryForDays/);
  });
});

function caughtBy(run: () => unknown): unknown {
  try {
    return run();
  } catch (error) {
    return error;
  }
}
