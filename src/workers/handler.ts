/** What a user of the library writes: a contract and a function. */
import type { MessageContract, Message } from '../messages/contract.ts';
import type { ConditionalUpdate, UpdateAnswer } from '../store/conditional-update.ts';
import type { Item, ItemKey } from '../store/table.ts';
import type { TransactionAction } from '../store/transactions/transaction.ts';
import type { Log } from '../telemetry/log.ts';

export type HandlerResult =
  /** `effects` are committed together with the record, all or nothing; every duplicate is answered with `response`. */
  | { readonly kind: 'completed'; readonly response: unknown; readonly effects: readonly TransactionAction[] }
  /** The business says no for good. Duplicates get the same answer. */
  | { readonly kind: 'rejected'; readonly reason: string };

export interface StepCall {
  /** The same for every attempt of this step of this key: pass it to the outside system. */
  readonly idempotencyKey: string;
  /** Aborts when the lease or the visibility is lost: give up, the answer will not be used. */
  readonly signal: AbortSignal;
}

export interface StepOptions {
  /** How long the outside system answers a repeated idempotency key with its first answer. Unit: ms. */
  readonly idempotentForMs: number;
}

export interface HandlerContext {
  /** Counts tries of this key, this one included. */
  readonly attempt: number;
  /** Aborts when the lease or the visibility is lost for good. */
  readonly signal: AbortSignal;
  /** Carries key, message id and attempt. */
  readonly log: Log;
  /**
   * Makes one call to an outside system and remembers its result, so that a later attempt does not repeat it.
   * @throws {StepUnknownError} when an earlier attempt may have made the call and the outside system has forgotten its
   * key by now: repeating it could make the effect twice.
   */
  step<Result>(name: string, options: StepOptions, call: (call: StepCall) => Promise<Result>): Promise<Result>;
  /** A strongly consistent read. */
  get(key: ItemKey): Promise<Item | undefined>;
  /**
   * A write outside the transaction: only for what is harmless when it happens without the effects, or twice.
   * @throws {ConfigurationError} for a change that adds up without a condition: it belongs among the effects.
   */
  update(update: ConditionalUpdate): Promise<UpdateAnswer>;
}

export interface Handler<Payload> {
  readonly contract: MessageContract<Payload>;
  /** A method, so that handlers of different payloads fit into one list. */
  handle(message: Message<Payload>, context: HandlerContext): Promise<HandlerResult>;
}
