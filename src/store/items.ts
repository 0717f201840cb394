/**
 * Single items written under a condition. A false condition is an answer that brings the stored item along as plain
 * values, without a second read.
 *
 * A write whose answer was lost may have been applied. It is repeated only where that is harmless; otherwise the caller
 * gets a BackendError with reason `ambiguous`, and reads before doing it again. What DynamoDB surely did not apply
 * (throttled, unreachable, a conflict) is always repeated, a few times.
 */
import { isDeepStrictEqual } from 'node:util';
import { DeleteCommand, PutCommand } from '@aws-sdk/lib-dynamodb';
import { classifyFault } from '../aws-fault.ts';
import { BackendError, ConfigurationError } from '../errors.ts';
import { toBackendError } from './backend-error.ts';
import { conditionalUpdate } from './conditional-update.ts';
import { absent, all, present } from './conditions.ts';
import { readConsistently } from './consistent-read.ts';
import type { StoreContext } from './context.ts';
import { isAccumulating, Placeholders, type Change, type Condition } from './expressions.ts';
import { itemOfFailedCondition } from './plain-item.ts';
import { repeated } from './repeated.ts';
import { asStored, checkKey } from './storable.ts';
import { keyText, type Item, type ItemKey } from './table.ts';

/** What a write under a condition came to. A false condition is an answer, not an error. */
export type WriteAnswer =
  /** Applied; `item` is the item as it is now, undefined after a removal. */
  | { readonly kind: 'written'; readonly item: Item | undefined }
  /** The condition was false and nothing was written; `item` is what is stored, undefined when there is none. */
  | { readonly kind: 'refused'; readonly item: Item | undefined };

/** The condition of a write, what to do when it goes unanswered, and what gives it up. */
export interface ItemWriteOptions {
  readonly condition?: Condition;
  /**
   * What to do when a try goes unanswered: `throw`, or `repeat` where a second application does no harm.
   *
   * A repeat may be refused by our own first try. `written` then says that the table is as was asked for: the very item
   * of `create` and `replace` is stored, the item of `remove` is gone. Another caller with an equal item may have done
   * it; put a nonce into the item where it matters who did. Whatever else refuses a repeat leaves open what became of
   * the first try, and is thrown as `ambiguous`. A change that adds up (`plus`, `minus`, `append`, and with them `spend`
   * and `fill`) would be applied twice: `repeat` is a ConfigurationError with it.
   * @defaultValue throw
   */
  readonly whenUnanswered?: 'throw' | 'repeat';
  /** Gives up, also in the midst of a request: that one may still be applied. */
  readonly signal?: AbortSignal;
}

/** All writes: @throws {BackendError} @throws {ConfigurationError} for keys and values that DynamoDB cannot keep. */
export interface Items {
  /** A strongly consistent read. @throws {BackendError} */
  get(key: ItemKey): Promise<Item | undefined>;
  /** Writes the item only where none has its key. `refused` brings the one that is there. */
  create(item: ItemKey & Item, options?: Omit<ItemWriteOptions, 'condition'>): Promise<WriteAnswer>;
  /**
   * Replaces the whole item, or makes it where the condition holds for none.
   * @throws {ConfigurationError} without a condition: it would overwrite unseen changes.
   */
  replace(item: ItemKey & Item, options: ItemWriteOptions & { readonly condition: Condition }): Promise<WriteAnswer>;
  /** Changes an item that exists. It never makes one: an update of nothing is refused. */
  update(key: ItemKey, change: Change, options?: ItemWriteOptions): Promise<WriteAnswer>;
  /** Removes an item that exists. */
  remove(key: ItemKey, options?: ItemWriteOptions): Promise<WriteAnswer>;
}

export function createItems(context: StoreContext): Items {
  return {
    async get(key) {
      checkKey(key);
      return readConsistently(context, { PK: key.PK, SK: key.SK });
    },
    create: (item, options = {}) => put(context, item, { ...options, condition: absent() }),
    replace: (item, options) => put(context, item, options),
    update: (key, change, options = {}) => update(context, { key, change }, options),
    remove: (key, options = {}) => remove(context, key, options),
  };
}

