/**
 * An index that lags on command: local backends update theirs at once, so that code which trusts an index works there
 * and fails in production. For tests and walk-throughs, on any store.
 */
import type { Clock, Random } from '../clock.ts';
import { untilFound, type IndexQuery, type IndexReads } from './index-reads.ts';
import { TABLE, type Item, type ItemKey } from './table.ts';

/** A store, or what does the same. */
export interface LagSource {
  readonly index: IndexReads;
  readonly clock: Clock;
  readonly random: Random;
  /** Every item, strongly consistent. */
  scan(): AsyncIterable<Item>;
}

/** Index reads whose lag is commanded. Queries lag, rechecks never do. */
export interface LaggingIndex extends IndexReads {
  /** From now on queries answer as the table is at this moment. Once more: as it is by then. */
  fallBehind(): Promise<void>;
  /**
   * Ends the lag.
   * @param afterQueries so many more queries are still answered from the past. @defaultValue 0
   */
  catchUp(afterQueries?: number): void;
}

/** Answers like `source.index` until told to fall behind. `recheck` always reads the table. */
export function laggingIndex(source: LagSource): LaggingIndex {
  let past: readonly IndexEntry[] | undefined;
  let queriesLeft = Infinity;

  function query(wanted: IndexQuery): AsyncGenerator<Item & ItemKey> {
    if (queriesLeft <= 0) past = undefined;
    queriesLeft -= 1;
    return past === undefined ? source.index.query(wanted) : answerFrom(past, wanted);
  }

  return {
    query,
    queryIndexUntilFound: (wanted, options) => untilFound(source, () => query(wanted), options),
    recheck: (hit, stillHolds) => source.index.recheck(hit, stillHolds),
    async fallBehind() {
      const entries: IndexEntry[] = [];
      for await (const item of source.scan()) {
        const entry = entryOf(item);
        if (entry !== undefined) entries.push(entry);
      }
      past = entries;
      queriesLeft = Infinity;
    },
    catchUp(afterQueries = 0) {
      queriesLeft = afterQueries;
    },
  };
}

interface IndexEntry {
  readonly partition: string;
  readonly sort: string;
  readonly item: Item & ItemKey;
}

/** An index is sparse: it holds what has both its keys. */
function entryOf(item: Item): IndexEntry | undefined {
  const { [TABLE.index.partitionKey]: partition, [TABLE.index.sortKey]: sort, PK, SK } = item;
  if (typeof partition !== 'string' || typeof sort !== 'string') return undefined;
  if (typeof PK !== 'string' || typeof SK !== 'string') return undefined;
  return { partition, sort, item: { ...item, PK, SK } };
}

// A generator for its type alone: what it yields is there already.
async function* answerFrom(past: readonly IndexEntry[], wanted: IndexQuery): AsyncGenerator<Item & ItemKey> {
  const { partition, sortKeyBeginsWith = '', direction = 'forward' } = wanted;
  const hits = past
    .filter((entry) => entry.partition === partition && entry.sort.startsWith(sortKeyBeginsWith))
    // By bytes, as DynamoDB orders texts.
    .toSorted((left, right) => Buffer.compare(Buffer.from(left.sort), Buffer.from(right.sort)));
  if (direction === 'backward') hits.reverse();
  yield* await Promise.resolve(hits.map(({ item }) => structuredClone(item)));
}
