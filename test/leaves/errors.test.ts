import { describe, expect, test } from 'vitest';
import {
  BackendError,
  ConfigurationError,
  EnvironmentError,
  InvalidMessageError,
  isOnlyonceError,
  messageOf,
} from '../../src/errors.ts';

describe('ConfigurationError', () => {
  test('lists every fault with its name, rule and value', () => {
    // Act
    const error = new ConfigurationError('worker', [
      { name: 'leaseMs', rule: 'at least 500', value: 3 },
      { name: 'queue', rule: 'a name', value: undefined },
    ]);

    // Assert
    expect(error.message).toBe(
      'worker: 2 wrong options\n  leaseMs: at least 500 (got 3)\n  queue: a name (got nothing)',
    );
    expect(error.faults).toHaveLength(2);
  });

  test('speaks of one option in the singular', () => {
    expect(new ConfigurationError('store', [{ name: 'a', rule: 'b', value: 'c' }]).message).toBe(
      'store: 1 wrong option\n  a: b (got "c")',
    );
  });

  test('can be made of any value', () => {
    // Arrange
    const cycle: unknown[] = [];
    cycle.push(cycle);
    const noJson = {
      toJSON: () => {
        throw new Error('no');
      },
    };

    // Act
    const values: unknown[] = [1n, { a: [1n] }, Number.NaN, -Infinity, cycle, noJson, () => 1, Object.create(null)];
    const { message } = new ConfigurationError(
      's',
      values.map((value) => ({ name: 'a', rule: 'b', value })),
    );

    // Assert
    expect([...message.matchAll(/got (.*)\)/g)].map(([, text]) => text)).toEqual([
      '"1n"',
      '{"a":["1n"]}',
      'NaN',
      '-Infinity',
      'object',
      'object',
      'function',
      '{}',
    ]);
  });

  test('cuts a long value and can show one that JSON cannot', () => {
    // Act
    const { message } = new ConfigurationError('store', [
      { name: 'long', rule: 'short', value: 'x'.repeat(1_000) },
      { name: 'symbol', rule: 'text', value: Symbol('s') },
    ]);

    // Assert
    expect(message.length).toBeLessThan(250);
    expect(message).toContain('(got symbol)');
  });
});

describe('the error family', () => {
  test.each([
    [new ConfigurationError('s', []), 'ConfigurationError', 'CONFIGURATION', false],
    [new InvalidMessageError('m'), 'InvalidMessageError', 'INVALID_MESSAGE', false],
    [new EnvironmentError('m'), 'EnvironmentError', 'ENVIRONMENT', false],
    [new BackendError('m', { reason: 'throttled', retryable: true }), 'BackendError', 'BACKEND', true],
  ])('%s carries its name, a stable code, and whether to try again', (error, ...expected) => {
    expect([error.name, error.code, error.retryable]).toEqual(expected);
  });

  test('is told from other errors by a brand that a second copy of the package shares', () => {
    // Arrange
    const fromAnotherCopy = Object.assign(new Error('m'), { brand: Symbol.for('onlyonce.error') });

    // Act
    const verdicts = [new EnvironmentError('m'), fromAnotherCopy, new Error('m'), null, 'text', { brand: 'x' }].map(
      isOnlyonceError,
    );

    // Assert
    expect(verdicts).toEqual([true, true, false, false, false, false]);
  });

  test('keeps what caused it', () => {
    const cause = new Error('socket closed');
    expect(new BackendError('m', { reason: 'ambiguous', retryable: true, cause }).cause).toBe(cause);
  });
});

test('anything thrown has a text', () => {
  expect([messageOf(new Error('a')), messageOf('b'), messageOf(undefined)]).toEqual(['a', 'b', 'undefined']);
});
