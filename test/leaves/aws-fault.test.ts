import { describe, expect, test } from 'vitest';
import { ConfigurationError } from '../../src/errors.ts';
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

  test.each(['constructor', 'toString', '__proto__'])(
    'the name %s of an answer is not looked up in a prototype',
    (name) => {
      expect(classifyFault(named(name, { $metadata: { httpStatusCode: 400 } }))).toBe('unknown');
    },
  );

  test('a refused connection is unreachable although the SDK calls it a TimeoutError', () => {
    // Act & Assert
    expect(classifyFault(named('TimeoutError', { code: 'ECONNREFUSED', syscall: 'connect' }))).toBe('unreachable');
  });

  const NEVER_CONNECTED = ['ECONNREFUSED', 'ENOTFOUND', 'EAI_AGAIN', 'EHOSTUNREACH', 'ENETUNREACH'];

  describe.each(NEVER_CONNECTED)('%s', (code) => {
    test.each(['connect', 'getaddrinfo'])('of %s never left this machine: unreachable', (syscall) => {
      const fault = named('Error', { code, syscall });
      const wrapped = new TypeError('fetch failed', { cause: fault });
      const everyAddress = Object.assign(new AggregateError([fault, fault]), { code });
      const marked = named('Error', { code, cause: fault });

      expect([fault, wrapped, everyAddress, marked].map(classifyFault)).toEqual(Array(4).fill('unreachable'));
    });

    test.each(['read', 'write', 'shutdown', '', undefined])(
      'of an open connection (%s) may come after the request was applied: ambiguous',
      (syscall) => {
        const fault = named('Error', { code, syscall });
        const one = Object.assign(new AggregateError([named('Error', { code, syscall: 'connect' }), fault]), { code });

        expect([fault, new Error('any', { cause: fault }), one].map(classifyFault)).toEqual(Array(3).fill('ambiguous'));
      },
    );
  });

  test.each([
    ...['ECONNRESET', 'EPIPE', 'ETIMEDOUT', 'UND_ERR_SOCKET', 'ECONNABORTED', 'ENETDOWN', 'ENETRESET', 'EHOSTDOWN'],
    ...['ENOTCONN', 'EPROTO', 'ESHUTDOWN', 'ENOBUFS', 'ESOCKETTIMEDOUT', 'ERR_STREAM_PREMATURE_CLOSE'],
    ...['HPE_INVALID_CONSTANT', 'ERR_SSL_DECRYPTION_FAILED_OR_BAD_RECORD_MAC', 'ERR_HTTP2_STREAM_ERROR'],
    ...['UND_ERR_BODY_TIMEOUT', 'ERR_SOCKET_CLOSED'],
  ])('%s may come after the request was applied: ambiguous', (code) => {
    expect(classifyFault(named('Error', { code }))).toBe('ambiguous');
  });

  test.each(['read', 'write', 'send', 'connect'])(
    'a code that nobody knows, of the socket call %s, is ambiguous',
    (syscall) => {
      expect(classifyFault(named('Error', { code: 'ENEW', syscall }))).toBe('ambiguous');
    },
  );

  test.each([
    new TypeError('any text'),
    new SyntaxError('any text'),
    new ConfigurationError('options', [{ name: 'a', rule: 'b', value: 1 }]),
    named('TypeError', { code: 'ERR_INVALID_ARG_TYPE' }),
    named('Error', { code: 'ENOENT', syscall: 'open' }),
    named('Error', { code: 'EISDIR', syscall: 'read' }),
    named('Error', { code: 'ERR_SOCKET_BAD_PORT' }),
    // The retries of the SDK put this on every error.
    named('TypeError', { $metadata: { attempts: 1, totalRetryDelay: 0 } }),
  ])('what failed before there was a request is not ambiguous: $name $code', (fault) => {
    expect(classifyFault(fault)).toBe('unknown');
  });

  test.each([200, 204, 302, 304, 408, 499])('whatever comes with status %i is ambiguous', (httpStatusCode) => {
    expect(
      ['SomethingNew', 'Unknown', '', 'SyntaxError', 'TypeError'].map((name) =>
        classifyFault(named(name, { $metadata: { httpStatusCode } })),
      ),
    ).toEqual(Array(5).fill('ambiguous'));
  });

  test.each(['', 'Error', 'Unknown', 'UnknownError', '403', 'SyntaxError'])(
    'a 4xx without a name of its own (%j) is ambiguous',
    (name) => {
      expect(classifyFault(named(name, { $metadata: { httpStatusCode: 403 } }))).toBe('ambiguous');
    },
  );

  test('a 4xx with a name that is not listed is a refusal: unknown', () => {
    expect(classifyFault(named('TeapotException', { $metadata: { httpStatusCode: 418 } }))).toBe('unknown');
  });

  test('an answer that cannot be read is ambiguous, whatever the SDK tells of it', () => {
    expect([
      classifyFault(named('SyntaxError', { $responseBodyText: '<html>' })),
      classifyFault(named('SyntaxError', { $response: { statusCode: 200 } })),
    ]).toEqual(['ambiguous', 'ambiguous']);
  });

  test.each([
    'InvalidSignatureException',
    'SignatureDoesNotMatch',
    'RequestTimeTooSkewed',
    'RequestExpired',
    'AccessDeniedException',
  ])('%s is denied, and passes once the clock was corrected', (name) => {
    expect([
      classifyFault(named(name, { $metadata: { httpStatusCode: 403 } })),
      classifyFault(named(name, { $metadata: { httpStatusCode: 403, clockSkewCorrected: true } })),
      classifyFault(named(name, { clockSkewCorrected: true })),
    ]).toEqual(['denied', 'clockSkew', 'clockSkew']);
  });

  test.each([
    ['ConditionalCheckFailedException', 400, 'conditionFailed'],
    ['ValidationException', 400, 'validation'],
    ['InternalServerError', 500, 'ambiguous'],
    ['SomethingNew', 503, 'ambiguous'],
  ])('%s is what it is although the SDK corrected its clock by it', (name, httpStatusCode, expected) => {
    expect(classifyFault(named(name, { $metadata: { httpStatusCode, clockSkewCorrected: true } }))).toBe(expected);
  });

  test('causes in a circle end', () => {
    const fault = new Error('any text');
    fault.cause = fault;

    expect(classifyFault(fault)).toBe('unknown');
  });

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
    'clockSkew',
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
  expect(retryable).toEqual(['conflict', 'throttled', 'inProgress', 'ambiguous', 'unreachable', 'clockSkew']);
});