async function put(context: StoreContext, item: ItemKey & Item, options: ItemWriteOptions): Promise<WriteAnswer> {
  // Those who write JavaScript are not held to it by the compiler.
  if (options.condition === undefined) {
    const rule = 'given: a replacement without one overwrites changes that nobody has seen';
    throw new ConfigurationError('replace', [{ name: 'condition', rule, value: undefined }]);
  }
  const stored = asStored(item);
  const command = new PutCommand({
    TableName: context.target.tableName,
    Item: item,
    ...guard(options.condition),
  });
  return write(context, options, {
    key: item,
    send: (signal) => context.target.client.send(command, signal),
    written: stored,
    isDone: (found) => isDeepStrictEqual(found, stored),
  });
}

async function remove(context: StoreContext, key: ItemKey, options: ItemWriteOptions): Promise<WriteAnswer> {
  checkKey(key);
  const command = new DeleteCommand({
    TableName: context.target.tableName,
    Key: { PK: key.PK, SK: key.SK },
    ...guard(existing(options.condition)),
  });
  return write(context, options, {
    key,
    send: (signal) => context.target.client.send(command, signal),
    written: undefined,
    isDone: (found) => found === undefined,
  });
}

async function update(
  context: StoreContext,
  target: { readonly key: ItemKey; readonly change: Change },
  options: ItemWriteOptions,
): Promise<WriteAnswer> {
  checkKey(target.key);
  if (options.whenUnanswered === 'repeat' && isAccumulating(target.change)) {
    const rule =
      'throw for a change that adds up: use store.counters, or a transaction with a record of what it is for';
    throw new ConfigurationError('update', [{ name: 'whenUnanswered', rule, value: options.whenUnanswered }]);
  }
  const condition = existing(options.condition);
  const request = { ...target, condition, ...(options.signal !== undefined && { signal: options.signal }) };
  const answer = await repeated(context, limitsOf(options), async (wasUnanswered): Promise<Decided> => {
    const answered = await conditionalUpdate(context.target, request);
    if (answered.kind === 'updated') return { kind: 'written', item: answered.item };
    // No part of the item tells whose change it shows: another may have set the same.
    return wasUnanswered ? UNDECIDED : answered;
  });
  return decided(target.key, answer);
}

interface Write {
  readonly key: ItemKey;
  send(options: { readonly abortSignal?: AbortSignal }): Promise<unknown>;
  /** The item once the write was applied. */
  readonly written: Item | undefined;
  /** Whether what is stored is what was asked for. */
  isDone(found: Item | undefined): boolean;
}

async function write(context: StoreContext, options: ItemWriteOptions, request: Write): Promise<WriteAnswer> {
  const answer = await repeated(context, limitsOf(options), async (wasUnanswered): Promise<Decided> => {
    try {
      await request.send(options.signal === undefined ? {} : { abortSignal: options.signal });
      return { kind: 'written', item: request.written };
    } catch (error) {
      if (classifyFault(error) !== 'conditionFailed') throw toBackendError(error);
      const found = itemOfFailedCondition(error);
      if (!wasUnanswered) return { kind: 'refused', item: found };
      return request.isDone(found) ? { kind: 'written', item: found } : UNDECIDED;
    }
  });
  return decided(request.key, answer);
}

function limitsOf({ whenUnanswered, signal }: ItemWriteOptions): Parameters<typeof repeated>[1] {
  return { mayApplyTwice: whenUnanswered === 'repeat', ...(signal !== undefined && { signal }) };
}

function existing(condition: Condition | undefined): Condition {
  return condition === undefined ? present() : all(present(), condition);
}

function guard(condition: Condition) {
  const placeholders = new Placeholders();
  return {
    ConditionExpression: condition(placeholders),
    ...placeholders.fields(),
    ReturnValuesOnConditionCheckFailure: 'ALL_OLD' as const,
  };
}

/** A repeat was refused, perhaps by the try before it. Another repeat would tell no more. */
const UNDECIDED = { kind: 'undecided' } as const;

type Decided = WriteAnswer | typeof UNDECIDED;

function decided(key: ItemKey, answer: Decided): WriteAnswer {
  if (answer.kind !== 'undecided') return answer;
  const message = `a write of ${keyText(key)} went unanswered, and its repeat was refused: by itself, or by another write`;
  throw new BackendError(message, { reason: 'ambiguous', retryable: true });
}
