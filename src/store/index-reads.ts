/**
 * Reads by the index. It lags behind the table, by milliseconds mostly and by minutes on a bad day: it finds candidates,
 * and never decides whether a write is safe.
 */
import { QueryCommand } from '@aws-sdk/lib-dynamodb';
import { fullJitterMs } from '../backoff.ts';
import { sleep, type Clock, type Random } from '../clock.ts';
import { ConfigurationError, type OptionFault } from '../errors.ts';
import { toBackendError } from './backend-error.ts';
import { readConsistently } from './consistent-read.ts';
import type { StoreContext } from './context.ts';
import { repeated } from './repeated.ts';
import { TABLE, type Item, type ItemKey } from './table.ts';

/**
 * Which items of the index are asked for: a partition (`GSI1PK`), or what in it has a sort key (`GSI1SK`) that begins
 * so. A wrong query is a ConfigurationError of the first read.
 */
export interface IndexQuery {
  /** 1-2048 bytes. */
  readonly partition: string;
  /** At most 1024 bytes. @defaultValue all of the partition */
  readonly sortKeyBeginsWith?: string;
  /** By the index's sort key. @defaultValue forward */
  readonly direction?: 'forward' | 'backward';
}

/** How often and how patiently a query that finds nothing is repeated. Wrong ones are a ConfigurationError. */
export interface UntilFoundOptions {
  /** Queries at most. Range: 1-100. @defaultValue 6 */
  readonly maxAttempts?: number;
  /** The longest first pause; it doubles with each, up to 2 s, and a random part of it is waited. Unit: ms. Range: 1-10000. @defaultValue 50 */
  readonly baseDelayMs?: number;
  /** Ends the waiting. @throws its reason */
  readonly signal?: AbortSignal;
}

/** What repeated queries came to. `attempts`: queries that were made, from 1. */
export type UntilFoundAnswer =
  /** At most 1000 hits, in the order of the index; {@link IndexReads.query} has all. */
  | { readonly kind: 'found'; readonly items: readonly (Item & ItemKey)[]; readonly attempts: number }
  /** Not in the index yet, or not at all. */
  | { readonly kind: 'notFound'; readonly attempts: number };

/**
 * Candidates by the index, which lags behind the table. What is found decides nothing: recheck it, and write under a
 * condition.
 */
export interface IndexReads {
  /**
   * All hits, page by page. They may be stale or missing.
   * @throws {ConfigurationError} @throws {BackendError}
   */
  query(query: IndexQuery): AsyncGenerator<Item & ItemKey>;
  /**
   * Repeats a query that finds nothing, with growing pauses and a bound. That something is found says nothing about how
   * old it is: {@link IndexReads.recheck} does.
   * @throws {ConfigurationError} @throws {BackendError}
   */
  queryIndexUntilFound(query: IndexQuery, options?: UntilFoundOptions): Promise<UntilFoundAnswer>;
  /**
   * Reads the item itself, consistently, and asks whether the hit still holds, before anything is done about it. What is
   * written then needs a condition all the same: the item may change right after the read.
   * @throws {BackendError}
   */
  recheck(
    hit: ItemKey,
    stillHolds: (item: Item) => boolean,
  ): Promise<
    { readonly kind: 'current'; readonly item: Item } | { readonly kind: 'stale'; readonly item: Item | undefined }
  >;
}

export function createIndexReads(context: StoreContext): IndexReads {
  return {
    query: (wanted) => pagesOf(context, wanted),
    queryIndexUntilFound: (wanted, options) =>
      untilFound(context, () => pagesOf(context, wanted, options?.signal), options),
    async recheck({ PK, SK }, stillHolds) {
      const item = await readConsistently(context, { PK, SK });
      return item !== undefined && stillHolds(item) ? { kind: 'current', item } : { kind: 'stale', item };
    },
  };
}

/** @see AWS: DynamoDB quotas, partition keys and sort keys */
const MAX_KEY_BYTES = { partition: 2_048, sort: 1_024 } as const;

