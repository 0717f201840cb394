/**
 * Why DynamoDB refused a transaction, action by action, and which of several reasons is the one to act on.
 *
 * The order, in this one place. A failed condition tells more than a fault that passes, and some conditions tell more
 * than others:
 * 1. the record: the work was done before, or is another's. Whatever else failed follows from that: a duplicate whose
 *    stock is gone is a replay, not a rejection.
 * 2. the fence: we may not write any more, so what we would have been told otherwise is no longer our business.
 * 3. a unique value that is taken.
 * 4. other failed conditions, in the order of the actions.
 * 5. requests that are wrong (ValidationError, ItemCollectionSizeLimitExceeded ...), and reasons not known here.
 * 6. conflicts, then 7. throttling: they pass by themselves, and only when nothing else failed is it worth a repeat.
 */
import { OnlyonceError } from '../../errors.ts';
import { plainItem } from '../plain-item.ts';
import type { Item } from '../table.ts';
import type { ActionRole, TransactionAction } from './transaction.ts';

/** One action that DynamoDB did not accept. */
export interface FailedAction {
  readonly index: number;
  readonly label: string;
  readonly role: ActionRole | undefined;
  /** As DynamoDB names it: ConditionalCheckFailed, TransactionConflict, ThrottlingError, ValidationError ... */
  readonly code: string;
  /** The stored item when a condition failed; undefined when there is none. */
  readonly item: Item | undefined;
}

const CONDITION_FAILED = 'ConditionalCheckFailed';
const CONFLICT = 'TransactionConflict';
const THROTTLED = new Set(['ThrottlingError', 'ProvisionedThroughputExceeded', 'RequestLimitExceeded']);

/**
 * DynamoDB refused the transaction: of this try nothing was applied, nor of an earlier one unless `mayBeApplied`.
 */
export class TransactionCancelledError extends OnlyonceError {
  readonly code = 'TRANSACTION_CANCELLED';
  readonly retryable: boolean;
  /** All actions that failed, in order. */
  readonly failures: readonly FailedAction[];
  /** The failure to act on when there are several; undefined when DynamoDB gave no reasons. */
  readonly decisive: FailedAction | undefined;
  /**
   * An earlier try went unanswered and may have been applied: what refused this one may be our own write. The stored
   * item of the record or fence that failed tells.
   */
  readonly mayBeApplied: boolean;

  constructor(failures: readonly FailedAction[], cause: unknown, mayBeApplied = false) {
    const list = failures.map((failure) => `${failure.label}: ${failure.code}`).join(', ');
    const doubt = mayBeApplied ? '; an earlier try went unanswered and may have been applied' : '';
    super(`transaction cancelled (${list || 'no reasons given'})${doubt}`, { cause });
    this.failures = failures;
    this.mayBeApplied = mayBeApplied;
    this.retryable = failures.length > 0 && failures.every((failure) => isPassing(failure.code));
    // A stable sort: among equals the order of the actions decides.
    this.decisive = failures.toSorted((left, right) => rankOf(left) - rankOf(right))[0];
  }

  /** The conditions that were false, in the order of the actions. */
  get failedConditions(): readonly FailedAction[] {
    return this.failures.filter(({ code }) => code === CONDITION_FAILED);
  }

  /** Only another transaction or write was in the way. */
  get isConflict(): boolean {
    return this.decisive?.code === CONFLICT;
  }

  /** A value is taken, and neither a record nor a fence has the stronger word. */
  get isUniqueViolation(): boolean {
    return this.#isDecidedBy('unique');
  }

  /** The right to write is gone, and no record says that the work is done. */
  get isFenced(): boolean {
    return this.#isDecidedBy('fence');
  }

  /** The failure of the first action with this label whose own condition was false. */
  conditionFailure(label: string): FailedAction | undefined {
    return this.failedConditions.find((failure) => failure.label === label);
  }

  #isDecidedBy(role: ActionRole): boolean {
    return this.decisive?.code === CONDITION_FAILED && this.decisive.role === role;
  }
}

const RANK_OF_ROLE: Readonly<Record<ActionRole, number>> = { record: 1, fence: 2, unique: 3 };

function rankOf(failure: FailedAction): number {
  if (failure.code === CONDITION_FAILED) return failure.role === undefined ? 4 : RANK_OF_ROLE[failure.role];
  if (failure.code === CONFLICT) return 6;
  return THROTTLED.has(failure.code) ? 7 : 5;
}

/** Nothing was applied, and the same request may succeed in a moment. */
export function isPassing(code: string): boolean {
  return code === CONFLICT || THROTTLED.has(code);
}

/** Why a transaction was cancelled, one code for each action that failed; empty when no reasons were given. */
export function cancellationCodes(error: unknown): readonly string[] {
  return reasonsOf(error).flatMap(({ code }) => (code === NOT_FAILED ? [] : [code]));
}

/** The actions that failed, with their stored items as plain values. */
export function failuresOf(error: unknown, actions: readonly TransactionAction[]): FailedAction[] {
  return reasonsOf(error).flatMap(({ code, item }, index) => {
    if (code === NOT_FAILED) return [];
    const action = actions[index];
    const label = action?.label ?? `action ${String(index)}`;
    return [{ index, label, role: action?.role, code, item }];
  });
}

/**
 * What a refusal tells of an earlier try of the same transaction that went unanswered.
 *
 * - `not applied`: the transaction has a record and it did not refuse, so it does not say that we were there. DynamoDB
 *   asks all actions before it cancels, and names each that failed.
 * - `ask the item`: a record or a fence refused. Its item says whose it is, and the caller must stop in either case.
 * - `unknown`: a condition that our own write may have made false, and nothing to tell it by.
 *
 * @see "Distributed Transactions at Scale in Amazon DynamoDB", USENIX ATC 2023
 */
export function earlierTryAfter(
  refusal: TransactionCancelledError,
  actions: readonly TransactionAction[],
): 'not applied' | 'ask the item' | 'unknown' {
  const isHolder = ({ role }: FailedAction): boolean => role === 'record' || role === 'fence';
  if (refusal.failedConditions.some(isHolder)) return 'ask the item';
  const records = actions.flatMap(({ role }, index) => (role === 'record' ? [index] : []));
  const failed = new Set(refusal.failures.map(({ index }) => index));
  const wereAsked = records.length > 0 && failed.size > 0;
  return wereAsked && records.every((index) => !failed.has(index)) ? 'not applied' : 'unknown';
}

const NOT_FAILED = 'None';

function reasonsOf(error: unknown): { readonly code: string; readonly item: Item | undefined }[] {
  const reasons: unknown = error instanceof Error && 'CancellationReasons' in error ? error.CancellationReasons : [];
  if (!Array.isArray(reasons)) return [];
  return reasons.map((reason: unknown) => {
    if (typeof reason !== 'object' || reason === null) return { code: NOT_FAILED, item: undefined };
    const code = 'Code' in reason && typeof reason.Code === 'string' ? reason.Code : NOT_FAILED;
    return { code, item: 'Item' in reason ? plainItem(reason.Item) : undefined };
  });
}
