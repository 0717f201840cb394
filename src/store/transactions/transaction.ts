/**
 * Builds one TransactWriteItems from actions that carry a label, so that a refusal can name what refused it.
 * Building never talks to DynamoDB; `transaction-writer.ts` sends.
 */
import type { TransactWriteCommandInput } from '@aws-sdk/lib-dynamodb';
import { ConfigurationError, type OptionFault } from '../../errors.ts';
import { Placeholders, renderChange, type Change, type Condition } from '../expressions.ts';
import { itemBytes, MAX_ITEM_BYTES } from '../item-size.ts';
import { keyText, type Item, type ItemKey } from '../table.ts';

/** @see AWS: TransactWriteItems */
const MAX_TRANSACTION_ACTIONS = 100;
const MAX_TRANSACTION_BYTES: number = 4 * 1024 * 1024;

interface ActionBase {
  /** Names the action in refusals and logs, for example `ledger entry`. */
  readonly label: string;
  readonly condition?: Condition;
}

export type TransactionAction =
  | (ActionBase & { readonly kind: 'put'; readonly item: ItemKey & Item })
  | (ActionBase & { readonly kind: 'update'; readonly key: ItemKey; readonly change: Change })
  | (ActionBase & { readonly kind: 'delete'; readonly key: ItemKey })
  | (ActionBase & { readonly kind: 'check'; readonly key: ItemKey; readonly condition: Condition });

type TransactItem = NonNullable<TransactWriteCommandInput['TransactItems']>[number];

/**
 * Refuses what DynamoDB would refuse, before anything is sent: no action, more than 100, more than 4 MB, an item over
 * 400 KiB, two actions on one item.
 * @throws {ConfigurationError} with all faults listed by label.
 */
export function checkTransaction(actions: readonly TransactionAction[]): void {
  const faults: OptionFault[] = [];
  if (actions.length === 0 || actions.length > MAX_TRANSACTION_ACTIONS) {
    faults.push({ name: 'actions', rule: `from 1 to ${String(MAX_TRANSACTION_ACTIONS)}`, value: actions.length });
  }
  const labelOfItem = new Map<string, string>();
  let totalBytes = 0;
  for (const action of actions) {
    const item = keyText(keyOf(action));
    const other = labelOfItem.get(item);
    if (other !== undefined) {
      faults.push({ name: action.label, rule: `one action per item, but "${other}" has the same key`, value: item });
    }
    labelOfItem.set(item, action.label);
    const bytes = actionBytes(action);
    if (bytes > MAX_ITEM_BYTES) {
      faults.push({ name: action.label, rule: `an item of at most ${String(MAX_ITEM_BYTES)} bytes`, value: bytes });
    }
    totalBytes += bytes;
  }
  if (totalBytes > MAX_TRANSACTION_BYTES) {
    faults.push({ name: 'size', rule: `at most ${String(MAX_TRANSACTION_BYTES)} bytes in all`, value: totalBytes });
  }
  if (faults.length > 0) throw new ConfigurationError('transaction', faults);
}

/** The request's form of one action. A failed condition always brings the stored item along. */
export function renderAction(action: TransactionAction, tableName: string): TransactItem {
  const placeholders = new Placeholders();
  const change = action.kind === 'update' ? renderChange(action.change, placeholders) : '';
  const condition = action.condition?.(placeholders);
  const base = {
    TableName: tableName,
    ...placeholders.fields(),
    ReturnValuesOnConditionCheckFailure: 'ALL_OLD' as const,
  };
  const guarded = { ...base, ...(condition !== undefined && { ConditionExpression: condition }) };
  switch (action.kind) {
    case 'put':
      return { Put: { ...guarded, Item: action.item } };
    case 'update':
      return { Update: { ...guarded, Key: action.key, UpdateExpression: change } };
    case 'delete':
      return { Delete: { ...guarded, Key: action.key } };
    case 'check':
      return { ConditionCheck: { ...base, Key: action.key, ConditionExpression: condition ?? '' } };
  }
}

function keyOf(action: TransactionAction): ItemKey {
  return action.kind === 'put' ? action.item : action.key;
}

function actionBytes(action: TransactionAction): number {
  if (action.kind === 'put') return itemBytes(action.item);
  const set = action.kind === 'update' ? (action.change.set ?? {}) : {};
  return itemBytes({ ...action.key }) + itemBytes(set);
}
