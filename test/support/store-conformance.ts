/** The two DynamoDBs on which the same behaviour of the store is demanded. */
import { beforeAll, describe } from 'vitest';
import { createMemoryBackend, type MemoryBackend } from '../../src/store/memory/memory-backend.ts';
import { createStore, type Store, type StoreOptions } from '../../src/store/store.ts';
import { LOCAL_ACCESS, useStoreBench, type StoreBench } from './store-bench.ts';

export interface StoreFactory {
  /** Another store on the same table. */
  store(options?: StoreOptions): Store;
  /** A name that no other test uses. */
  unique(prefix: string): string;
}

/** Runs the suite once on the in-memory DynamoDB and once on a local one. */
export function describeOnBoth(title: string, suite: (stores: StoreFactory) => void): void {
  describe.each([
    { name: 'in memory', factory: inMemory },
    { name: 'on a local DynamoDB', factory: onLocal },
  ])(`${title} $name`, ({ factory }) => {
    suite(factory());
  });
}

function inMemory(): StoreFactory {
  const shared: { backend?: MemoryBackend } = {};
  let names = 0;
  const store = (options: StoreOptions = {}): Store => {
    if (shared.backend === undefined) throw new Error('the backend is ready only within a test');
    return createStore({ backend: shared.backend, random: () => 0, ...options });
  };
  beforeAll(async () => {
    shared.backend = createMemoryBackend();
    await store().bootstrap();
  });
  return {
    store,
    unique(prefix) {
      names += 1;
      return `${prefix}-${String(names)}`;
    },
  };
}

function onLocal(): StoreFactory {
  const bench: StoreBench = useStoreBench();
  return {
    // Without the fault transport: these tests are about DynamoDB, not about the way to it.
    store: (options) => bench.store({ ...LOCAL_ACCESS, ...options, endpoint: bench.backendEndpoint }),
    unique: (prefix) => bench.unique(prefix),
  };
}
