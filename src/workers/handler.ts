/** What a user of the library writes: a contract and a function. */
import type { MessageContract, Message } from '../messages/contract.ts';
import type { ConditionalUpdate, UpdateAnswer } from '../store/conditional-update.ts';
import type { Item, ItemKey } from '../store/table.ts';
import type { TransactionAction } from '../store/transactions/transaction.ts';
import type { FailedAction } from '../store/transactions/transaction-failures.ts';
import type { Log } from '../telemetry/log.ts';

/** What a handler answers. */
export type HandlerResult = Completed | Rejected | TryAgain;

/** The effects are to be committed together with the record, all or nothing; every duplicate gets `response`. */
export interface Completed {
  readonly kind: 'completed';
  /** As JSON. @defaultValue null */
  readonly response?: unknown;
  /** Besides what was added to `context.transaction`. @defaultValue none */
  readonly effects?: readonly TransactionAction[];
  /**
   * Asked when conditions of effects were false at the commit and nothing was applied: the business's answer to it.
   * @defaultValue none; the message is then dead-lettered as exhausted, since the same commit would be refused again
   */
  readonly whenRefused?: (failures: readonly FailedAction[]) => Rejected | undefined;
}

/** The business says no for good. Duplicates get the same answer; no effect is applied. */
export interface Rejected {
  readonly kind: 'rejected';
  readonly reason: string;
}

/** Not now: nothing is applied, and the message comes back. */
export interface TryAgain {
  readonly kind: 'retry';
  readonly reason: string;
  /** Unit: ms. Range: 0-43200000. @defaultValue the worker's back-off */
  readonly retryAfterMs?: number;
  /** False for waiting that is nobody's fault, such as a message that came before the one it needs. @defaultValue true */
  readonly countsAsAttempt?: boolean;
}

/** What the call of a step is given. */
export interface StepCall {
  /** The same for every attempt of this step of this key: pass it to the outside system. */
  readonly idempotencyKey: string;
  /** Aborts when the lease or the visibility is lost: give up, the answer will not be used. */
  readonly signal: AbortSignal;
}

/** What the outside system says about an earlier call. */
export type Reconciled<Result> =
  | { readonly kind: 'done'; readonly result: Result }
  | { readonly kind: 'notDone' }
  /** It cannot tell, or not yet. */
  | { readonly kind: 'unknown' };

/**
 * How a call that may have been made is told from one that was not. With neither option a call in doubt is parked for an
 * operator (`onlyonce effects resolve`).
 */
export interface StepOptions<Result> {
  /**
   * How long the outside system answers a repeated idempotency key with its first answer; meanwhile the call is repeated.
   * Unit: ms. @defaultValue it does not: the call is marked before it leaves, one more request, and never repeated blindly
   */
  readonly idempotentForMs?: number;
  /** Asks the outside system what became of the call, by the same idempotency key. @defaultValue it cannot be asked */
  readonly reconcile?: (call: StepCall) => Promise<Reconciled<Result>>;
}

/** Writes that are committed together with the effect record, all or nothing. */
export interface UnitOfWork {
  /** At most 99 in all: the record is one more. What is added after the handler has returned is lost, with a warning. */
  add(...actions: readonly TransactionAction[]): void;
}

/** The lease under which a claimed handler works. */
export interface WorkLease {
  /** Grows with each grant: for systems that can refuse an older one. */
  readonly fencingToken: number;
  /** How long it surely lasts, should no renewal come. Unit: ms. */
  remainingMs(): number;
}

/** What a handler is given beside its message. */
export interface HandlerContext {
  /** Counts tries of this key, this one included. For a direct handler: how often the message was received. */
  readonly attempt: number;
  /** Aborts when the lease or the visibility is lost for good, or the time is up. */
  readonly signal: AbortSignal;
  /** When the time is up. Unit: ms since the epoch. */
  readonly deadlineMs: number;
  /** Carries key, message id and attempt. */
  readonly log: Log;
  /** The same for every delivery of this key: for logs, and for outside systems that take one. */
  readonly idempotencyKey: string;
  /** Effects to commit with the record. */
  readonly transaction: UnitOfWork;
  /** Undefined for a direct handler: nothing is claimed before its commit. */
  readonly lease: WorkLease | undefined;
  /**
   * Makes one call to an outside system and remembers its result, so that a later attempt does not repeat it.
   * @param call throws {@link StepRefused} when the outside system has surely done nothing.
   * @throws {StepUnknownError} when an earlier attempt may have made the call, repeating it could make the effect twice,
   * and nobody can be asked.
   * @throws {ConfigurationError} in a direct handler: it runs once for each duplicate, and so would the call.
   */
  readonly step: <Result>(
    name: string,
    call: (call: StepCall) => Promise<Result>,
    options?: StepOptions<Result>,
  ) => Promise<Result>;
  /** A strongly consistent read. */
  get(key: ItemKey): Promise<Item | undefined>;
  /**
   * A write outside the transaction: only for what is harmless when it happens without the effects, or twice.
   * @throws {ConfigurationError} for a change that adds up without a condition: it belongs among the effects.
   */
  update(update: ConditionalUpdate): Promise<UpdateAnswer>;
}

/** What a user writes for one type of message. */
export interface Handler<Payload> {
  readonly contract: MessageContract<Payload>;
  /**
   * How its effects are committed.
   * - `claimed`: the key is claimed before the handler runs, so it runs for one delivery at a time and may make outside
   *   calls as steps. Two requests and more to DynamoDB.
   * - `direct`: the handler runs first, for duplicates too, and one transaction decides. Its effects are DynamoDB writes
   *   only. One request.
   * @defaultValue claimed
   */
  readonly commit?: 'claimed' | 'direct';
  /** A method, so that handlers of different payloads fit into one list. */
  handle(message: Message<Payload>, context: HandlerContext): Promise<HandlerResult>;
}
