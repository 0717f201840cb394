/** What the tests of the store stand on: one real backend per file, with a fault transport in front of it. */
import { afterAll, afterEach, beforeAll } from 'vitest';
import { createStore, type Store, type StoreOptions } from '../../src/store/store.ts';
import type { Child } from '../../src/local/child-process.ts';
import { loadCompanion } from '../../src/local/companion.ts';
import { findDynoxide, startDynoxide } from '../../src/local/dynoxide.ts';
import { startStoreTransport, type StoreTransport } from './store-transport.ts';

export const LOCAL_ACCESS = {
  region: 'us-east-1',
  credentials: { accessKeyId: 'test', secretAccessKey: 'test' },
} as const;

export interface StoreBench {
  /** In front of the backend; faults are injected here. */
  readonly transport: StoreTransport;
  /** The backend itself, without faults. */
  readonly backendEndpoint: string;
  /** A store that speaks through the transport. It is closed after the test. */
  store(options?: StoreOptions): Store;
  /** A store that no fault reaches, to look at what is stored. */
  readonly truth: Store;
  /** A fresh name, so that tests of one file never meet. */
  unique(prefix: string): string;
}

/** Call at the top of a test file. */
export function useStoreBench(): StoreBench {
  const started: { child?: Child; transport?: StoreTransport; truth?: Store; endpoint?: string } = {};
  const open: Store[] = [];
  let names = 0;

  beforeAll(async () => {
    const binary = findDynoxide((await loadCompanion()).dynoxideBinary());
    const { child, port } = await startDynoxide({ binary, port: undefined, deadlineMs: 10_000 });
    started.child = child;
    started.endpoint = `http://127.0.0.1:${String(port)}`;
    started.transport = await startStoreTransport(started.endpoint);
    started.truth = createStore({ ...LOCAL_ACCESS, endpoint: started.endpoint });
    await started.truth.bootstrap();
  });

  afterEach(() => {
    started.transport?.heal();
    started.transport?.forget();
    for (const store of open.splice(0)) store.close();
  });

  afterAll(async () => {
    started.truth?.close();
    await started.transport?.close();
    await started.child?.stop();
  });

  return {
    get transport() {
      return given(started.transport);
    },
    get truth() {
      return given(started.truth);
    },
    get backendEndpoint() {
      return given(started.endpoint);
    },
    store(options = {}) {
      const store = createStore({
        ...LOCAL_ACCESS,
        endpoint: given(started.transport).endpoint,
        // Waits between tries end at once, so that no test waits for time.
        random: () => 0,
        ...options,
      });
      open.push(store);
      return store;
    },
    unique(prefix) {
      names += 1;
      return `${prefix}-${String(names)}`;
    },
  };
}

function given<Value>(value: Value | undefined): Value {
  if (value === undefined) throw new Error('the bench is ready only within a test');
  return value;
}
