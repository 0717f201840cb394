import fc from 'fast-check';
import { expect, test } from 'vitest';
import type { Log } from '../../src/telemetry/log.ts';
import { retryAfterOf } from '../../src/workers/retry-policy.ts';
import { RetryLater } from '../../src/workers/retry.ts';

type Decide = (error: unknown, attempt: number) => number | undefined;

function decide(error: unknown, retryDelayMs: Decide = () => undefined) {
  const warnings: Record<string, unknown>[] = [];
  const ignore = (): void => undefined;
  const log: Log = { debug: ignore, info: ignore, error: ignore, warn: (fields) => warnings.push(fields) };
  return { delayMs: retryAfterOf(error, 3, { retryDelayMs, log }), warnings };
}

test('waits as long as the error asks for, whatever the policy says', () => {
  const error = new RetryLater('the bank is closed', { retryAfterMs: 5_000 });

  expect(decide(error, () => 1)).toEqual({ delayMs: 5_000, warnings: [] });
});

test('knows an error of somebody else by what it carries', () => {
  expect(decide(Object.assign(new Error('429'), { retryAfterMs: 0 })).delayMs).toBe(0);
});

test('asks the policy about an error that says nothing, with the number of the attempt', () => {
  const asked: unknown[] = [];
  const error = new Error('down');

  const { delayMs } = decide(error, (...args) => {
    asked.push(args);
    return 7_000;
  });

  expect([delayMs, asked]).toEqual([7_000, [[error, 3]]]);
});

test.each([undefined, null, 'text', 5, new Error('down'), new RetryLater('later')])(
  'leaves it to the back-off when neither %j nor the policy says anything',
  (error) => {
    expect(decide(error)).toEqual({ delayMs: undefined, warnings: [] });
  },
);

const unusable = fc.oneof(
  fc.double().filter((value) => !(value >= 0 && value <= 43_200_000)),
  fc.constantFrom('5', null, {}, [], true, 10n),
);

test('warns about a delay that no queue can keep, and leaves it to the back-off', () => {
  fc.assert(
    fc.property(unusable, fc.boolean(), (value, isOfError) => {
      const error = isOfError ? { retryAfterMs: value } : new Error('down');

      const { delayMs, warnings } = decide(error, () => (isOfError ? undefined : (value as number)));

      expect(delayMs).toBeUndefined();
      expect(warnings).toMatchObject([{ name: isOfError ? 'retryAfterMs' : 'retryDelayMs' }]);
    }),
  );
});

test('warns about a policy that throws, and leaves it to the back-off', () => {
  const fault = new TypeError('a fault of the policy');

  const decided = decide(new Error('down'), () => {
    throw fault;
  });

  expect(decided).toEqual({ delayMs: undefined, warnings: [{ err: fault }] });
});
