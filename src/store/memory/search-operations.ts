/** Query and Scan, on a table or on an index, page by page. */
import { ConsumedCapacity, readUnits } from './capacity.ts';
import type { ConditionTree } from './condition-syntax.ts';
import { holds } from './condition-evaluation.ts';
import type { Database } from './database.ts';
import { checkFilter, readKeyCondition, type KeyRange } from './key-condition.ts';
import { keyOf } from './keys.ts';
import type { MemoryTable } from './memory-table.ts';
import { PlaceholderValues } from './placeholder-values.ts';
import { parseProjection } from './projection.ts';
import { checkFields, flagOf, optionalText, textOf, wordOf, type WireRequest } from './request-fields.ts';
import type { Place, Rows } from './rows.ts';
import { invalid } from './service-error.ts';
import { keyAttributes } from './table-definition.ts';
import { mapBytes, parseMap, scalarText, wireMap, type ValueMap } from './values.ts';
import { parseConditionOf } from './write-action.ts';

/** A page ends after this much was read, whatever the filter kept of it. */
const MAX_PAGE_BYTES: number = 1024 * 1024;

const FIELDS = [
  'TableName',
  'IndexName',
  'FilterExpression',
  'ProjectionExpression',
  'ExpressionAttributeNames',
  'ExpressionAttributeValues',
  'ConsistentRead',
  'ExclusiveStartKey',
  'Limit',
  'Select',
  'ReturnConsumedCapacity',
];

export function query(database: Database, request: WireRequest): object {
  checkFields('Query', request, [...FIELDS, 'KeyConditionExpression', 'ScanIndexForward']);
  textOf(request, 'KeyConditionExpression');
  const search = new Search(database, request);
  const placeholders = new PlaceholderValues(request);
  const condition = parseConditionOf(request, 'KeyConditionExpression', placeholders);
  const filter = parseConditionOf(request, 'FilterExpression', placeholders);
  const projection = parseProjection(request, placeholders);
  placeholders.checkAllUsed();
  const range = readKeyCondition(condition, search.rows.schema);
  if (filter !== undefined) checkFilter(filter, search.rows.schema);
  const isForward = flagOf(request, 'ScanIndexForward', true);
  return search.page(inRange(search, range, isForward), { filter, projection });
}

function* inRange(search: Search, range: KeyRange, isForward: boolean): Generator<ValueMap> {
  const { from, rows } = search;
  const partition = scalarText(range.partition);
  if (from !== undefined && from.partition !== partition) {
    throw invalid('The provided starting key is outside query boundaries based on provided conditions');
  }
  for (const item of rows.inPartition(partition, { isForward, ...(from !== undefined && { from }) })) {
    if (range.sort === undefined || holds(range.sort, item)) yield item;
  }
}

export function scan(database: Database, request: WireRequest): object {
  checkFields('Scan', request, FIELDS);
  const search = new Search(database, request);
  const placeholders = new PlaceholderValues(request);
  const filter = parseConditionOf(request, 'FilterExpression', placeholders);
  const projection = parseProjection(request, placeholders);
  placeholders.checkAllUsed();
  return search.page(search.rows.all(search.from), { filter, projection });
}

/** What of that which was read is returned. */
interface Selection {
  readonly filter: ConditionTree | undefined;
  readonly projection: (item: ValueMap) => ValueMap;
}

class Search {
  readonly rows: Rows;
  /** After which place to go on. */
  readonly from: Place | undefined;
  readonly #request: WireRequest;
  readonly #table: MemoryTable;
  readonly #index: string | undefined;
  readonly #limit: number | undefined;
  readonly #isConsistent: boolean;

  constructor(database: Database, request: WireRequest) {
    this.#request = request;
    this.#table = database.table(request);
    this.#index = optionalText(request, 'IndexName');
    this.rows = this.#index === undefined ? this.#table.rows : this.#table.index(this.#index);
    this.#isConsistent = flagOf(request, 'ConsistentRead', false);
    if (this.#isConsistent && this.#index !== undefined) {
      throw invalid('Consistent reads are not supported on global secondary indexes');
    }
    this.#limit = limitOf(request);
    this.from = this.#startPlace();
  }

  /** Reads up to the end of the page; what the filter drops was read all the same. */
  page(found: Iterable<ValueMap>, { filter, projection }: Selection): object {
    const kept: ValueMap[] = [];
    let scanned = 0;
    let bytes = 0;
    let last: ValueMap | undefined;
    for (const item of found) {
      scanned += 1;
      bytes += mapBytes(item);
      if (filter === undefined || holds(filter, item)) kept.push(projection(item));
      if (scanned === this.#limit || bytes > MAX_PAGE_BYTES) {
        last = item;
        break;
      }
    }
    const isCount = wordOf(this.#request, 'Select', ['ALL_ATTRIBUTES', 'COUNT']) === 'COUNT';
    return {
      ...(!isCount && { Items: kept.map(wireMap) }),
      Count: kept.length,
      ScannedCount: scanned,
      ...(last !== undefined && { LastEvaluatedKey: wireMap(this.#keysOf(last)) }),
      ...this.#capacity(bytes),
    };
  }

  #capacity(bytes: number): object {
    const capacity = new ConsumedCapacity(this.#request);
    const units = readUnits(bytes, this.#isConsistent ? 'consistent' : 'eventual');
    const { name } = this.#table.definition;
    if (this.#index === undefined) capacity.add(name, { table: units });
    else capacity.add(name, { table: 0, indexes: new Map([[this.#index, units]]) });
    return capacity.one();
  }

  #startPlace(): Place | undefined {
    const wire = this.#request['ExclusiveStartKey'];
    if (wire === undefined) return undefined;
    const key = parseMap(wire);
    const schemas = [this.rows.schema, this.#table.definition.key];
    const wanted = new Map(schemas.flatMap(keyAttributes).map(({ name, type }) => [name, type]));
    const fits = key.size === wanted.size && [...wanted].every(([name, type]) => key.get(name)?.type === type);
    const place = fits ? this.rows.placeOf(this.#table.idOf(key), key) : undefined;
    if (place === undefined) throw invalid('The provided starting key is invalid');
    return place;
  }

  /** By which the next page starts: the keys of the table and of the index. */
  #keysOf(item: ValueMap): ValueMap {
    return new Map([...keyOf(this.rows.schema, item), ...keyOf(this.#table.definition.key, item)]);
  }
}

function limitOf(request: WireRequest): number | undefined {
  const limit = request['Limit'];
  if (limit === undefined) return undefined;
  if (typeof limit !== 'number' || !Number.isInteger(limit) || limit < 1) {
    throw invalid("Value at 'limit' failed to satisfy constraint: Member must have value greater than or equal to 1");
  }
  return limit;
}
