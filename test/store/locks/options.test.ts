import { describe, expect, test } from 'vitest';
import { ConfigurationError } from '../../../src/errors.ts';
import { checkName, inLockOrder } from '../../../src/store/locks/lock-names.ts';
import { checkedLockOptions, type LockOptions } from '../../../src/store/locks/lock-options.ts';

function faultNames(fn: () => unknown): string[] {
  try {
    fn();
    return [];
  } catch (error) {
    if (error instanceof ConfigurationError) return error.faults.map(({ name }) => name);
    throw error;
  }
}

describe('lock options', () => {
  test('have defaults that fit together for any allowed lease', () => {
    for (const leaseMs of [500, 1_000, 20_000, 3_600_000]) {
      expect(faultNames(() => checkedLockOptions({ leaseMs, retentionDays: 5 }))).toEqual([]);
    }
    expect(checkedLockOptions()).toMatchObject({
      takeover: 'expiry-or-observed',
      onStall: 'revalidate',
      beats: 'automatic',
      dangerAfterMs: 10_000,
      maxHoldMs: 43_200_000,
      pollMinMs: 100,
      pollMaxMs: 1_000,
      retentionDays: 30,
    });
    expect(checkedLockOptions().holder).toMatch(/^.+:\d+$/);
  });

  test.each<[string, LockOptions, string[]]>([
    ['NaN', { maxHoldMs: Number.NaN, pollMinMs: Number.NaN }, ['maxHoldMs', 'pollMinMs', 'pollMaxMs']],
    ['negative numbers', { dangerAfterMs: -1, retentionDays: -1 }, ['dangerAfterMs', 'retentionDays']],
    ['zero', { pollMinMs: 0, retentionDays: 0, maxHoldMs: 0 }, ['maxHoldMs', 'pollMinMs', 'retentionDays']],
    ['infinity', { maxHoldMs: Infinity, requireProgressMs: Infinity }, ['maxHoldMs', 'requireProgressMs']],
    ['a mark of danger after the end of the lease', { dangerAfterMs: 19_000 }, ['dangerAfterMs']],
    ['a longest poll that is shorter than the shortest', { pollMinMs: 500, pollMaxMs: 400 }, ['pollMaxMs']],
    ['a retention of less than 100 leases', { leaseMs: 3_600_000, retentionDays: 4 }, ['retentionDays']],
    ['no holder', { holder: '' }, ['holder']],
    ['a holder with half of a surrogate pair', { holder: 'h\ud83d' }, ['holder']],
    ['a holder that is too long', { holder: 'h'.repeat(257) }, ['holder']],
    ['a lease that is too short for its beats', { leaseMs: 1_000, heartbeatMs: 400 }, ['leaseMs']],
    [
      'words that are none of the choices',
      { takeover: 'soon', onStall: 'ignore', beats: 'never' } as unknown as LockOptions,
      ['takeover', 'onStall', 'beats'],
    ],
  ])('with %s are refused, each wrong one by name', (_title, options, names) => {
    expect(faultNames(() => checkedLockOptions(options))).toEqual(names);
  });

  test('are all reported at once, those of the lease as well', () => {
    expect(faultNames(() => checkedLockOptions({ leaseMs: 1, maxHoldMs: 0, holder: '' }))).toEqual(
      expect.arrayContaining(['leaseMs', 'maxHoldMs', 'holder']),
    );
  });
});

describe('names of locks', () => {
  test('that are no well-formed Unicode are refused: two of them would be one key', () => {
    expect(['\ud800', 'a\udfff'].map((name) => faultNames(() => checkName(name)))).toEqual([['name'], ['name']]);
  });

  test.each(['', 'x'.repeat(2_100), '\u00e9'.repeat(1_030), 7 as unknown as string])(
    'that cannot be a key are refused: %j',
    (name) => {
      expect(faultNames(() => checkName(name))).toEqual(['name']);
    },
  );

  test.each(['a', 'a#b', ' ', 'size', '\u{1f512}', 'a.b', 'x'.repeat(2_043)])('may be any other text: %j', (name) => {
    expect(faultNames(() => checkName(name))).toEqual([]);
  });

  test('have one order everywhere: that of their bytes in UTF-8, each once', () => {
    // UTF-16 would put the pair of surrogates before U+FF5E, and a language would put é beside e.
    expect(inLockOrder(['\u{1f512}', '\uff5e', 'é', 'z', 'Z', 'e', 'a#', 'a', 'z'])).toEqual([
      'Z',
      'a',
      'a#',
      'e',
      'z',
      'é',
      '\uff5e',
      '\u{1f512}',
    ]);
  });

  test('are between 1 and 99 at once', () => {
    const names = (count: number): string[] => Array.from({ length: count }, (_, index) => `n${String(index)}`);
    expect([0, 1, 99, 100].map((count) => faultNames(() => inLockOrder(names(count))))).toEqual([
      ['names'],
      [],
      [],
      ['names'],
    ]);
  });
});
