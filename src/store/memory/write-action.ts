/** One write, alone or within a transaction: read from its request, judged on what is stored, then applied. */
import { parseCondition, type ConditionTree } from './condition-syntax.ts';
import { holds } from './condition-evaluation.ts';
import type { Database } from './database.ts';
import { Tokens } from './expression-tokens.ts';
import { checkIndexLengths, checkIndexTypes, keyOf, parseItem, parseKey } from './keys.ts';
import type { MemoryTable } from './memory-table.ts';
import { PlaceholderValues, type Path } from './placeholder-values.ts';
import { checkFields, optionalText, textOf, wordOf, type WireRequest } from './request-fields.ts';
import { invalid } from './service-error.ts';
import { keyAttributes } from './table-definition.ts';
import { updated } from './update-application.ts';
import { parseUpdate, type UpdateAction } from './update-syntax.ts';
import { mapBytes, type ValueMap } from './values.ts';

export type WriteKind = 'Put' | 'Update' | 'Delete' | 'ConditionCheck';

export interface WriteAction {
  readonly kind: WriteKind;
  readonly table: MemoryTable;
  readonly key: ValueMap;
  readonly condition: ConditionTree | undefined;
  /** The new item of a Put. */
  readonly item: ValueMap | undefined;
  /** What an Update does. */
  readonly changes: readonly UpdateAction[];
  /** Whether a failed condition brings the stored item along. */
  readonly returnsOldOnFailure: boolean;
}

export type Judgement =
  | { readonly kind: 'accepted'; readonly before: ValueMap | undefined; readonly after: ValueMap | undefined }
  | { readonly kind: 'condition failed'; readonly before: ValueMap | undefined };

const MAX_ITEM_BYTES: number = 400 * 1024;

const FIELDS_OF: Readonly<Record<WriteKind, readonly string[]>> = {
  Put: ['Item'],
  Update: ['Key', 'UpdateExpression'],
  Delete: ['Key'],
  ConditionCheck: ['Key'],
};
const SHARED_FIELDS = [
  'TableName',
  'ConditionExpression',
  'ExpressionAttributeNames',
  'ExpressionAttributeValues',
  'ReturnValuesOnConditionCheckFailure',
];

/**
 * @param more further fields that the operation knows.
 * @throws {ServiceError} for everything that is wrong whatever is stored.
 */
export function parseWrite(
  database: Database,
  kind: WriteKind,
  { request, more = [] }: { readonly request: WireRequest; readonly more?: readonly string[] },
): WriteAction {
  checkFields(kind, request, [...SHARED_FIELDS, ...FIELDS_OF[kind], ...more]);
  const onFailure = wordOf(request, 'ReturnValuesOnConditionCheckFailure', ['NONE', 'ALL_OLD']);
  const placeholders = new PlaceholderValues(request);
  const changes = kind === 'Update' ? parseChanges(request, placeholders) : [];
  const condition = parseConditionOf(request, 'ConditionExpression', placeholders);
  if (kind === 'ConditionCheck' && condition === undefined) textOf(request, 'ConditionExpression');
  placeholders.checkAllUsed();
  const table = database.table(request);
  const { definition } = table;
  checkNoKeyChanges(table, changes);
  const item = kind === 'Put' ? parseItem(definition, request['Item']) : undefined;
  if (item !== undefined && mapBytes(item) > MAX_ITEM_BYTES) {
    throw invalid('Item size has exceeded the maximum allowed size');
  }
  const key = item === undefined ? parseKey(definition, request['Key']) : keyOf(definition.key, item);
  return { kind, table, key, condition, item, changes, returnsOldOnFailure: onFailure === 'ALL_OLD' };
}

/** The condition in this field, or undefined where there is none. */
export function parseConditionOf(
  request: WireRequest,
  field: string,
  placeholders: PlaceholderValues,
): ConditionTree | undefined {
  const expression = optionalText(request, field);
  return expression === undefined ? undefined : parseCondition(new Tokens(field, expression), placeholders);
}

function parseChanges(request: WireRequest, placeholders: PlaceholderValues): readonly UpdateAction[] {
  const expression = optionalText(request, 'UpdateExpression');
  return expression === undefined ? [] : parseUpdate(new Tokens('UpdateExpression', expression), placeholders);
}

function checkNoKeyChanges(table: MemoryTable, changes: readonly UpdateAction[]): void {
  const attribute = keyAttributes(table.definition.key).find(({ name }) =>
    changes.some(({ path }) => path[0] === name),
  );
  if (attribute === undefined) return;
  throw invalid(
    `One or more parameter values were invalid: Cannot update attribute ${attribute.name}. This attribute is part of the key`,
  );
}

/**
 * Judges the write on what is stored now, and changes nothing.
 * @throws {ServiceError} ValidationException when the update does not fit the stored item.
 */
export function judge(action: WriteAction): Judgement {
  const before = action.table.get(action.key);
  if (action.item !== undefined) checkIndexTypes(action.table.definition, action.item);
  if (action.condition !== undefined && !holds(action.condition, before ?? new Map())) {
    return { kind: 'condition failed', before };
  }
  switch (action.kind) {
    case 'Put':
      return { kind: 'accepted', before, after: action.item };
    case 'Delete':
      return { kind: 'accepted', before, after: undefined };
    case 'ConditionCheck':
      return { kind: 'accepted', before, after: before };
    case 'Update':
      return { kind: 'accepted', before, after: itemAfterUpdate(action, before) };
  }
}

function itemAfterUpdate(action: WriteAction, before: ValueMap | undefined): ValueMap | undefined {
  const { changes } = action;
  // From an item that does not exist nothing is removed, whatever the path; and it is not made only for that.
  const writing = changes.filter(({ kind }) => kind === 'SET' || kind === 'ADD');
  if (before === undefined && writing.length === 0 && changes.length > 0) return undefined;
  const after = before === undefined ? updated(action.key, writing) : updated(before, changes);
  if (mapBytes(after) > MAX_ITEM_BYTES) throw invalid('Item size to update has exceeded the maximum allowed size');
  checkIndexTypes(action.table.definition, after);
  checkIndexLengths(action.table.definition, after);
  return after;
}

export function apply(action: WriteAction, after: ValueMap | undefined): void {
  if (action.kind !== 'ConditionCheck') action.table.write(action.key, after);
}

/** The paths that an update names. */
export function changedPaths(action: WriteAction): readonly Path[] {
  return action.changes.map(({ path }) => path);
}
