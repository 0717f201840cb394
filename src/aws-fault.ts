/**
 * Sorts what the AWS SDK throws into the few classes that code decides on. Only names, error codes and HTTP status
 * are looked at: texts differ between AWS, emulators and versions.
 */

export type FaultClass =
  /** A condition was false: an answer, not a fault. */
  | 'conditionFailed'
  /** A transaction was cancelled; its reasons say more. */
  | 'transactionCancelled'
  /** Another write to the same item was under way. Nothing was applied. */
  | 'conflict'
  /** Too many requests. Nothing was applied. */
  | 'throttled'
  /** The same request token is still being worked on. */
  | 'inProgress'
  /** No answer, or an answer that leaves open whether the request was applied. */
  | 'ambiguous'
  /** The server could not be reached: the request never left. */
  | 'unreachable'
  /** The receipt handle is too old, or its message is gone. */
  | 'receiptGone'
  | 'notFound'
  | 'exists'
  | 'denied'
  | 'validation'
  | 'aborted'
  | 'unknown';

const CLASS_OF_NAME: Readonly<Record<string, FaultClass>> = {
  ConditionalCheckFailedException: 'conditionFailed',
  TransactionCanceledException: 'transactionCancelled',
  TransactionConflictException: 'conflict',
  ReplicatedWriteConflictException: 'conflict',
  TransactionInProgressException: 'inProgress',
  ProvisionedThroughputExceededException: 'throttled',
  RequestLimitExceeded: 'throttled',
  LimitExceededException: 'throttled',
  ThrottlingException: 'throttled',
  Throttling: 'throttled',
  RequestThrottled: 'throttled',
  OverLimit: 'throttled',
  TimeoutError: 'ambiguous',
  InternalServerError: 'ambiguous',
  InternalFailure: 'ambiguous',
  ServiceUnavailable: 'ambiguous',
  ReceiptHandleIsInvalid: 'receiptGone',
  MessageNotInflight: 'receiptGone',
  ResourceNotFoundException: 'notFound',
  QueueDoesNotExist: 'notFound',
  NonExistentQueue: 'notFound',
  ResourceInUseException: 'exists',
  QueueNameExists: 'exists',
  AccessDeniedException: 'denied',
  AccessDenied: 'denied',
  UnrecognizedClientException: 'denied',
  InvalidClientTokenId: 'denied',
  InvalidSignatureException: 'denied',
  ExpiredTokenException: 'denied',
  CredentialsProviderError: 'denied',
  ValidationException: 'validation',
  IdempotentParameterMismatchException: 'validation',
  AbortError: 'aborted',
};

const UNREACHABLE = new Set(['ECONNREFUSED', 'ENOTFOUND', 'EAI_AGAIN', 'EHOSTUNREACH', 'ENETUNREACH']);
const CUT_OFF = new Set(['ECONNRESET', 'EPIPE', 'ETIMEDOUT', 'UND_ERR_SOCKET', 'ECONNABORTED']);
const RETRYABLE = new Set<FaultClass>(['conflict', 'throttled', 'inProgress', 'ambiguous', 'unreachable']);

/** The last part of the error's name: some emulators put the service in front of it. */
export function faultName(error: unknown): string {
  const name = error instanceof Error ? error.name : '';
  return name.split(/[.#]/).at(-1) ?? '';
}

export function classifyFault(error: unknown): FaultClass {
  const known = CLASS_OF_NAME[faultName(error)];
  // A refused connection arrives as a TimeoutError or a plain Error: its code says more than its name.
  const code = codeOf(error);
  if (UNREACHABLE.has(code)) return 'unreachable';
  if (CUT_OFF.has(code)) return 'ambiguous';
  if (known !== undefined) return known;
  const status = statusOf(error);
  if (status === 429) return 'throttled';
  if (status !== undefined && status >= 500) return 'ambiguous';
  return 'unknown';
}

/** True when the same request may well succeed a little later. */
export function isRetryable(fault: FaultClass): boolean {
  return RETRYABLE.has(fault);
}

function codeOf(error: unknown): string {
  if (typeof error !== 'object' || error === null) return '';
  if ('code' in error && typeof error.code === 'string') return error.code;
  return 'cause' in error ? codeOf(error.cause) : '';
}

function statusOf(error: unknown): number | undefined {
  if (typeof error !== 'object' || error === null || !('$metadata' in error)) return undefined;
  const metadata = error.$metadata;
  if (typeof metadata !== 'object' || metadata === null || !('httpStatusCode' in metadata)) return undefined;
  return typeof metadata.httpStatusCode === 'number' ? metadata.httpStatusCode : undefined;
}
