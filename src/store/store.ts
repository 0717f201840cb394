/** The store: one table and everything that is done with it. */
import { ScanCommand } from '@aws-sdk/lib-dynamodb';
import { systemClock, systemRandom, type Clock, type Random } from '../clock.ts';
import { ConfigurationError, type OptionFault } from '../errors.ts';
import { toBackendError } from './backend-error.ts';
import { readOnce } from './consistent-read.ts';
import { createDocumentClient, type StoreClientOptions } from './client.ts';
import { repeatedUpdate, type ConditionalUpdate, type UpdateAnswer, type UpdateTarget } from './conditional-update.ts';
import { createTable, type TableReport } from './create-table.ts';
import { createDirectEffects, type DirectEffects } from './effects/direct-effect.ts';
import { createEffectRecords, type EffectRecords } from './effects/effect-record.ts';
import { resolveStep, type ResolveAnswer, type StepResolution } from './effects/resolve-step.ts';
import { checkedLeaseOptions, type LeaseOptions } from './leases/lease-options.ts';
import { createLeases, type Leases } from './leases/leases.ts';
import { isAccumulating } from './expressions.ts';
import type { Item, ItemKey } from './table.ts';
import { createIndexReads, type IndexReads } from './index-reads.ts';
import { createItems, type Items } from './items.ts';
import { createLocks, type LockOptions, type Locks } from './locks/locks.ts';
import { createCounters, type Counters } from './counters/counters.ts';
import type { StoreContext } from './context.ts';
import { readSnapshot } from './transactions/snapshot.ts';
import { findOrphans, removeOrphan, type Orphan } from './unique/repair.ts';
import { createUniqueValues, type UniqueConstraint, type UniqueValues } from './unique/unique-constraint.ts';
import { createVersionedItems, type VersionedItems } from './versioned.ts';
import { createTransactionWriter, type TransactionWriter } from './transactions/transaction-writer.ts';

/** How a store reaches its table, and what it keeps. Wrong options are a ConfigurationError of `createStore`. */
export interface StoreOptions extends StoreClientOptions {
  /** From 3 to 255 letters, digits, _, - and dots. @defaultValue onlyonce */
  readonly tableName?: string;
  /**
   * How long an effect record outlives its last write. It must outlast every way a message can come back: 14 days on
   * the queue and 14 more on the dead-letter queue. Unit: days. Range: 1-3650. @defaultValue 35
   */
  readonly recordRetentionDays?: number;
  /** For tests. @defaultValue the system's */
  readonly clock?: Clock;
  /** For tests. @defaultValue the system's */
  readonly random?: Random;
}

/** What `StoreOptions` leave out: `recordRetentionDays` in days. The client's own defaults stand at its options. */
export const STORE_DEFAULTS = { tableName: 'onlyonce', recordRetentionDays: 35 } as const;

/**
 * One table, and everything that is done with it. One store serves a whole process, and any number of processes may
 * work on its table at once.
 */
export interface Store {
  readonly tableName: string;
  /** How long effect records are kept. Unit: days. */
  readonly recordRetentionDays: number;
  readonly clock: Clock;
  readonly random: Random;
  readonly transactions: TransactionWriter;
  /** Creates what is missing; safe to repeat. @throws {BackendError} */
  bootstrap(): Promise<TableReport>;
  /** A strongly consistent read. @throws {BackendError} */
  get(key: ItemKey): Promise<Item | undefined>;
  /**
   * An update that may be repeated: its condition or content must make a second application harmless. A condition does
   * when the first application makes it false, such as `equals('version', seen)`.
   * @throws {ConfigurationError} for a change that adds up (`plus`, `minus`, `append`) without a condition: a lost answer
   * would count twice. `counters` and transactions with a record count once.
   */
  update(update: ConditionalUpdate): Promise<UpdateAnswer>;
  /** Every item, page by page, strongly consistent. For verification, not for work. */
  scan(): AsyncGenerator<Item>;
  /** Single items under conditions. */
  readonly items: Items;
  /** Items with a version. */
  readonly versioned: VersionedItems;
  readonly counters: Counters;
  /** Candidates by the index. */
  readonly index: IndexReads;
  /** Several items as they were at one moment: TransactGetItems. */
  snapshot(keys: readonly ItemKey[]): Promise<(Item | undefined)[]>;
  /** Values that may exist once. */
  unique(constraint: UniqueConstraint): UniqueValues;
  /**
   * Sentinels that no item stands behind.
   * @param constraints those with a rule of their own: without its rule, a value that is spelled otherwise is left alone.
   */
  uniqueOrphans(constraints?: readonly UniqueConstraint[]): AsyncGenerator<Orphan>;
  /** @returns false when it is an orphan no more; nothing was removed then. */
  removeUniqueOrphan(orphan: Orphan, constraints?: readonly UniqueConstraint[]): Promise<boolean>;
  /** Named locks that renew themselves. */
  locks(options?: LockOptions): Locks;
  /** Leases that are renewed by whoever holds them. @throws {ConfigurationError} */
  leases(options?: LeaseOptions): Leases;
  /** The records below workers and effect calls. @throws {ConfigurationError} */
  effectRecords(options?: LeaseOptions): EffectRecords;
  /** An operator's word on a step of which nobody can tell whether it was done. */
  resolveStep(resolution: StepResolution): Promise<ResolveAnswer>;
  /** Effects that are DynamoDB writes only: one request for record and effects. */
  directEffects(options?: LeaseOptions): DirectEffects;
  /** Closes the connections. What is under way may fail; locks are not given back: `locks.close()` comes first. */
  close(): void;
}

