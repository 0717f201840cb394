/** A store for unit tests: its DynamoDB is in this process, and its table is there. */
import { TABLE } from '../table.ts';
import { tableDefinition } from '../create-table.ts';
import { createStore, STORE_DEFAULTS, type Store, type StoreOptions } from '../store.ts';
import { createMemoryBackend, type MemoryBackend } from './memory-backend.ts';

/** Where DynamoDB is needs no saying. */
export type MemoryStoreOptions = Omit<StoreOptions, 'backend' | 'endpoint' | 'region' | 'credentials'>;

/** A store together with the DynamoDB in this process that it works on. `close` leaves the items there. */
export interface MemoryStore extends Store {
  /** The DynamoDB behind it: what is stored, and faults on request. */
  readonly backend: MemoryBackend;
}

/**
 * A store on a DynamoDB of its own. Everything above the network is what talks to AWS. For several stores on one
 * DynamoDB, as of several processes: `createStore({ backend: store.backend })`.
 * @throws {ConfigurationError} when an option is wrong; all faults are listed.
 */
export function createMemoryStore(options: MemoryStoreOptions = {}): MemoryStore {
  const backend = createMemoryBackend({
    ...(options.clock !== undefined && { clock: options.clock }),
    tables: [
      { definition: tableDefinition(options.tableName ?? STORE_DEFAULTS.tableName), ttlAttribute: TABLE.ttlAttribute },
    ],
  });
  return { ...createStore({ ...options, backend }), backend };
}
