/**
 * DynamoDB in this process, for the unit tests of those who use this package: no server, no network, no files.
 *
 * It takes the place of the AWS SDK's HTTP handler, below marshalling, retries and errors. So everything that talks to
 * it is the code that talks to DynamoDB, and only what DynamoDB itself does is done here: by its documentation, and
 * compared with a local DynamoDB by test/store/conformance.
 *
 * Requests are applied one after the other in the order in which they arrive, each at once and as a whole. What is not
 * known here is refused. Memory is bounded by what the test stores.
 *
 * Other than DynamoDB: words that are reserved there are taken as names (this package writes all names as
 * placeholders), and nothing is ever throttled, in conflict or late by itself; `failNext` and `index.hold` do that.
 */
import { randomUUID } from 'node:crypto';
import { systemClock, type Clock } from '../../clock.ts';
import type { InProcessAnswer, InProcessBackend, InProcessOptions, InProcessRequest } from '../client.ts';
import type { Item } from '../table.ts';
import { Database } from './database.ts';
import { brokenConnection, PlannedFaults, refusalOf, type MemoryFault, type MemoryOperation } from './faults.ts';
import { batchGetItem, getItem, writeItem } from './item-operations.ts';
import type { WireRequest } from './request-fields.ts';
import { query, scan } from './search-operations.ts';
import { invalid, ServiceError } from './service-error.ts';
import { transactGetItems, transactWriteItems } from './transactions.ts';
import { expireItems } from './expiry.ts';
import { plainMap } from './plain-values.ts';
import { isRecord } from './values.ts';

/** By which clock an in-memory DynamoDB goes, and which tables it begins with. */
export interface MemoryBackendOptions {
  /** Decides how long request tokens of transactions are remembered. @defaultValue the system's */
  readonly clock?: Clock;
  /** Tables that are there from the start, as CreateTable would be given them. @defaultValue none */
  readonly tables?: readonly { readonly definition: object; readonly ttlAttribute: string }[];
}

/** The DynamoDB of unit tests: hand it to `createStore({ backend })`, look into it, and let its requests fail. */
export interface MemoryBackend extends InProcessBackend {
  /** Every item of every table as plain values; the order has no meaning. For assertions. */
  items(): Item[];
  /**
   * Deletes what TTL would have deleted by then; nothing is ever deleted by itself, as AWS may take days.
   * @param nowMs wall clock. Unit: ms since the epoch.
   * @returns how many items went.
   */
  expire(nowMs: number): number;
  /** The index lags: from `hold` to `release` it knows nothing new. */
  readonly index: { hold(): void; release(): void };
  /**
   * Lets the next requests of an operation fail. Each try of the SDK is a request of its own: it repeats most faults by
   * itself, up to `maxAttempts` times.
   * @param times how many. Range: 1-1000. @defaultValue 1
   * @throws {ConfigurationError} when `times` is out of its range.
   */
  failNext(operation: MemoryOperation, fault: MemoryFault, times?: number): void;
  /** Takes back what `failNext` planned and has not come true. */
  heal(): void;
}

type Operation = (database: Database, request: WireRequest) => object;

const OPERATION_BY_NAME: Readonly<Record<MemoryOperation, Operation>> = {
  GetItem: getItem,
  PutItem: (database, request) => writeItem(database, 'Put', request),
  UpdateItem: (database, request) => writeItem(database, 'Update', request),
  DeleteItem: (database, request) => writeItem(database, 'Delete', request),
  BatchGetItem: batchGetItem,
  Query: query,
  Scan: scan,
  TransactGetItems: transactGetItems,
  TransactWriteItems: transactWriteItems,
  CreateTable: (database, request) => database.createTable(request),
  DescribeTable: (database, request) => database.describeTable(request),
  DescribeTimeToLive: (database, request) => database.describeTimeToLive(request),
  UpdateTimeToLive: (database, request) => database.updateTimeToLive(request),
};

// Taken before any test puts fake timers in its place, under which every request would wait for ever.
const nextTurn: (fn: () => void) => unknown = globalThis.setImmediate;