async function* pagesOf(
  context: StoreContext,
  query: IndexQuery,
  signal?: AbortSignal,
): AsyncGenerator<Item & ItemKey> {
  checkQuery(query);
  const { client, tableName } = context.target;
  const { index } = TABLE;
  // DynamoDB refuses an empty text; every sort key begins with it.
  const prefix = query.sortKeyBeginsWith === '' ? undefined : query.sortKeyBeginsWith;
  let from: Item | undefined;
  do {
    const command = new QueryCommand({
      TableName: tableName,
      IndexName: index.name,
      KeyConditionExpression: prefix === undefined ? '#pk = :pk' : '#pk = :pk AND begins_with(#sk, :prefix)',
      ExpressionAttributeNames: { '#pk': index.partitionKey, ...(prefix !== undefined && { '#sk': index.sortKey }) },
      ExpressionAttributeValues: { ':pk': query.partition, ...(prefix !== undefined && { ':prefix': prefix }) },
      ScanIndexForward: query.direction !== 'backward',
      ...(from && { ExclusiveStartKey: from }),
    });
    const page = await repeated(context, { mayApplyTwice: true, ...(signal && { signal }) }, () =>
      client.send(command, signal && { abortSignal: signal }),
    ).catch((error: unknown) => {
      // What ended the request was the caller, and the caller knows why.
      signal?.throwIfAborted();
      throw toBackendError(error);
    });
    yield* (page.Items ?? []).filter(isKeyed);
    from = page.LastEvaluatedKey;
  } while (from !== undefined);
}

const MAX_FOUND = 1_000;
const MAX_PAUSE_MS = 2_000;
const UNTIL_FOUND_DEFAULTS = { maxAttempts: 6, baseDelayMs: 50 } as const;

/** Asks `query` until it has hits; for every kind of index. */
export async function untilFound(
  deps: { readonly clock: Clock; readonly random: Random },
  query: () => AsyncIterable<Item & ItemKey>,
  options: UntilFoundOptions = {},
): Promise<UntilFoundAnswer> {
  const { maxAttempts, baseDelayMs } = checkedOptions(options);
  const { signal } = options;
  for (let attempts = 1; ; attempts += 1) {
    signal?.throwIfAborted();
    const items = await firstOf(query());
    if (items.length > 0) return { kind: 'found', items, attempts };
    if (attempts === maxAttempts) return { kind: 'notFound', attempts };
    const pauseMs = fullJitterMs(attempts, { baseMs: baseDelayMs, capMs: MAX_PAUSE_MS }, deps.random);
    await sleep(deps.clock, pauseMs, signal);
  }
}

async function firstOf(hits: AsyncIterable<Item & ItemKey>): Promise<(Item & ItemKey)[]> {
  const first: (Item & ItemKey)[] = [];
  for await (const hit of hits) {
    first.push(hit);
    if (first.length === MAX_FOUND) break;
  }
  return first;
}

function isKeyed(item: Item): item is Item & ItemKey {
  return typeof item[TABLE.partitionKey] === 'string' && typeof item[TABLE.sortKey] === 'string';
}

function checkQuery({ partition, sortKeyBeginsWith = '' }: IndexQuery): void {
  const faults: OptionFault[] = [];
  const bytes = Buffer.byteLength(partition);
  if (bytes < 1 || bytes > MAX_KEY_BYTES.partition) {
    const rule = `a text of 1 to ${String(MAX_KEY_BYTES.partition)} bytes`;
    faults.push({ name: 'partition', rule, value: partition });
  }
  if (Buffer.byteLength(sortKeyBeginsWith) > MAX_KEY_BYTES.sort) {
    const rule = `a text of at most ${String(MAX_KEY_BYTES.sort)} bytes`;
    faults.push({ name: 'sortKeyBeginsWith', rule, value: sortKeyBeginsWith });
  }
  if (faults.length > 0) throw new ConfigurationError('index query', faults);
}

function checkedOptions(options: UntilFoundOptions): { maxAttempts: number; baseDelayMs: number } {
  const { maxAttempts = UNTIL_FOUND_DEFAULTS.maxAttempts, baseDelayMs = UNTIL_FOUND_DEFAULTS.baseDelayMs } = options;
  const faults: OptionFault[] = [];
  const check = (name: string, value: number, max: number): void => {
    if (Number.isInteger(value) && value >= 1 && value <= max) return;
    faults.push({ name, rule: `a whole number from 1 to ${String(max)}`, value });
  };
  check('maxAttempts', maxAttempts, 100);
  check('baseDelayMs', baseDelayMs, 10_000);
  if (faults.length > 0) throw new ConfigurationError('index query', faults);
  return { maxAttempts, baseDelayMs };
}
