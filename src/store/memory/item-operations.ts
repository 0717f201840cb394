/** PutItem, UpdateItem, DeleteItem, GetItem and BatchGetItem. */
import { ConsumedCapacity, readUnits, type ReadKind } from './capacity.ts';
import type { Database } from './database.ts';
import { onlyAt } from './document-path.ts';
import type { MemoryTable } from './memory-table.ts';
import { parseKey } from './keys.ts';
import { PlaceholderValues } from './placeholder-values.ts';
import { parseProjection } from './projection.ts';
import { checkFields, flagOf, recordOf, recordsOf, wordOf, type WireRequest } from './request-fields.ts';
import { invalid, ServiceError } from './service-error.ts';
import { isRecord, mapBytes, wireMap, type ValueMap } from './values.ts';
import { apply, changedPaths, judge, parseWrite, type WriteAction } from './write-action.ts';

const WRITE_FIELDS = ['ReturnValues', 'ReturnConsumedCapacity'];
export const PROJECTION_FIELDS: readonly string[] = ['ProjectionExpression', 'ExpressionAttributeNames'];
const MAX_BATCH_KEYS = 100;
const MAX_BATCH_BYTES = 16 * 1024 * 1024;

type ReturnValues = 'NONE' | 'ALL_OLD' | 'ALL_NEW' | 'UPDATED_OLD' | 'UPDATED_NEW';

export function writeItem(database: Database, kind: 'Put' | 'Update' | 'Delete', request: WireRequest): object {
  const returned = returnValuesOf(kind, request);
  const capacity = new ConsumedCapacity(request);
  const action = parseWrite(database, kind, { request, more: WRITE_FIELDS });
  const judgement = judge(action);
  if (judgement.kind === 'condition failed') throw conditionFailed(action, judgement.before);
  const { before, after } = judgement;
  capacity.add(action.table.definition.name, action.table.unitsOfWrite(before, after));
  apply(action, after);
  const attributes = attributesOf(returned, action, { before, after });
  return { ...(attributes.size > 0 && { Attributes: wireMap(attributes) }), ...capacity.one() };
}

function returnValuesOf(kind: 'Put' | 'Update' | 'Delete', request: WireRequest): ReturnValues {
  if (kind !== 'Update') return wordOf(request, 'ReturnValues', ['NONE', 'ALL_OLD']);
  return wordOf(request, 'ReturnValues', ['NONE', 'ALL_OLD', 'ALL_NEW', 'UPDATED_OLD', 'UPDATED_NEW']);
}

function conditionFailed(action: WriteAction, before: ValueMap | undefined): ServiceError {
  const brings = action.returnsOldOnFailure && before !== undefined;
  return new ServiceError('ConditionalCheckFailedException', 'The conditional request failed', {
    fields: brings ? { Item: wireMap(before) } : {},
  });
}

function attributesOf(
  returned: ReturnValues,
  action: WriteAction,
  { before = new Map(), after = new Map() }: Readonly<Record<'before' | 'after', ValueMap | undefined>>,
): ValueMap {
  switch (returned) {
    case 'NONE':
      return new Map();
    case 'ALL_OLD':
      return before;
    case 'ALL_NEW':
      return after;
    case 'UPDATED_OLD':
      return onlyAt(before, changedPaths(action));
    case 'UPDATED_NEW':
      return onlyAt(after, changedPaths(action));
  }
}

export function getItem(database: Database, request: WireRequest): object {
  checkFields('GetItem', request, [
    'TableName',
    'Key',
    'ConsistentRead',
    'ReturnConsumedCapacity',
    ...PROJECTION_FIELDS,
  ]);
  const capacity = new ConsumedCapacity(request);
  const kind = flagOf(request, 'ConsistentRead', false) ? 'consistent' : 'eventual';
  const projection = projectionOf(request);
  const table = database.table(request);
  const item = table.get(parseKey(table.definition, request['Key']));
  capacity.add(table.definition.name, { table: readUnits(item === undefined ? 0 : mapBytes(item), kind) });
  return { ...(item !== undefined && { Item: wireMap(projection(item)) }), ...capacity.one() };
}

/** For reads whose only expression it is. */
export function projectionOf(request: WireRequest): (item: ValueMap) => ValueMap {
  const placeholders = new PlaceholderValues(request);
  const projection = parseProjection(request, placeholders);
  placeholders.checkAllUsed();
  return projection;
}

export function batchGetItem(database: Database, request: WireRequest): object {
  checkFields('BatchGetItem', request, ['RequestItems', 'ReturnConsumedCapacity']);
  const capacity = new ConsumedCapacity(request);
  const wanted = Object.entries(recordOf(request, 'RequestItems')).map(([name, each]) =>
    parseWanted(database, name, each),
  );
  const total = wanted.reduce((sum, { keys }) => sum + keys.length, 0);
  if (total === 0 || total > MAX_BATCH_KEYS) throw invalid('Too many items requested for the BatchGetItem call');
  const responses: [string, object[]][] = [];
  const unprocessed: [string, object][] = [];
  let bytes = 0;
  for (const { table, wire, keys, kind, projection } of wanted) {
    const { name } = table.definition;
    const found: object[] = [];
    const left: unknown[] = [];
    for (const { wireKey, key } of keys) {
      const item = table.get(key);
      const size = item === undefined ? 0 : mapBytes(item);
      if (bytes + size > MAX_BATCH_BYTES) {
        left.push(wireKey);
        continue;
      }
      bytes += size;
      capacity.add(name, { table: readUnits(size, kind) });
      if (item !== undefined) found.push(wireMap(projection(item)));
    }
    responses.push([name, found]);
    if (left.length > 0) unprocessed.push([name, { ...wire, Keys: left }]);
  }
  return {
    Responses: Object.fromEntries(responses),
    UnprocessedKeys: Object.fromEntries(unprocessed),
    ...capacity.each(),
  };
}

interface WantedOfTable {
  readonly table: MemoryTable;
  readonly wire: WireRequest;
  readonly keys: readonly { readonly wireKey: unknown; readonly key: ValueMap }[];
  readonly kind: ReadKind;
  readonly projection: (item: ValueMap) => ValueMap;
}

function parseWanted(database: Database, TableName: string, wire: unknown): WantedOfTable {
  if (!isRecord(wire)) throw invalid('RequestItems must hold maps');
  checkFields('BatchGetItem', wire, ['Keys', 'ConsistentRead', ...PROJECTION_FIELDS]);
  const projection = projectionOf(wire);
  const table = database.table({ TableName });
  const keys = recordsOf(wire, 'Keys', { min: 1, max: MAX_BATCH_KEYS }).map((wireKey) => ({
    wireKey,
    key: parseKey(table.definition, wireKey),
  }));
  if (new Set(keys.map(({ key }) => table.idOf(key))).size < keys.length) {
    throw invalid('Provided list of item keys contains duplicates');
  }
  return { table, wire, keys, kind: flagOf(wire, 'ConsistentRead', false) ? 'consistent' : 'eventual', projection };
}
