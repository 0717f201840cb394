/** One UpdateItem with a condition whose failure is an answer that brings the stored item along: no second read. */
import { UpdateCommand, type DynamoDBDocumentClient } from '@aws-sdk/lib-dynamodb';
import { classifyFault } from '../aws-fault.ts';
import type { Clock, Random } from '../clock.ts';
import { BackendError } from '../errors.ts';
import { toBackendError } from './backend-error.ts';
import { Placeholders, renderChange, type Change, type Condition } from './expressions.ts';
import { itemOfFailedCondition } from './plain-item.ts';
import { repeated } from './repeated.ts';
import type { Item, ItemKey } from './table.ts';

export interface UpdateTarget {
  readonly client: DynamoDBDocumentClient;
  readonly tableName: string;
}

/** An update of one item, and what must hold for it. */
export interface ConditionalUpdate {
  readonly key: ItemKey;
  readonly change: Change;
  /** @defaultValue none: the update is applied whatever is stored */
  readonly condition?: Condition;
  readonly signal?: AbortSignal;
}

/** What became of a conditional update. */
export type UpdateAnswer =
  /** Applied; `item` is the item as it is now. */
  | { readonly kind: 'updated'; readonly item: Item }
  /** The condition was false; `item` is what is stored, undefined when there is none. */
  | { readonly kind: 'refused'; readonly item: Item | undefined };

/**
 * @throws {BackendError} for everything but a failed condition. When the SDK repeated the request after a lost answer,
 * `refused` may mean that our own first try landed: callers tell by the owner nonce on the item.
 * @throws {ConfigurationError} when the change or the condition cannot be sent.
 */
export async function conditionalUpdate(target: UpdateTarget, update: ConditionalUpdate): Promise<UpdateAnswer> {
  const placeholders = new Placeholders();
  const updateExpression = renderChange(update.change, placeholders);
  const condition = update.condition?.(placeholders);
  const command = new UpdateCommand({
    TableName: target.tableName,
    Key: { PK: update.key.PK, SK: update.key.SK },
    UpdateExpression: updateExpression,
    ...(condition !== undefined && { ConditionExpression: condition }),
    ...placeholders.fields(),
    ReturnValues: 'ALL_NEW',
    ReturnValuesOnConditionCheckFailure: 'ALL_OLD',
  });
  try {
    const options = update.signal === undefined ? {} : { abortSignal: update.signal };
    const result = await target.client.send(command, options);
    return { kind: 'updated', item: updatedItem(result.Attributes) };
  } catch (error) {
    if (classifyFault(error) !== 'conditionFailed') throw toBackendError(error);
    return { kind: 'refused', item: itemOfFailedCondition(error) };
  }
}

/** An item always has its key. An answer without it is none of DynamoDB's, and says nothing about the update. */
function updatedItem(attributes: Item | undefined): Item {
  if (attributes?.['PK'] !== undefined) return attributes;
  const message = 'DynamoDB: the answer to an update came without the item that was asked for';
  throw new BackendError(message, { reason: 'ambiguous', retryable: true });
}

/**
 * The same update, repeated on passing faults. Only for updates that may be applied twice without harm: those
 * conditioned on a nonce that the first try changes, or that write the same again.
 * @throws {BackendError} the first one that leaves open whether the update was applied, else that of the last try.
 */
export async function repeatedUpdate(
  deps: { readonly target: UpdateTarget; readonly clock: Clock; readonly random: Random },
  update: ConditionalUpdate,
): Promise<UpdateAnswer> {
  const limits = { mayApplyTwice: true, ...(update.signal !== undefined && { signal: update.signal }) };
  return repeated(deps, limits, () => conditionalUpdate(deps.target, update));
}
