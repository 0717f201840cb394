import { GetCommand } from '@aws-sdk/lib-dynamodb';
import { describe, expect, test } from 'vitest';
import { BackendError, ConfigurationError } from '../../src/errors.ts';
import { createDocumentClient, STORE_CLIENT_DEFAULTS } from '../../src/store/client.ts';
import { createRequestMeter } from '../../src/store/request-meter.ts';
import { createStore } from '../../src/store/store.ts';
import { accountKey } from '../../src/store/table.ts';
import { LOCAL_ACCESS, useStoreBench } from '../support/store-bench.ts';

const bench = useStoreBench();

function faultsOf(build: () => unknown): readonly { name: string; value: unknown }[] {
  try {
    build();
    return [];
  } catch (error) {
    if (error instanceof ConfigurationError) return error.faults.map(({ name, value }) => ({ name, value }));
    throw error;
  }
}

describe('a frozen server', () => {
  test('makes a read time out by itself with a retryable error', async () => {
    // Arrange
    const store = bench.store({ requestTimeoutMs: 50, maxAttempts: 1 });
    bench.transport.fault('GetItem', { kind: 'never answer' });

    // Act
    const read = store.get(accountKey('a'));

    // Assert
    await expect(read).rejects.toBeInstanceOf(BackendError);
    await expect(read).rejects.toMatchObject({ reason: 'ambiguous', retryable: true });
  });

  test('is left by the retry of the client when it answers again', async () => {
    // Arrange
    const store = bench.store({ requestTimeoutMs: 1_000, maxAttempts: 2 });
    const frozen = bench.transport.fault('GetItem', { kind: 'never answer' });

    // Act
    const item = await store.get(accountKey('nobody'));

    // Assert
    expect([item, frozen.hits]).toEqual([undefined, 1]);
  });
});

test('a server that is not there is told apart from one that does not answer', async () => {
  // Arrange
  const store = bench.store({ endpoint: 'http://127.0.0.1:1', maxAttempts: 1 });

  // Act
  const read = store.get(accountKey('a'));

  // Assert
  await expect(read).rejects.toMatchObject({ reason: 'unreachable', retryable: true });
});

test('a missing table is no passing fault', async () => {
  const store = bench.store({ tableName: 'no-such-table' });
  await expect(store.get(accountKey('a'))).rejects.toMatchObject({ reason: 'notFound', retryable: false });
});

describe('limits', () => {
  test('out of range are reported all together', () => {
    // Act
    const faults = faultsOf(() =>
      createDocumentClient({ connectTimeoutMs: 0, requestTimeoutMs: 60_001, maxSockets: 1.5, maxAttempts: Number.NaN }),
    );

    // Assert
    expect(faults).toEqual([
      { name: 'connectTimeoutMs', value: 0 },
      { name: 'requestTimeoutMs', value: 60_001 },
      { name: 'maxSockets', value: 1.5 },
      { name: 'maxAttempts', value: Number.NaN },
    ]);
  });

  test('at both ends of their range are taken', () => {
    const smallest = { connectTimeoutMs: 1, requestTimeoutMs: 1, maxSockets: 1, maxAttempts: 1 };
    const largest = { connectTimeoutMs: 60_000, requestTimeoutMs: 60_000, maxSockets: 1_000, maxAttempts: 10 };
    for (const limits of [smallest, largest, STORE_CLIENT_DEFAULTS]) {
      createDocumentClient({ ...LOCAL_ACCESS, ...limits }).destroy();
    }
  });

  test.each([0, 3_651, 1.5, Number.NaN])('of %d days for a record are refused', (recordRetentionDays) => {
    expect(faultsOf(() => createStore({ ...LOCAL_ACCESS, recordRetentionDays }))).toEqual([
      { name: 'recordRetentionDays', value: recordRetentionDays },
    ]);
  });
});

