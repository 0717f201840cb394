/**
 * Sorts what the AWS SDK throws into the few classes that code decides on. Only names, error codes and HTTP status
 * are looked at: texts differ between AWS, emulators and versions.
 *
 * A request whose answer cannot be understood may have been applied. `unknown` is left for what a service refused under
 * a name that is not listed, and for what failed before a request was sent.
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
  /** No connection came about: the request never left. */
  | 'unreachable'
  /** Refused because this machine's clock is wrong; the SDK has corrected its offset since. Nothing was applied. */
  | 'clockSkew'
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
  RequestTimeout: 'ambiguous',
  RequestTimeoutException: 'ambiguous',
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
  SignatureDoesNotMatch: 'denied',
  RequestTimeTooSkewed: 'denied',
  RequestExpired: 'denied',
  RequestInTheFuture: 'denied',
  AuthFailure: 'denied',
  ExpiredTokenException: 'denied',
  CredentialsProviderError: 'denied',
  ValidationException: 'validation',
  IdempotentParameterMismatchException: 'validation',
  AbortError: 'aborted',
};

const UNREACHABLE = new Set(['ECONNREFUSED', 'ENOTFOUND', 'EAI_AGAIN', 'EHOSTUNREACH', 'ENETUNREACH']);
/** What fails before a byte of the request is out. The same codes come from open sockets too (`read EHOSTUNREACH`). */
const BEFORE_SENDING = new Set(['connect', 'getaddrinfo']);
const SOCKET_CALLS = new Set(['connect', 'getaddrinfo', 'read', 'write', 'send', 'sendmsg', 'recv', 'shutdown']);
/** Codes of sockets and of the HTTP and TLS that run over them, known without the call that failed. */
const SOCKET_CODE =
  /^(ECONN\w+|ENET\w+|EHOST\w+|EAI_\w+|ENOTFOUND|ENOTCONN|EPIPE|EPROTO|ESHUTDOWN|E(SOCKET)?TIMEDOUT|ENOBUFS|EADDRNOTAVAIL)$|^HPE_|^ERR_SSL_|^ERR_HTTP2_(STREAM|SESSION|GOAWAY)|^ERR_SOCKET_(CLOSED|CONNECTION)|^ERR_STREAM_(PREMATURE_CLOSE|DESTROYED)$|^UND_ERR_(SOCKET|ABORTED|DESTROYED|CLOSED|INFO|\w+_TIMEOUT|RES\w*)$/;
/** Names that no service gave: what the SDK says of an answer without one, and of one that it cannot read. */
const UNNAMED = /^(|\d+|Unknown|UnknownError|Error|SyntaxError|TypeError|RangeError)$/;
/** Statuses of gateways and clients that gave up waiting. */
const GAVE_UP = new Set([408, 499]);
const RETRYABLE = new Set<FaultClass>(['conflict', 'throttled', 'inProgress', 'ambiguous', 'unreachable', 'clockSkew']);
/** Causes may lead in a circle. */
const MAX_DEPTH = 8;

/** The last part of the error's name: some emulators put the service in front of it. */
export function faultName(error: unknown): string {
  const name = error instanceof Error ? error.name : '';
  return name.split(/[.#]/).at(-1) ?? '';
}

export function classifyFault(error: unknown): FaultClass {
  const name = faultName(error);
  const known = Object.hasOwn(CLASS_OF_NAME, name) ? CLASS_OF_NAME[name] : undefined;
  // A refused connection arrives as a TimeoutError or a plain Error: its code says more than its name.
  const socketFault = classOfSocket(error);
  if (socketFault !== undefined) return socketFault;
  if (known === 'denied' && isClockCorrected(error)) return 'clockSkew';
  return known ?? classOfAnswer(error, name);
}

/** What an answer without a known name says. Without any sign of an answer, the request may not have been built. */
function classOfAnswer(error: unknown, name: string): FaultClass {
  const status = statusOf(error);
  if (status === undefined) return has(error, '$responseBodyText') ? 'ambiguous' : 'unknown';
  if (status === 429) return 'throttled';
  // A service that refuses says so by a name and a 4xx. Anything else may come from something in between.
  const isRefusal = status >= 400 && status < 500 && !GAVE_UP.has(status) && !UNNAMED.test(name);
  return isRefusal ? 'unknown' : 'ambiguous';
}

/** True when the same request may well succeed a little later. */
export function isRetryable(fault: FaultClass): boolean {
  return RETRYABLE.has(fault);
}

/** Undefined when it is no fault of a connection. */
function classOfSocket(error: unknown): FaultClass | undefined {
  const code = codeOf(error);
  if (code === '') return undefined;
  const call = callOf(error);
  if (BEFORE_SENDING.has(call) && UNREACHABLE.has(code)) return 'unreachable';
  // A directory where the SDK expects a file also fails to `read`.
  const isSocketCall = SOCKET_CALLS.has(call) && code !== 'EISDIR';
  return isSocketCall || SOCKET_CODE.test(code) ? 'ambiguous' : undefined;
}

/** The outermost code: what our own errors are caused by is no matter of theirs. */
function codeOf(error: unknown, depth = 0): string {
  const code = field(error, 'code');
  if (typeof code === 'string') return code;
  const cause = field(error, 'cause');
  return cause === undefined || depth >= MAX_DEPTH ? '' : codeOf(cause, depth + 1);
}

/** The system call that failed. Several addresses that were tried count as `connect` only if each try was one. */
function callOf(error: unknown, depth = 0): string {
  const call = field(error, 'syscall');
  if (typeof call === 'string') return call;
  if (depth >= MAX_DEPTH) return '';
  const tries = field(error, 'errors');
  if (Array.isArray(tries) && tries.length > 0) {
    const calls = tries.map((each) => callOf(each, depth + 1));
    return calls.every((each) => BEFORE_SENDING.has(each)) ? (calls[0] ?? '') : '';
  }
  const cause = field(error, 'cause');
  return cause === undefined ? '' : callOf(cause, depth + 1);
}

/** The SDK marks every error of the request by which it noticed; only a refusal of the signature is due to the clock. */
function isClockCorrected(error: unknown): boolean {
  return [error, field(error, '$metadata')].some((marked) => field(marked, 'clockSkewCorrected') === true);
}

function statusOf(error: unknown): number | undefined {
  const statuses = [field(field(error, '$metadata'), 'httpStatusCode'), field(field(error, '$response'), 'statusCode')];
  return statuses.find((status) => typeof status === 'number');
}

function has(value: unknown, name: string): boolean {
  return field(value, name) !== undefined;
}

function field(value: unknown, name: string): unknown {
  return typeof value === 'object' && value !== null ? Reflect.get(value, name) : undefined;
}
