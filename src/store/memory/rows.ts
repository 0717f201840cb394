/** Items in the order of a key: those of a table, or those that an index has. */
import { createHash } from 'node:crypto';
import { keyAttributes, type KeySchema } from './table-definition.ts';
import { compareValues, isScalar, scalarText, type ScalarValue, type ValueMap } from './values.ts';

/** A place in the order. */
export interface Place {
  readonly partition: string;
  readonly sort: ScalarValue | undefined;
  /** Tells items apart that have the same key in an index: their key in the table. */
  readonly id: string;
}

interface Row {
  readonly place: Place;
  item: ValueMap;
}

export class Rows {
  readonly schema: KeySchema;
  readonly #rows = new Map<string, Row>();
  /** In order; made when asked for, and again after a row came or went. */
  readonly #ordered = new Map<string, readonly Row[]>();
  readonly #partitions = new Map<string, Set<Row>>();

  constructor(schema: KeySchema) {
    this.schema = schema;
  }

  get(id: string): ValueMap | undefined {
    return this.#rows.get(id)?.item;
  }

  /** Writes or, with undefined, removes. An item that lacks a key attribute is not among the rows: an index is sparse. */
  write(id: string, item: ValueMap | undefined): void {
    const known = this.#rows.get(id);
    const place = item === undefined ? undefined : this.placeOf(id, item);
    if (known !== undefined && place !== undefined && item !== undefined && comparePlaces(known.place, place) === 0) {
      known.item = item;
      return;
    }
    if (known !== undefined) this.#remove(known);
    if (item !== undefined && place !== undefined) this.#add({ place, item });
  }

  placeOf(id: string, item: ValueMap): Place | undefined {
    const [partition, sort] = keyAttributes(this.schema).map(({ name }) => item.get(name));
    if (partition === undefined || !isScalar(partition)) return undefined;
    if (this.schema.sort === undefined) return { partition: scalarText(partition), sort: undefined, id };
    return sort === undefined || !isScalar(sort) ? undefined : { partition: scalarText(partition), sort, id };
  }

  /** The items of one partition, in the order of the sort key, those after `from`. */
  *inPartition(partition: string, order: { readonly from?: Place; readonly isForward: boolean }): Generator<ValueMap> {
    const rows = this.#inOrder(partition);
    const sign = order.isForward ? 1 : -1;
    for (const { place, item } of order.isForward ? rows : rows.toReversed()) {
      if (order.from === undefined || comparePlaces(place, order.from) * sign > 0) yield item;
    }
  }

  /** Everything, partition by partition. Their order has no meaning, as on AWS, so that nobody learns to rely on it. */
  *all(from?: Place): Generator<ValueMap> {
    const partitions = [...this.#partitions.keys()].map((partition) => ({ partition, hash: hashOf(partition) }));
    const start = from === undefined ? '' : hashOf(from.partition);
    for (const { partition, hash } of partitions.toSorted((left, right) => (left.hash < right.hash ? -1 : 1))) {
      if (hash < start) continue;
      const within = from !== undefined && hash === start ? { from, isForward: true } : { isForward: true };
      yield* this.inPartition(partition, within);
    }
  }

  #inOrder(partition: string): readonly Row[] {
    const known = this.#ordered.get(partition);
    if (known !== undefined) return known;
    const ordered = [...(this.#partitions.get(partition) ?? [])].toSorted((left, right) =>
      comparePlaces(left.place, right.place),
    );
    this.#ordered.set(partition, ordered);
    return ordered;
  }

  #add(row: Row): void {
    const { id, partition } = row.place;
    this.#rows.set(id, row);
    this.#partitions.set(partition, (this.#partitions.get(partition) ?? new Set()).add(row));
    this.#ordered.delete(partition);
  }

  #remove(row: Row): void {
    const { id, partition } = row.place;
    this.#rows.delete(id);
    this.#ordered.delete(partition);
    const rows = this.#partitions.get(partition);
    rows?.delete(row);
    if (rows?.size === 0) this.#partitions.delete(partition);
  }
}

function comparePlaces(left: Place, right: Place): number {
  if (left.partition !== right.partition) return left.partition < right.partition ? -1 : 1;
  const order = left.sort === undefined || right.sort === undefined ? 0 : (compareValues(left.sort, right.sort) ?? 0);
  if (order !== 0) return order;
  return left.id < right.id ? -1 : Number(left.id > right.id);
}

function hashOf(partition: string): string {
  return createHash('sha256').update(partition).digest('hex');
}
