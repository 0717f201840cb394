import { afterEach, expect, test, vi } from 'vitest';
import { ConfigurationError } from '../../../src/errors.ts';
import { createDocumentClient } from '../../../src/store/client.ts';
import { plus } from '../../../src/store/expressions.ts';
import { createMemoryBackend } from '../../../src/store/memory/memory-backend.ts';
import { createMemoryStore } from '../../../src/store/memory/memory-store.ts';
import { createStore } from '../../../src/store/store.ts';
import { StoreClock } from '../../support/store-clock.ts';

afterEach(() => {
  vi.useRealTimers();
});

const key = { PK: 'a', SK: 'b' };

test('a store is there in one line, with its table, its index and its TTL', async () => {
  const store = createMemoryStore();
  await store.items.create({ ...key, GSI1PK: 'list', GSI1SK: '1', ttl: 1 });
  expect(await store.bootstrap()).toEqual({ table: 'onlyonce', created: false, ttlSwitchedOn: false });
  expect(await store.index.queryIndexUntilFound({ partition: 'list' })).toMatchObject({ kind: 'found' });
  expect([store.backend.expire(3_000), store.backend.items()]).toEqual([1, []]);
});

test('two stores have nothing in common, and two on one backend everything', async () => {
  // Arrange
  const [store, stranger] = [createMemoryStore(), createMemoryStore()];
  const other = createStore({ backend: store.backend });

  // Act
  await store.items.create(key);

  // Assert
  expect([await other.get(key), await stranger.get(key)]).toEqual([key, undefined]);
});

test('what is known to DynamoDB of a lost answer is known here', async () => {
  // Arrange
  const store = createMemoryStore({ random: () => 0 });
  store.backend.failNext('TransactWriteItems', 'lose the answer');

  // Act: the writer sends it again under the same token.
  await store.transactions.write([{ kind: 'update', label: 'count', key, change: { set: { n: plus(1, 0) } } }]);

  // Assert
  expect(store.backend.items()).toEqual([{ ...key, n: 1 }]);
});

test('the clock of the store is that of its request tokens', async () => {
  const clock = new StoreClock({ waits: 'jump' });
  const store = createMemoryStore({ clock, tableName: 'other' });
  await store.items.create(key);
  expect([store.tableName, store.clock]).toEqual(['other', clock]);
});

test('it works while timers are faked', async () => {
  vi.useFakeTimers();
  const store = createMemoryStore();
  await store.items.create(key);
  expect(await store.get(key)).toEqual(key);
});

test('an endpoint beside a backend is refused, with all other faults', () => {
  const backend = createMemoryBackend();
  const both = (): unknown => createDocumentClient({ backend, endpoint: 'http://127.0.0.1:1', maxAttempts: 0 });
  expect(both).toThrow(ConfigurationError);
  expect(both).toThrow(/maxAttempts[^]*endpoint/);
});

test('no network is used: neither region nor credentials are looked for', async () => {
  vi.stubEnv('AWS_REGION', undefined);
  vi.stubEnv('AWS_ENDPOINT_URL_DYNAMODB', 'http://127.0.0.1:1');
  vi.stubEnv('AWS_ACCESS_KEY_ID', undefined);
  expect(await createMemoryStore().get(key)).toBeUndefined();
  vi.unstubAllEnvs();
});
