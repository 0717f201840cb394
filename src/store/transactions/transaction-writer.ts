/**
 * Sends a transaction until it is committed, refused, or out of time.
 *
 * Invariant: a try whose outcome is unknown is repeated with the same ClientRequestToken, so that it cannot be applied
 * twice; a try that was cancelled for good gets a fresh token, because DynamoDB remembers the old one's answer.
 */
import { randomUUID } from 'node:crypto';
import { TransactWriteCommand, type DynamoDBDocumentClient } from '@aws-sdk/lib-dynamodb';
import { classifyFault } from '../../aws-fault.ts';
import { fullJitterMs, type Backoff } from '../../backoff.ts';
import { sleep, type Clock, type Random } from '../../clock.ts';
import { OnlyonceError } from '../../errors.ts';
import { toBackendError } from '../backend-error.ts';
import { plainItem } from '../plain-item.ts';
import type { Item } from '../table.ts';
import { checkTransaction, renderAction, type TransactionAction } from './transaction.ts';

/** One action that DynamoDB did not accept. */
export interface FailedAction {
  readonly index: number;
  readonly label: string;
  /** As DynamoDB names it: ConditionalCheckFailed, TransactionConflict, ThrottlingError, ValidationError ... */
  readonly code: string;
  /** The stored item when a condition failed; undefined when there is none. */
  readonly item: Item | undefined;
}

/** DynamoDB refused the transaction: nothing of it was applied. */
export class TransactionCancelledError extends OnlyonceError {
  readonly code = 'TRANSACTION_CANCELLED';
  readonly retryable: boolean;
  /** All actions that failed, in order. A failed condition is the stronger word when others only conflicted. */
  readonly failures: readonly FailedAction[];

  constructor(failures: readonly FailedAction[], cause: unknown) {
    const list = failures.map((failure) => `${failure.label}: ${failure.code}`).join(', ');
    super(`transaction cancelled (${list || 'no reasons given'})`, { cause });
    this.failures = failures;
    this.retryable = failures.length > 0 && failures.every((failure) => PASSING.has(failure.code));
  }

  /** The failure of the action with this label, when its own condition was false. */
  conditionFailure(label: string): FailedAction | undefined {
    return this.failures.find((failure) => failure.label === label && failure.code === 'ConditionalCheckFailed');
  }
}

/** Reasons that pass by themselves: nothing was applied, the same transaction may succeed in a moment. */
const PASSING = new Set([
  'TransactionConflict',
  'ThrottlingError',
  'ProvisionedThroughputExceeded',
  'RequestLimitExceeded',
]);

export interface WriteOptions {
  /** For all tries together. Unit: ms. @defaultValue 10000 */
  readonly deadlineMs?: number;
  /** Ends the wait between tries. */
  readonly signal?: AbortSignal;
}

export interface TransactionWriter {
  /**
   * Resolves once the transaction is durable.
   * @throws {TransactionCancelledError} when it was refused, or still conflicts at the deadline: nothing was applied.
   * @throws {BackendError} with reason `ambiguous` when the deadline passed without an answer: read before you retry.
   * @throws {ConfigurationError} when it is over a limit; nothing was sent.
   */
  write(actions: readonly TransactionAction[], options?: WriteOptions): Promise<void>;
}

const TRANSACTION_DEFAULTS = { deadlineMs: 10_000 } as const;

const BACKOFF: Backoff = { baseMs: 25, capMs: 1_000 };

export interface TransactionWriterOptions {
  /** With one try per request: an answer to the SDK's own second try would hide that its first had none. */
  readonly client: DynamoDBDocumentClient;
  readonly tableName: string;
  readonly clock: Clock;
  readonly random: Random;
}

export function createTransactionWriter(options: TransactionWriterOptions): TransactionWriter {
  const { client, tableName, clock, random } = options;

  async function write(actions: readonly TransactionAction[], limits: WriteOptions = {}): Promise<void> {
    checkTransaction(actions);
    const items = actions.map((action) => renderAction(action, tableName));
    const deadline = clock.monotonicMs() + (limits.deadlineMs ?? TRANSACTION_DEFAULTS.deadlineMs);
    let token = randomUUID();
    let unanswered: OnlyonceError | undefined;
    for (let attempt = 1; ; attempt += 1) {
      try {
        await client.send(new TransactWriteCommand({ TransactItems: items, ClientRequestToken: token }));
        return;
      } catch (error) {
        const verdict = judge(error, actions);
        if (verdict.next === 'give up') throw verdict.error;
        // No later answer proves that an earlier try without one was not applied.
        if (verdict.isOpen) unanswered ??= verdict.error;
        const lastWord = unanswered ?? verdict.error;
        const delayMs = fullJitterMs(attempt, BACKOFF, random);
        if (clock.monotonicMs() + delayMs >= deadline) throw lastWord;
        await sleep(clock, delayMs, limits.signal).catch(() => {
          throw lastWord;
        });
        // A try without an answer may still arrive: only under its own token is it not a second application.
        if (verdict.next === 'fresh token' && unanswered === undefined) token = randomUUID();
      }
    }
  }

  return { write };
}

interface Verdict {
  readonly next: 'give up' | 'same token' | 'fresh token';
  readonly error: OnlyonceError;
  /** True when this try may have been applied, or may still be. */
  readonly isOpen: boolean;
}

function judge(error: unknown, actions: readonly TransactionAction[]): Verdict {
  if (classifyFault(error) === 'transactionCancelled') {
    const cancelled = new TransactionCancelledError(failuresOf(error, actions), error);
    return { next: cancelled.retryable ? 'fresh token' : 'give up', error: cancelled, isOpen: false };
  }
  const fault = toBackendError(error);
  const isOpen = fault.reason === 'ambiguous' || fault.reason === 'inProgress';
  return { next: fault.retryable ? 'same token' : 'give up', error: fault, isOpen };
}

function failuresOf(error: unknown, actions: readonly TransactionAction[]): FailedAction[] {
  const reasons: unknown = error instanceof Error && 'CancellationReasons' in error ? error.CancellationReasons : [];
  if (!Array.isArray(reasons)) return [];
  return reasons.flatMap((reason: unknown, index) => {
    if (typeof reason !== 'object' || reason === null || !('Code' in reason)) return [];
    const code = String(reason.Code);
    if (code === 'None') return [];
    const item = 'Item' in reason ? plainItem(reason.Item) : undefined;
    return [{ index, label: actions[index]?.label ?? `action ${String(index)}`, code, item }];
  });
}
