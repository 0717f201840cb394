/**
 * Numbers without gaps: a number is taken in the same transaction as what it numbers, on the condition that nobody has
 * taken it yet. Whoever was slower builds its transaction anew with the number after that.
 *
 * A lost answer must not number twice. The transaction is repeated with its own request token, which DynamoDB remembers
 * for longer than any deadline here. Besides, `numberedBy` on the counter is a nonce of the try that took the last
 * number, by which a try knows that it landed: when the token was forgotten, and at a deadline without any answer.
 */
import { randomUUID } from 'node:crypto';
import { fullJitterMs, type Backoff } from '../../backoff.ts';
import { sleep } from '../../clock.ts';
import { BackendError } from '../../errors.ts';
import { attributeAbsent, equals } from '../conditions.ts';
import { readConsistently } from '../consistent-read.ts';
import type { StoreContext } from '../context.ts';
import { keyText, type Item, type ItemKey } from '../table.ts';
import { tokenMemory } from '../token-memory.ts';
import { TransactionCancelledError } from '../transactions/transaction-failures.ts';
import type { TransactionAction } from '../transactions/transaction.ts';
import { VersionConflictError } from '../versioned.ts';
import { counterValue, CounterValueError, isCounterValue, VALUE } from './counter-value.ts';

/** How long `counters.numbered` tries to take a number while others are faster. */
export interface NumberingOptions {
  /** For all tries together. Unit: ms. Range: 1-300000. @defaultValue 10000 */
  readonly deadlineMs?: number;
  /** Ends the wait between tries. */
  readonly signal?: AbortSignal;
}

export interface NumberingRequest extends Required<Pick<NumberingOptions, 'deadlineMs'>> {
  readonly counter: ItemKey;
  readonly actions: (number: number) => readonly TransactionAction[];
  readonly signal?: AbortSignal;
}

const BACKOFF: Backoff = { baseMs: 25, capMs: 1_000 };

export async function takeNumber(context: StoreContext, request: NumberingRequest): Promise<number> {
  const { clock, random } = context;
  const deadline = clock.monotonicMs() + request.deadlineMs;
  let stored = await readConsistently(context, request.counter);
  for (let attempt = 1; ; attempt += 1) {
    request.signal?.throwIfAborted();
    const answer = await tryNumber(context, { request, stored, leftMs: Math.max(0, deadline - clock.monotonicMs()) });
    if (answer.kind === 'taken') return answer.number;
    const delayMs = fullJitterMs(attempt, BACKOFF, random);
    if (clock.monotonicMs() + delayMs >= deadline) {
      const message = `another was faster at each of ${String(attempt)} numbers of ${keyText(request.counter)}`;
      throw new VersionConflictError(message, { cause: answer.cause });
    }
    stored = answer.stored;
    await sleep(clock, delayMs, request.signal);
  }
}

interface Try {
  readonly request: NumberingRequest;
  /** The counter as it was last seen. */
  readonly stored: Item | undefined;
  readonly leftMs: number;
}

type TryAnswer =
  | { readonly kind: 'taken'; readonly number: number }
  | { readonly kind: 'tooLate'; readonly stored: Item | undefined; readonly cause: unknown };

async function tryNumber(context: StoreContext, { request, stored, leftMs }: Try): Promise<TryAnswer> {
  const { counter, signal } = request;
  const number = counterValue(counter, stored) + 1;
  if (!isCounterValue(number)) throw new CounterValueError(`${keyText(counter)} has no number after its limit`);
  const numberedBy = randomUUID();
  const take: TransactionAction = {
    kind: 'update',
    label: 'number',
    key: counter,
    change: { set: { [VALUE]: number, numberedBy } },
    condition: stored?.[VALUE] === undefined ? attributeAbsent(VALUE) : equals(VALUE, number - 1),
  };
  const hasLanded = (item: Item | undefined): boolean => item?.['numberedBy'] === numberedBy;
  const isRemembered = tokenMemory(context.clock);
  let isOpen = false;
  const wasApplied = (refusal: TransactionCancelledError): boolean => {
    const refused = refusalOfNumber(refusal);
    // Whoever took the number since has left a nonce of its own: then only the request token tells that we had not.
    isOpen = refused !== undefined && !isRemembered();
    return hasLanded(refused?.stored);
  };
  const limits = { deadlineMs: leftMs, wasApplied, ...(signal !== undefined && { signal }) };
  try {
    await context.transactions.write([take, ...request.actions(number)], limits);
    return { kind: 'taken', number };
  } catch (error) {
    if (isUnanswered(error) && hasLanded(await readConsistently(context, counter).catch(() => undefined))) {
      return { kind: 'taken', number };
    }
    if (isOpen) throw lateRepeat(counter, error);
    const refused = refusalOfNumber(error);
    if (refused === undefined) throw error;
    return { kind: 'tooLate', stored: refused.stored, cause: error };
  }
}

/** By place, not by label: the caller's own actions may have any label. */
function refusalOfNumber(error: unknown): { readonly stored: Item | undefined } | undefined {
  if (!(error instanceof TransactionCancelledError)) return undefined;
  const failure = error.failedConditions.find(({ index }) => index === 0);
  return failure === undefined ? undefined : { stored: failure.item };
}

function isUnanswered(error: unknown): boolean {
  return error instanceof BackendError && error.reason === 'ambiguous';
}

function lateRepeat(counter: ItemKey, cause: unknown): BackendError {
  const message = `a number of ${keyText(counter)} went unanswered, and its repeat came too late to tell`;
  return new BackendError(message, { reason: 'ambiguous', retryable: true, cause });
}
