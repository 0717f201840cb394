/** One table and its indexes. An index can be held back, as a real one lags. */
import { indexUnits, writeUnits, type Units } from './capacity.ts';
import { keyText } from './keys.ts';
import { Rows } from './rows.ts';
import { ServiceError } from './service-error.ts';
import type { TableDefinition } from './table-definition.ts';
import { mapBytes, type ValueMap } from './values.ts';

export class MemoryTable {
  readonly definition: TableDefinition;
  /** Undefined while TTL is off. */
  ttlAttribute: string | undefined;
  readonly rows: Rows;
  readonly #indexes: ReadonlyMap<string, Rows>;
  /** What the indexes do not know yet, by key; undefined while they are not held. */
  #pending: Map<string, ValueMap | undefined> | undefined;

  constructor(definition: TableDefinition) {
    this.definition = definition;
    this.rows = new Rows(definition.key);
    this.#indexes = new Map(definition.indexes.map((index) => [index.name, new Rows(index.key)]));
  }

  idOf(key: ValueMap): string {
    return keyText(this.definition.key, key);
  }

  get(key: ValueMap): ValueMap | undefined {
    return this.rows.get(this.idOf(key));
  }

  index(name: string): Rows {
    const rows = this.#indexes.get(name);
    if (rows === undefined) {
      throw new ServiceError('ValidationException', `The table does not have the specified index: ${name}`);
    }
    return rows;
  }

  /** Writes an item or, with undefined, removes it. */
  write(key: ValueMap, item: ValueMap | undefined): void {
    const id = this.idOf(key);
    this.rows.write(id, item);
    if (this.#pending !== undefined) this.#pending.set(id, item);
    else for (const rows of this.#indexes.values()) rows.write(id, item);
  }

  /** What it costs to make `before` into `after`. */
  unitsOfWrite(before: ValueMap | undefined, after: ValueMap | undefined): Units {
    const indexes = new Map<string, number>();
    for (const [name, rows] of this.#indexes) {
      const units = indexUnits(rows, before, after);
      if (units > 0) indexes.set(name, units);
    }
    return { table: writeUnits(Math.max(sizeOf(before), sizeOf(after))), indexes };
  }

  holdIndexes(): void {
    this.#pending ??= new Map();
  }

  releaseIndexes(): void {
    const pending = this.#pending ?? new Map<string, ValueMap | undefined>();
    this.#pending = undefined;
    for (const [id, item] of pending) for (const rows of this.#indexes.values()) rows.write(id, item);
  }
}

function sizeOf(item: ValueMap | undefined): number {
  return item === undefined ? 0 : mapBytes(item);
}
