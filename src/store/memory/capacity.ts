/** What requests cost, by AWS's rules. @see AWS: DynamoDB read and write operations, capacity unit consumption */
import { wordOf, type WireRequest } from './request-fields.ts';
import type { Rows } from './rows.ts';
import { areEqual, mapBytes, type ValueMap } from './values.ts';

const WRITE_UNIT_BYTES = 1_024;
const READ_UNIT_BYTES = 4_096;

/** Capacity units of one request on one table. */
export interface Units {
  table: number;
  readonly indexes: Map<string, number>;
}

export type ReadKind = 'eventual' | 'consistent' | 'transactional';

const READ_FACTOR: Readonly<Record<ReadKind, number>> = { eventual: 0.5, consistent: 1, transactional: 2 };

export function writeUnits(bytes: number): number {
  return Math.max(1, Math.ceil(bytes / WRITE_UNIT_BYTES));
}

/** At least one unit is read, even where nothing was found. */
export function readUnits(bytes: number, kind: ReadKind): number {
  return Math.max(1, Math.ceil(bytes / READ_UNIT_BYTES)) * READ_FACTOR[kind];
}

/** An index is written when the item comes, goes or changes in it; when its place changes, twice. */
export function indexUnits(rows: Rows, before: ValueMap | undefined, after: ValueMap | undefined): number {
  const was = before !== undefined && rows.placeOf('', before) !== undefined ? before : undefined;
  const is = after !== undefined && rows.placeOf('', after) !== undefined ? after : undefined;
  if (was === undefined || is === undefined) {
    const item = was ?? is;
    return item === undefined ? 0 : writeUnits(mapBytes(item));
  }
  if (areEqual({ type: 'M', entries: was }, { type: 'M', entries: is })) return 0;
  const keyAttributes = [rows.schema.partition, rows.schema.sort];
  const keepsPlace = keyAttributes.every((attribute) => isUnchanged(attribute?.name, was, is));
  if (keepsPlace) return writeUnits(Math.max(mapBytes(was), mapBytes(is)));
  return writeUnits(mapBytes(was)) + writeUnits(mapBytes(is));
}

function isUnchanged(name: string | undefined, was: ValueMap, is: ValueMap): boolean {
  const [before, after] = [was.get(name ?? ''), is.get(name ?? '')];
  return before === after || (before !== undefined && after !== undefined && areEqual(before, after));
}

/** Adds up the units of one request, by table, and writes them as the request asked for them. */
export class ConsumedCapacity {
  readonly #detail: 'NONE' | 'TOTAL' | 'INDEXES';
  readonly #tables = new Map<string, Units>();

  constructor(request: WireRequest) {
    this.#detail = wordOf(request, 'ReturnConsumedCapacity', ['NONE', 'TOTAL', 'INDEXES']);
  }

  add(table: string, units: { readonly table: number; readonly indexes?: ReadonlyMap<string, number> }): void {
    const known = this.#tables.get(table) ?? { table: 0, indexes: new Map<string, number>() };
    known.table += units.table;
    for (const [name, count] of units.indexes ?? []) known.indexes.set(name, (known.indexes.get(name) ?? 0) + count);
    this.#tables.set(table, known);
  }

  /** The response field for an operation on one table. */
  one(): { ConsumedCapacity?: object } {
    const [first] = this.#wire();
    return first === undefined ? {} : { ConsumedCapacity: first };
  }

  /**
   * The response field for an operation on several tables.
   * @param named transactions name what kind their units are, a second time.
   */
  each(named?: 'ReadCapacityUnits' | 'WriteCapacityUnits'): { ConsumedCapacity?: readonly object[] } {
    return this.#detail === 'NONE' ? {} : { ConsumedCapacity: this.#wire(named) };
  }

  #wire(named?: string): readonly object[] {
    if (this.#detail === 'NONE') return [];
    const counted = (count: number): object => ({ CapacityUnits: count, ...(named && { [named]: count }) });
    return [...this.#tables].map(([TableName, units]) => {
      const total = [...units.indexes.values()].reduce((sum, count) => sum + count, units.table);
      if (this.#detail === 'TOTAL') return { TableName, ...counted(total) };
      const indexes = [...units.indexes].map(([name, count]) => [name, counted(count)] as const);
      return {
        TableName,
        ...counted(total),
        Table: counted(units.table),
        ...(indexes.length > 0 && { GlobalSecondaryIndexes: Object.fromEntries(indexes) }),
      };
    });
  }
}
