/**
 * Builds one TransactWriteItems from actions that carry a label, so that a refusal can name what refused it.
 * Building never talks to DynamoDB; `transaction-writer.ts` sends.
 */
import type { TransactWriteCommandInput } from '@aws-sdk/lib-dynamodb';
import { ConfigurationError, type OptionFault } from '../../errors.ts';
import { Placeholders, renderChange, type Change, type Condition } from '../expressions.ts';
import { itemBytes } from '../item-size.ts';
import { faultOfSize, faultsOfItem, faultsOfKey } from '../storable.ts';
import { keyText, type Item, type ItemKey } from '../table.ts';

/** @see AWS: TransactWriteItems */
const MAX_TRANSACTION_ACTIONS = 100;
const MAX_TRANSACTION_BYTES: number = 4 * 1024 * 1024;

/** What the refusal of an action means; see `transaction-failures.ts` for which one wins. */
export type ActionRole =
  /**
   * The record that this transaction was applied: applying it makes this action's own condition false. Refused: done
   * before, by us or another. Not refused: this transaction was not applied yet.
   */
  | 'record'
  /** The right to write. Refused: another has it, or we gave it back. */
  | 'fence'
  /** A value that may exist once. Refused: it is taken. */
  | 'unique';

interface ActionBase {
  /**
   * Names the action in refusals and logs, for example `ledger entry`. Several may have the same one (the lines of an
   * order): what must be told apart is told apart by its place or role.
   */
  readonly label: string;
  /** Only with a condition: without one nothing could refuse the action. @defaultValue none */
  readonly role?: ActionRole;
  readonly condition?: Condition;
}

/**
 * One write or check of a transaction. `put` replaces the whole item, `update` makes it where there is none, `delete` of
 * nothing succeeds, unless a condition says otherwise; `check` writes nothing.
 */
export type TransactionAction =
  | (ActionBase & { readonly kind: 'put'; readonly item: ItemKey & Item })
  | (ActionBase & { readonly kind: 'update'; readonly key: ItemKey; readonly change: Change })
  | (ActionBase & { readonly kind: 'delete'; readonly key: ItemKey })
  | (ActionBase & { readonly kind: 'check'; readonly key: ItemKey; readonly condition: Condition });

type TransactItem = NonNullable<TransactWriteCommandInput['TransactItems']>[number];

/**
 * Refuses what DynamoDB would refuse, before anything is sent: no action, more than 100, more than 4 MB, an item over
 * 400 KiB, two actions on one item, a change that changes nothing, values that cannot be kept; and a role without a
 * condition, whose action would tell nothing about a try without an answer.
 * @throws {ConfigurationError} with all faults listed by label.
 */
export function checkTransaction(actions: readonly TransactionAction[]): void {
  checkShapes(actions);
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
    const found = faultsOfAction(action);
    if (found.length === 0) {
      // Only what can be kept can be measured.
      const bytes = actionBytes(action);
      found.push(...[faultOfSize(action.label, bytes)].filter((fault) => fault !== undefined));
      totalBytes += bytes;
    }
    faults.push(...found);
  }
  if (totalBytes > MAX_TRANSACTION_BYTES) {
    faults.push({ name: 'size', rule: `at most ${String(MAX_TRANSACTION_BYTES)} bytes in all`, value: totalBytes });
  }
  if (faults.length > 0) throw new ConfigurationError('transaction', faults);
}

const KINDS: readonly unknown[] = ['put', 'update', 'delete', 'check'] satisfies TransactionAction['kind'][];

/**
 * Refuses what is no action at all, such as a list of actions in the place of one.
 * @throws {ConfigurationError} naming each by its place.
 */
export function checkShapes(actions: readonly unknown[]): void {
  const faults = actions.flatMap((action, index): OptionFault[] => {
    if (isAction(action)) return [];
    const value = Array.isArray(action) ? 'a list' : action;
    return [{ name: `action ${String(index)}`, rule: 'one action: a put, an update, a delete or a check', value }];
  });
  if (faults.length > 0) throw new ConfigurationError('transaction', faults);
}

function isAction(action: unknown): boolean {
  if (!isObject(action) || !('kind' in action) || !KINDS.includes(action.kind)) return false;
  if (action.kind === 'put') return 'item' in action && isObject(action.item);
  if (action.kind === 'update' && !('change' in action && isObject(action.change))) return false;
  return 'key' in action && isObject(action.key);
}

function isObject(value: unknown): value is object {
  return typeof value === 'object' && value !== null;
}

/**
 * The request's form of one action. A failed condition always brings the stored item along.
 * @throws {ConfigurationError} when its condition or change cannot be sent.
 */
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
      return { Update: { ...guarded, Key: keyOf(action), UpdateExpression: change } };
    case 'delete':
      return { Delete: { ...guarded, Key: keyOf(action) } };
    case 'check':
      return { ConditionCheck: { ...base, Key: keyOf(action), ConditionExpression: condition ?? '' } };
  }
}

/** The key alone: whole items are often handed in where a key is asked for. */
function keyOf(action: TransactionAction): ItemKey {
  const { PK, SK } = action.kind === 'put' ? action.item : action.key;
  return { PK, SK };
}

function faultsOfAction(action: TransactionAction): OptionFault[] {
  const found = action.kind === 'put' ? faultsOfItem(action.item) : faultsOfKey(action.key);
  if (action.role !== undefined && action.condition === undefined) {
    const rule = `given with the role ${action.role}: without one it is never refused, and tells nothing`;
    found.push({ name: 'condition', rule, value: action.condition });
  }
  try {
    renderAction(action, '');
  } catch (error) {
    if (!(error instanceof ConfigurationError)) throw error;
    found.push(...error.faults);
  }
  return found.map(({ name, rule, value }) => ({ name: action.label, rule: `${name}: ${rule}`, value }));
}

function actionBytes(action: TransactionAction): number {
  if (action.kind === 'put') return itemBytes(action.item);
  const set = action.kind === 'update' ? (action.change.set ?? {}) : {};
  return itemBytes({ ...keyOf(action) }) + itemBytes(set);
}