/**
 * A DynamoDB in this process, empty but for `tables`. For unit tests: it is compared with a local DynamoDB, but keeps
 * nothing beyond the process and never lags or throttles by itself.
 * @throws what CreateTable would refuse a definition of `tables` with.
 */
export function createMemoryBackend(options: MemoryBackendOptions = {}): MemoryBackend {
  const database = new Database(options.clock ?? systemClock);
  for (const { definition, ttlAttribute } of options.tables ?? []) {
    database.createTable({ ...definition }, ttlAttribute);
  }
  const faults = new PlannedFaults();

  async function handle(
    request: InProcessRequest,
    { abortSignal }: InProcessOptions = {},
  ): Promise<{ response: InProcessAnswer }> {
    if (isAborted(abortSignal)) throw aborted();
    const operation = operationOf(request);
    const fault = faults.take(operation);
    const answer = fault === 'lose the request' ? undefined : answerTo(database, operation, { request, fault });
    // An answer takes a turn of the loop, as over a network: others go on meanwhile, and a caller may give up on it.
    await new Promise<void>((resolve) => nextTurn(resolve));
    if (isAborted(abortSignal)) throw aborted();
    if (answer === undefined || fault === 'lose the answer') throw brokenConnection();
    return { response: answer };
  }

  return {
    handle,
    items: () => database.tables.flatMap((table) => [...table.rows.all()].map(plainMap)),
    expire: (nowMs) => database.tables.reduce((sum, table) => sum + expireItems(table, nowMs), 0),
    index: {
      hold: () => database.holdIndexes(),
      release: () => database.releaseIndexes(),
    },
    failNext: (operation, fault, times = 1) => faults.plan(operation, fault, times),
    heal: () => faults.clear(),
  };
}

function answerTo(
  database: Database,
  operation: string,
  { request, fault }: { readonly request: InProcessRequest; readonly fault: MemoryFault | undefined },
): InProcessAnswer {
  try {
    const body = bodyOf(request);
    if (fault === 'throttle' || fault === 'conflict' || fault === 'internal error') {
      const actions = body['TransactItems'];
      throw refusalOf(fault, Array.isArray(actions) ? actions.length : 0);
    }
    return wireAnswer(200, run(database, operation, body));
  } catch (error) {
    if (!(error instanceof ServiceError)) throw error;
    const { type, message, fields, status } = error;
    return wireAnswer(status, { __type: `com.amazonaws.dynamodb.v20120810#${type}`, message, ...fields });
  }
}

function run(database: Database, operation: string, request: WireRequest): object {
  // Not by index: an operation called `constructor` has no place here.
  const known = Object.entries(OPERATION_BY_NAME).find(([name]) => name === operation);
  if (known === undefined) {
    throw new ServiceError('UnknownOperationException', `the in-memory DynamoDB does not know ${operation}`);
  }
  return known[1](database, request);
}

function operationOf(request: InProcessRequest): string {
  const target = Object.entries(request.headers).find(([name]) => name.toLowerCase() === 'x-amz-target')?.[1];
  return target?.split('.').at(-1) ?? '';
}

function bodyOf(request: InProcessRequest): WireRequest {
  const { body } = request;
  const text = body instanceof Uint8Array ? new TextDecoder().decode(body) : body;
  const parsed: unknown = typeof text === 'string' ? JSON.parse(text) : undefined;
  if (!isRecord(parsed)) throw invalid('the request has no body');
  return parsed;
}

function wireAnswer(statusCode: number, body: object): InProcessAnswer {
  return {
    statusCode,
    headers: { 'content-type': 'application/x-amz-json-1.0', 'x-amzn-requestid': randomUUID() },
    body: Buffer.from(JSON.stringify(body)),
  };
}

// A function, because what was false before a wait may be true after it.
function isAborted(signal: InProcessOptions['abortSignal']): boolean {
  return signal?.aborted === true;
}

function aborted(): Error {
  return Object.assign(new Error('Request aborted'), { name: 'AbortError' });
}
