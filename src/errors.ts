/**
 * The one error family. Exceptions are for faults; what is expected to happen (a duplicate, a busy key, a rejected
 * order) is a value of a union type and never an exception.
 */

const BRAND: unique symbol = Symbol.for('onlyonce.error');

/** What every error of this package carries. */
export abstract class OnlyonceError extends Error {
  /** A stable word to match on; the text of `message` may change at any time. */
  abstract readonly code: string;
  /** True when the same call may succeed later without anybody changing anything. */
  abstract readonly retryable: boolean;
  /** Survives two copies of the package in one process, which `instanceof` does not. */
  readonly brand: typeof BRAND = BRAND;

  constructor(message: string, options?: { cause?: unknown }) {
    super(message, options);
    this.name = new.target.name;
  }
}

/** Tells our errors from all others, also when two copies of the package are loaded. */
export function isOnlyonceError(value: unknown): value is OnlyonceError {
  return typeof value === 'object' && value !== null && 'brand' in value && value.brand === BRAND;
}

/** One wrong option: its name, the rule it breaks, and the value that was given. */
export interface OptionFault {
  readonly name: string;
  readonly rule: string;
  readonly value: unknown;
}

/** One or more options are wrong. All faults found are listed, not only the first. */
export class ConfigurationError extends OnlyonceError {
  readonly code = 'CONFIGURATION';
  readonly retryable = false;
  readonly faults: readonly OptionFault[];

  constructor(subject: string, faults: readonly OptionFault[]) {
    const lines = faults.map((fault) => `  ${fault.name}: ${fault.rule} (got ${describe(fault.value)})`);
    super(`${subject}: ${String(faults.length)} wrong option${faults.length === 1 ? '' : 's'}\n${lines.join('\n')}`);
    this.faults = faults;
  }
}

/** A message that must not be sent or worked on: unreadable, unknown, or against its schema. */
export class InvalidMessageError extends OnlyonceError {
  readonly code = 'INVALID_MESSAGE';
  readonly retryable = false;
}

/** DynamoDB or SQS refused or could not be reached. `reason` is the class the fault was sorted into. */
export class BackendError extends OnlyonceError {
  readonly code = 'BACKEND';
  readonly retryable: boolean;
  readonly reason: string;

  constructor(message: string, options: { reason: string; retryable: boolean; cause?: unknown }) {
    super(message, { cause: options.cause });
    this.reason = options.reason;
    this.retryable = options.retryable;
  }
}

/** Something this machine lacks: a program, a package, a free port. The message says what to do. */
export class EnvironmentError extends OnlyonceError {
  readonly code = 'ENVIRONMENT';
  readonly retryable = false;
}

/** The text of any thrown value. Never throws: users throw anything, and what is told of it must not fail as well. */
export function messageOf(error: unknown): string {
  try {
    const text: unknown = error instanceof Error ? error.message : String(error);
    return typeof text === 'string' ? text : String(text);
  } catch {
    return 'a thrown value that has no text';
  }
}

function describe(value: unknown): string {
  if (value === undefined) return 'nothing';
  if (typeof value === 'number') return String(value);
  return (jsonOf(value) ?? typeof value).slice(0, 80);
}

/** Undefined for what has no JSON: functions, symbols, cycles. What they are is all that can be said of them. */
function jsonOf(value: unknown): string | undefined {
  try {
    return JSON.stringify(value, (_name, part: unknown) => (typeof part === 'bigint' ? `${String(part)}n` : part));
  } catch {
    return undefined;
  }
}
