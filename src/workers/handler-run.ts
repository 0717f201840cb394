/** Runs a handler on one delivery: what it is given, how long it may take, and what it may answer. */
import type { Clock } from '../clock.ts';
import { OnlyonceError } from '../errors.ts';
import type { Message } from '../messages/contract.ts';
import type { Store } from '../store/store.ts';
import type { TransactionAction } from '../store/transactions/transaction.ts';
import { TransactionCancelledError } from '../store/transactions/transaction-failures.ts';
import { withFields, type Log } from '../telemetry/log.ts';
import type { Delivery } from './delivery.ts';
import type { Completed, Handler, HandlerContext, HandlerResult, Rejected } from './handler.ts';
import { RetryLater } from './retry.ts';
import { keyOfEffect } from './steps.ts';

/** What a handler made, ready to be committed: the unit of work is part of its effects. */
export type Finished = Rejected | (Completed & { readonly effects: readonly TransactionAction[] });

/** The time that a handler may take is over. */
export class HandlerTimeoutError extends OnlyonceError {
  readonly code = 'HANDLER_TIMEOUT';
  readonly retryable = true;

  constructor(timeoutMs: number) {
    super(`the handler was not done after ${String(timeoutMs)} ms`);
  }
}

export interface RunOptions extends Pick<HandlerContext, 'attempt' | 'signal' | 'deadlineMs' | 'lease' | 'step'> {
  readonly handler: Handler<unknown>;
  readonly message: Message;
  readonly delivery: Delivery;
  readonly queue: string;
  readonly store: Store;
  readonly log: Log;
}

/**
 * @throws {RetryLater} when the handler says "not now".
 * @throws what the handler throws.
 */
export async function runHandler(options: RunOptions): Promise<Finished> {
  const { handler, message, store } = options;
  const unitOfWork: TransactionAction[] = [];
  const { key } = message;
  const log = withFields(options.log, { key, messageId: options.delivery.messageId, attempt: options.attempt });
  let isOver = false;
  const result = await handler.handle(message, {
    attempt: options.attempt,
    signal: options.signal,
    deadlineMs: options.deadlineMs,
    log,
    idempotencyKey: keyOfEffect(options.queue, key),
    transaction: {
      add: (...actions) => {
        if (isOver) warnOfLateEffect(log);
        else unitOfWork.push(...actions);
      },
    },
    lease: options.lease,
    step: options.step,
    get: (itemKey) => store.get(itemKey),
    update: (update) => store.update(update),
  });
  isOver = true;
  return finishedOf(result, unitOfWork);
}

/** A forgotten await. Throwing would end in a promise that nobody looks at, and take the process with it. */
function warnOfLateEffect(log: Log): void {
  const text = 'an effect was added after its handler had returned and is lost: an await is missing';
  log.error({}, text);
  process.emitWarning(text);
}

function finishedOf(result: HandlerResult, unitOfWork: readonly TransactionAction[]): Finished {
  if (result.kind === 'completed') return { ...result, effects: [...unitOfWork, ...(result.effects ?? [])] };
  if (result.kind === 'retry') throw new RetryLater(result.reason, result);
  // Code without types may return anything; what is not understood must not be taken for done.
  if ((result.kind as unknown) === 'rejected') return result;
  throw new TypeError('a handler must return an object with kind completed, rejected or retry');
}

/**
 * What the business makes of a refused commit: only conditions that were false are its matter. Conflicts and throttling
 * pass by themselves, and say nothing about stock.
 */
export function answerToRefusal(error: unknown, { whenRefused }: Completed): Rejected | undefined {
  if (!(error instanceof TransactionCancelledError) || error.mayBeApplied) return undefined;
  const { failedConditions } = error;
  return failedConditions.length === 0 ? undefined : whenRefused?.(failedConditions);
}

export interface TimeLimit {
  /** Aborts with a {@link HandlerTimeoutError} when the time is over. */
  readonly signal: AbortSignal;
  readonly deadlineMs: number;
  cancel(): void;
}

export function startTimeLimit(clock: Clock, timeoutMs: number): TimeLimit {
  const over = new AbortController();
  const cancel = clock.schedule(
    () => {
      over.abort(new HandlerTimeoutError(timeoutMs));
    },
    timeoutMs,
    { background: true },
  );
  return { signal: over.signal, deadlineMs: clock.nowMs() + timeoutMs, cancel };
}

/** Resolves with the handler's result, or rejects at once on abort: a handler that ignores its signal is not waited for. */
export function untilAborted<Result>(signal: AbortSignal, result: Promise<Result>): Promise<Result> {
  return new Promise((resolve, reject) => {
    const onAbort = (): void => {
      reject(signal.reason as Error);
    };
    if (signal.aborted) onAbort();
    signal.addEventListener('abort', onAbort, { once: true });
    result.then(resolve, reject).finally(() => {
      signal.removeEventListener('abort', onAbort);
    });
  });
}
