/** The store: one table and everything that is done with it. */
import { GetCommand, ScanCommand } from '@aws-sdk/lib-dynamodb';
import { systemClock, systemRandom, type Clock, type Random } from '../clock.ts';
import { ConfigurationError } from '../errors.ts';
import { toBackendError } from './backend-error.ts';
import { createDocumentClient, type StoreClientOptions } from './client.ts';
import { repeatedUpdate, type ConditionalUpdate, type UpdateAnswer } from './conditional-update.ts';
import { createTable, type TableReport } from './create-table.ts';
import { createDirectEffects, type DirectEffects } from './effects/direct-effect.ts';
import { createEffectRecords, type EffectRecords } from './effects/effect-record.ts';
import { checkedLeaseOptions, type LeaseOptions } from './leases/lease-options.ts';
import { createLeases, type Leases } from './leases/leases.ts';
import type { Item, ItemKey } from './table.ts';
import { createTransactionWriter, type TransactionWriter } from './transactions/transaction-writer.ts';

export interface StoreOptions extends StoreClientOptions {
  /** @defaultValue onlyonce */
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

export const STORE_DEFAULTS = { tableName: 'onlyonce', recordRetentionDays: 35 } as const;

export interface Store {
  readonly tableName: string;
  /** How long effect records are kept. Unit: days. */
  readonly recordRetentionDays: number;
  readonly clock: Clock;
  readonly random: Random;
  readonly transactions: TransactionWriter;
  /** Creates what is missing; safe to repeat. */
  bootstrap(): Promise<TableReport>;
  /** A strongly consistent read. @throws {BackendError} */
  get(key: ItemKey): Promise<Item | undefined>;
  /** An update that may be repeated: its condition or content must make a second application harmless. */
  update(update: ConditionalUpdate): Promise<UpdateAnswer>;
  /** Every item, page by page, strongly consistent. For verification, not for work. */
  scan(): AsyncGenerator<Item>;
  leases(options?: LeaseOptions): Leases;
  effectRecords(options?: LeaseOptions): EffectRecords;
  /** Effects that are DynamoDB writes only: one request for record and effects. */
  directEffects(options?: LeaseOptions): DirectEffects;
  close(): void;
}

/** @throws {ConfigurationError} when an option is wrong. */
export function createStore(options: StoreOptions = {}): Store {
  const tableName = options.tableName ?? STORE_DEFAULTS.tableName;
  const retentionDays = options.recordRetentionDays ?? STORE_DEFAULTS.recordRetentionDays;
  if (!Number.isInteger(retentionDays) || retentionDays < 1 || retentionDays > 3_650) {
    const rule = 'a whole number from 1 to 3650';
    throw new ConfigurationError('store', [{ name: 'recordRetentionDays', rule, value: retentionDays }]);
  }
  const clock = options.clock ?? systemClock;
  const random = options.random ?? systemRandom;
  const client = createDocumentClient(options);
  // Leases have sockets of their own and one try per request: a renewal must not wait behind work, and repeats itself.
  const leaseClient = createDocumentClient({ ...options, maxAttempts: 1 });
  const transactionClient = createDocumentClient({ ...options, maxAttempts: 1 });
  const transactions = createTransactionWriter({ client: transactionClient, tableName, clock, random });
  const documents = { target: { client, tableName }, clock, random };

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
    bootstrap: () => createTable(client, tableName, clock),
    async get(key) {
      const read = new GetCommand({ TableName: tableName, Key: key, ConsistentRead: true });
      const result = await client.send(read).catch((error: unknown) => {
        throw toBackendError(error);
      });
      return result.Item;
    },
    update: (update) => repeatedUpdate(documents, update),
    async *scan() {
      let from: Item | undefined;
      do {
        const page = await client.send(
          new ScanCommand({ TableName: tableName, ConsistentRead: true, ...(from && { ExclusiveStartKey: from }) }),
        );
        yield* page.Items ?? [];
        from = page.LastEvaluatedKey;
      } while (from !== undefined);
    },
    leases: (lease) => createLeases(leaseDependencies(lease)),
    effectRecords(lease) {
      const deps = leaseDependencies(lease);
      return createEffectRecords({ ...deps, leases: createLeases(deps), transactions, retentionDays });
    },
    directEffects(lease) {
      const { maxClockSkewMs } = checkedLeaseOptions(lease);
      return createDirectEffects({ ...documents, transactions, retentionDays, maxClockSkewMs });
    },
    close() {
      for (const each of [client, leaseClient, transactionClient]) each.destroy();
    },
  };
}
