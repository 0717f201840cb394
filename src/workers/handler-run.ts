/** Runs a handler on one delivery: what it is given, and what it may answer. */
import type { Message } from '../messages/contract.ts';
import { idempotencyKeyOf } from '../store/effects/idempotency-key.ts';
import type { TransactionAction } from '../store/transactions/transaction.ts';
import { TransactionCancelledError } from '../store/transactions/transaction-failures.ts';
import { withFields, type Log } from '../telemetry/log.ts';
import type { Completed, Handler, HandlerContext, HandlerResult, Rejected } from './handler.ts';
import { RetryLater } from './retry.ts';
import type { WorkContext } from './work-context.ts';

/** What a handler made, ready to be committed: the unit of work is part of its effects. */
export type Finished = Rejected | (Completed & { readonly effects: readonly TransactionAction[] });

/** What differs between a claimed handler and a direct one. */
export interface RunContext
  extends WorkContext, Pick<HandlerContext, 'attempt' | 'signal' | 'deadlineMs' | 'lease' | 'step'> {}

/**
 * @throws {RetryLater} when the handler says "not now".
 * @throws what the handler throws.
 */
export async function runHandler(handler: Handler<unknown>, message: Message, context: RunContext): Promise<Finished> {
  const { attempt, signal, deadlineMs, lease, step } = context;
  const { queue, store, log: workerLog } = context.deps.options;
  const unitOfWork: TransactionAction[] = [];
  const { key } = message;
  const log = withFields(workerLog, { key, messageId: context.delivery.messageId, attempt });
  let isOver = false;
  const result = await handler.handle(message, {
    attempt,
    signal,
    deadlineMs,
    lease,
    step,
    log,
    idempotencyKey: idempotencyKeyOf(queue, key, ''),
    transaction: {
      add: (...actions) => {
        if (isOver) warnOfLateEffect(log);
        else unitOfWork.push(...actions);
      },
    },
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