/** @throws {ConfigurationError} when an option is wrong. */
export function createStore(options: StoreOptions = {}): Store {
  const tableName = options.tableName ?? STORE_DEFAULTS.tableName;
  const retentionDays = options.recordRetentionDays ?? STORE_DEFAULTS.recordRetentionDays;
  checkStoreOptions(tableName, retentionDays);
  const clock = options.clock ?? systemClock;
  const random = options.random ?? systemRandom;
  const client = createDocumentClient(options);
  // Leases have sockets of their own and one try per request: a renewal must not wait behind work, and repeats itself.
  const leaseClient = createDocumentClient({ ...options, maxAttempts: 1 });
  const transactionClient = createDocumentClient({ ...options, maxAttempts: 1 });
  const transactions = createTransactionWriter({ client: transactionClient, tableName, clock, random });
  const documents = { target: { client, tableName }, clock, random };
  const context: StoreContext = { target: { client: transactionClient, tableName }, transactions, clock, random };
  const leaseContext: StoreContext = { ...context, target: { client: leaseClient, tableName } };

  const leaseDependencies = (lease: LeaseOptions = {}) => ({
    target: { client: leaseClient, tableName },
    clock,
    random,
    lease: checkedLeaseOptions(lease),
  });

  return {
    tableName,
    recordRetentionDays: retentionDays,
    clock,
    random,
    transactions,
    async bootstrap() {
      return createTable(client, tableName, clock).catch(thrownAsBackendError);
    },
    ...consistentReads(documents.target),
    async update(update) {
      refuseUnguardedSum(update);
      return repeatedUpdate(documents, update);
    },
    ...tools(context, retentionDays),
    locks: (lock) => createLocks(leaseContext, lock),
    leases: (lease) => createLeases(leaseDependencies(lease)),
    effectRecords(lease) {
      const deps = leaseDependencies(lease);
      return createEffectRecords({ ...deps, leases: createLeases(deps), transactions, retentionDays });
    },
    resolveStep: (resolution) => resolveStep(documents, resolution),
    directEffects(lease) {
      const { maxClockSkewMs } = checkedLeaseOptions(lease);
      return createDirectEffects({ ...documents, transactions, retentionDays, maxClockSkewMs });
    },
    close() {
      for (const each of [client, leaseClient, transactionClient]) each.destroy();
    },
  };
}

/** @see AWS: Naming rules, tables */
const TABLE_NAME = /^[\w.-]{3,255}$/;

function checkStoreOptions(tableName: unknown, retentionDays: number): void {
  const faults: OptionFault[] = [];
  if (typeof tableName !== 'string' || !TABLE_NAME.test(tableName)) {
    const rule = 'from 3 to 255 letters, digits, _, - and dots';
    faults.push({ name: 'tableName', rule, value: tableName });
  }
  if (!Number.isInteger(retentionDays) || retentionDays < 1 || retentionDays > 3_650) {
    faults.push({ name: 'recordRetentionDays', rule: 'a whole number from 1 to 3650', value: retentionDays });
  }
  if (faults.length > 0) throw new ConfigurationError('store', faults);
}

function refuseUnguardedSum({ change, condition }: ConditionalUpdate): void {
  if (condition !== undefined || !isAccumulating(change)) return;
  const rule =
    'given for a change that adds up, and false once it is applied: without one a lost answer counts twice. ' +
    'Use store.counters, or a transaction with a record of what it is for';
  throw new ConfigurationError('update', [{ name: 'condition', rule, value: condition }]);
}

function thrownAsBackendError(error: unknown): never {
  throw toBackendError(error);
}

function consistentReads(target: UpdateTarget): Pick<Store, 'get' | 'scan'> {
  const { client, tableName } = target;
  return {
    get: (key) => readOnce(target, key),
    async *scan() {
      let from: Item | undefined;
      do {
        const start = from === undefined ? {} : { ExclusiveStartKey: from };
        const read = new ScanCommand({ TableName: tableName, ConsistentRead: true, ...start });
        const page = await client.send(read).catch(thrownAsBackendError);
        yield* page.Items ?? [];
        from = page.LastEvaluatedKey;
      } while (from !== undefined);
    },
  };
}

type Tools =
  'items' | 'versioned' | 'counters' | 'index' | 'snapshot' | 'unique' | 'uniqueOrphans' | 'removeUniqueOrphan';

function tools(context: StoreContext, retentionDays: number): Pick<Store, Tools> {
  return {
    items: createItems(context),
    versioned: createVersionedItems(context),
    counters: createCounters(context, { retentionDays }),
    index: createIndexReads(context),
    snapshot: (keys) => readSnapshot(context, keys),
    unique: (constraint) => createUniqueValues(context, constraint),
    uniqueOrphans: (constraints) => findOrphans(context, constraints),
    removeUniqueOrphan: (orphan, constraints) => removeOrphan(context, orphan, constraints),
  };
}
