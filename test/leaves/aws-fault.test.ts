import { describe, expect, test } from 'vitest';
import { classifyFault, faultName, isRetryable, type FaultClass } from '../../src/aws-fault.ts';

function named(name: string, extra: object = {}): Error {
  return Object.assign(new Error('any text'), { name }, extra);
}

describe('the class of a fault', () => {
  test.each<[string, FaultClass]>([
    ['ConditionalCheckFailedException', 'conditionFailed'],
    ['TransactionCanceledException', 'transactionCancelled'],
    ['TransactionConflictException', 'conflict'],
    ['TransactionInProgressException', 'inProgress'],
    ['ProvisionedThroughputExceededException', 'throttled'],
    ['ThrottlingException', 'throttled'],
    ['RequestLimitExceeded', 'throttled'],
    ['TimeoutError', 'ambiguous'],
    ['InternalServerError', 'ambiguous'],
    ['ReceiptHandleIsInvalid', 'receiptGone'],
    ['ResourceNotFoundException', 'notFound'],
    ['ResourceInUseException', 'exists'],
    ['AccessDeniedException', 'denied'],
    ['ValidationException', 'validation'],
    ['IdempotentParameterMismatchException', 'validation'],
    ['AbortError', 'aborted'],
  ])('%s is %s by its name alone', (name, expected) => {
    // Act & Assert
    expect(classifyFault(named(name))).toBe(expected);
  });

  test.each([
    ['AWS.SimpleQueueService.NonExistentQueue', 'NonExistentQueue', 'notFound'],
    [
      'com.amazonaws.dynamodb.v20120810#ConditionalCheckFailedException',
      'ConditionalCheckFailedException',
      'conditionFailed',
    ],
  ])('the service in front of the name %s does not matter', (name, bare, expected) => {
    // Act
    const fault = named(name);

    // Assert
    expect([faultName(fault), classifyFault(fault)]).toEqual([bare, expected]);
  });

  test('a refused connection is unreachable although the SDK calls it a TimeoutError', () => {
    // Act & Assert
    expect(classifyFault(named('TimeoutError', { code: 'ECONNREFUSED' }))).toBe('unreachable');
  });

  test.each(['ECONNREFUSED', 'ENOTFOUND', 'EAI_AGAIN', 'EHOSTUNREACH', 'ENETUNREACH'])(
    '%s never left this machine: unreachable',
    (code) => {
      expect(classifyFault(named('Error', { code }))).toBe('unreachable');
    },
  );

  test.each(['ECONNRESET', 'EPIPE', 'ETIMEDOUT', 'UND_ERR_SOCKET'])(
    '%s may come after the request was applied: ambiguous',
    (code) => {
      expect(classifyFault(named('Error', { code }))).toBe('ambiguous');
    },
  );

  test('the code of the cause counts where the error itself has none', () => {
    // Arrange
    const fault = new TypeError('fetch failed', { cause: named('Error', { code: 'ECONNRESET' }) });

    // Act & Assert
    expect(classifyFault(fault)).toBe('ambiguous');
  });

  test.each([500, 502, 503, 504])(
    'an unknown name with status %i leaves open whether it was applied',
    (httpStatusCode) => {
      expect(classifyFault(named('SomethingNew', { $metadata: { httpStatusCode } }))).toBe('ambiguous');
    },
  );

  test('an unknown name with status 429 is throttled', () => {
    expect(classifyFault(named('SomethingNew', { $metadata: { httpStatusCode: 429 } }))).toBe('throttled');
  });

  test('a known name is stronger than the status', () => {
    expect(classifyFault(named('ConditionalCheckFailedException', { $metadata: { httpStatusCode: 500 } }))).toBe(
      'conditionFailed',
    );
  });

  test('the text of an error never decides', () => {
    expect(classifyFault(new Error('ThrottlingException: ConditionalCheckFailedException 503'))).toBe('unknown');
  });

  test.each([
    [undefined],
    [null],
    ['text'],
    [42],
    [{}],
    [{ $metadata: null }],
    [{ $metadata: { httpStatusCode: 'x' } }],
  ])('anything else that is thrown (%j) is unknown', (thrown) => {
    expect(classifyFault(thrown)).toBe('unknown');
  });
});

test('only faults that pass by themselves are worth another try', () => {
  // Arrange
  const all: FaultClass[] = [
    'conditionFailed',
    'transactionCancelled',
    'conflict',
    'throttled',
    'inProgress',
    'ambiguous',
    'unreachable',
    'receiptGone',
    'notFound',
    'exists',
    'denied',
    'validation',
    'aborted',
    'unknown',
  ];

  // Act
  const retryable = all.filter(isRetryable);

  // Assert
  expect(retryable).toEqual(['conflict', 'throttled', 'inProgress', 'ambiguous', 'unreachable']);
});
