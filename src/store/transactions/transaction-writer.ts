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
import { BackendError, ConfigurationError, type OnlyonceError } from '../../errors.ts';
import { toBackendError } from '../backend-error.ts';
import { earlierTryAfter, failuresOf, TransactionCancelledError } from './transaction-failures.ts';
import { checkTransaction, renderAction, type TransactionAction } from './transaction.ts';

export { TransactionCancelledError } from './transaction-failures.ts';
export type { FailedAction } from './transaction-failures.ts';

/** How long a transaction is tried, and what tells whether it was applied. */
export interface WriteOptions {
  /** For all tries together; 0 is one try. Unit: ms. Range: 0-3600000. @defaultValue 10000 */
  readonly deadlineMs?: number;
  /** Ends the wait between tries. */
  readonly signal?: AbortSignal;
  /**
   * Asked when a try went unanswered and a later one was refused, for transactions whose stored items tell (by a nonce,
   * a version): was it this very transaction that was applied? `true` resolves, `false` throws the refusal.
   * @defaultValue by the record or the fence among the actions; without one it is ambiguous
   */
  readonly wasApplied?: (refusal: TransactionCancelledError) => boolean;
}

/** Sends transactions, and sorts out what became of tries without an answer. */
export interface TransactionWriter {
  /**
   * Resolves once the transaction is durable.
   * @throws {TransactionCancelledError} when it was refused, or still conflicts at the deadline: nothing was applied,
   * unless it says `mayBeApplied`.
   * @throws {BackendError} with reason `ambiguous` when the deadline passed without an answer, or a try went unanswered
   * and a later one was refused, perhaps by our own write (the refusal is its cause): read before you retry.
   * @throws {ConfigurationError} when it or its deadline is over a limit; nothing was sent.
   */
  write(actions: readonly TransactionAction[], options?: WriteOptions): Promise<void>;
}

const TRANSACTION_DEFAULTS = { deadlineMs: 10_000 } as const;

const MAX_DEADLINE_MS = 3_600_000;

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
    const { deadlineMs = TRANSACTION_DEFAULTS.deadlineMs } = limits;
    checkDeadline(deadlineMs);
    checkTransaction(actions);
    const items = actions.map((action) => renderAction(action, tableName));
    const deadline = clock.monotonicMs() + deadlineMs;
    let token = randomUUID();
    let unanswered: OnlyonceError | undefined;
    for (let attempt = 1; ; attempt += 1) {
      try {
        await client.send(new TransactWriteCommand({ TransactItems: items, ClientRequestToken: token }));
        return;
      } catch (error) {
        const verdict = judge(error, actions);
        if (verdict.next === 'give up') {
          concluded(verdict.error, unanswered, { actions, limits });
          return;
        }
        // No later answer proves that an earlier try without one was not applied.
        if (verdict.isOpen) unanswered ??= verdict.error;
        const report = unanswered ?? verdict.error;
        const delayMs = fullJitterMs(attempt, BACKOFF, random);
        if (clock.monotonicMs() + delayMs >= deadline) throw report;
        await sleep(clock, delayMs, limits.signal).catch(() => {
          throw report;
        });
        // A try without an answer may still arrive: only under its own token is it not a second application.
        if (verdict.next === 'fresh token' && unanswered === undefined) token = randomUUID();
      }
    }
  }

  return { write };
}

function checkDeadline(deadlineMs: number): void {
  if (Number.isFinite(deadlineMs) && deadlineMs >= 0 && deadlineMs <= MAX_DEADLINE_MS) return;
  const rule = `from 0 to ${String(MAX_DEADLINE_MS)} ms`;
  throw new ConfigurationError('transaction', [{ name: 'deadlineMs', rule, value: deadlineMs }]);
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

/**
 * Returns when it was applied after all, and else throws what is to be said of a transaction that was refused for good,
 * perhaps after a try that went unanswered. While DynamoDB remembers the token (10 minutes), it answers an applied
 * transaction with success; later, or after a restart of an emulator, our own write refuses us. So a refusal alone must
 * not be told as "nothing was applied".
 */
function concluded(
  error: OnlyonceError,
  unanswered: OnlyonceError | undefined,
  written: { readonly actions: readonly TransactionAction[]; readonly limits: WriteOptions },
): void {
  if (unanswered === undefined) throw error;
  // A request that is wrong or denied now says nothing about the one before.
  if (!(error instanceof TransactionCancelledError)) throw unanswered;
  const { wasApplied } = written.limits;
  if (wasApplied?.(error) === true) return;
  switch (wasApplied === undefined ? earlierTryAfter(error, written.actions) : 'not applied') {
    case 'not applied':
      throw error;
    case 'ask the item':
      throw new TransactionCancelledError(error.failures, error.cause, true);
    case 'unknown': {
      const message = `DynamoDB: a try went unanswered, a later one was refused: ${error.message}`;
      throw new BackendError(message, { reason: 'ambiguous', retryable: true, cause: error });
    }
  }
}