describe('the meter', () => {
  test('counts a claim as one request', async () => {
    // Arrange
    const meter = createRequestMeter();
    const effects = bench.store({ meter }).effectRecords();

    // Act
    await effects.claim({ queue: 'q', key: bench.unique('key'), payloadHash: 'h', holder: 'w1' });

    // Assert
    expect(meter.requests).toEqual(new Map([['UpdateItem', 1]]));
  });

  test('counts a commit as one request', async () => {
    // Arrange
    const meter = createRequestMeter();
    const effects = bench.store({ meter }).effectRecords();
    const claim = await effects.claim({ queue: 'q', key: bench.unique('key'), payloadHash: 'h', holder: 'w1' });
    if (claim.kind !== 'claimed') throw new Error(claim.kind);
    meter.requests.clear();

    // Act
    await effects.commit(claim.effect, { status: 'COMPLETED', response: 1, effects: [] });

    // Assert
    expect(meter.requests).toEqual(new Map([['TransactWriteItems', 1]]));
  });

  test('counts a duplicate as one request and no read', async () => {
    // Arrange
    const meter = createRequestMeter();
    const effects = bench.store({ meter }).effectRecords();
    const request = { queue: 'q', key: bench.unique('key'), payloadHash: 'h', holder: 'w1' };
    const claim = await effects.claim(request);
    if (claim.kind !== 'claimed') throw new Error(claim.kind);
    await effects.commit(claim.effect, { status: 'COMPLETED', response: 1, effects: [] });
    meter.requests.clear();

    // Act
    const duplicate = await effects.claim(request);

    // Assert
    expect(duplicate.kind).toBe('completed');
    expect(meter.requests).toEqual(new Map([['UpdateItem', 1]]));
  });

  test('adds up the capacity that DynamoDB charged', async () => {
    // Arrange
    const meter = createRequestMeter();
    const store = bench.store({ meter });
    const key = accountKey(bench.unique('account'));

    // Act
    await store.update({ key, change: { set: { balance: 1 } } });
    const afterWrite = meter.capacityUnits;
    await store.get(key);
    const afterRead = meter.capacityUnits;
    await store.transactions.write([{ kind: 'update', label: 'account', key, change: { set: { balance: 2 } } }]);

    // Assert
    expect([afterWrite, afterRead, meter.capacityUnits]).toEqual([1, 2, 4]);
  });

  test('counts each try that the client makes by itself', async () => {
    // Arrange
    const meter = createRequestMeter();
    const store = bench.store({ meter, maxAttempts: 3 });
    bench.transport.fault('GetItem', { kind: 'refuse', name: 'InternalServerError', status: 500 }, { times: 2 });

    // Act
    await store.get(accountKey('a'));

    // Assert
    expect(meter.requests).toEqual(new Map([['GetItem', 3]]));
  });

  test('leaves what cannot be metered alone', async () => {
    // Arrange
    const meter = createRequestMeter();
    const store = bench.store({ meter });

    // Act
    await store.bootstrap();

    // Assert
    expect(meter.requests.get('DescribeTable')).toBe(1);
    expect(meter.capacityUnits).toBe(0);
  });
});

describe('values', () => {
  test('undefined attributes are left out, and nested values read back as they were', async () => {
    // Arrange
    const client = createDocumentClient({ ...LOCAL_ACCESS, endpoint: bench.backendEndpoint });
    const key = accountKey(bench.unique('account'));
    const nested = { list: [1, 'two', null, true], text: '', map: { deep: [{ x: 0.1 }] } };

    // Act
    await bench.truth.transactions.write([
      { kind: 'put', label: 'account', item: { ...key, nested: { ...nested, gone: undefined } } },
    ]);
    const { Item: item } = await client.send(new GetCommand({ TableName: bench.truth.tableName, Key: key }));
    client.destroy();

    // Assert
    expect(item).toEqual({ ...key, nested });
  });
});

test('a scan brings every item, page by page', async () => {
  // Arrange
  const store = bench.store({ tableName: 'paged' });
  await store.bootstrap();
  const wanted = ['1', '2', '3', '4', '5'];
  for (const name of wanted) {
    const item = { PK: name, SK: 's', padding: 'x'.repeat(390_000) };
    await store.transactions.write([{ kind: 'put', label: 'page', item }]);
  }

  // Act
  const found: string[] = [];
  for await (const item of store.scan()) found.push(String(item['PK']));

  // Assert
  expect(new Set(found)).toEqual(new Set(wanted));
  expect(found).toHaveLength(wanted.length);
  expect(bench.transport.count('Scan')).toBeGreaterThan(1);
});
