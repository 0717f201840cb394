import { DescribeTableCommand, DescribeTimeToLiveCommand, DynamoDBClient } from '@aws-sdk/client-dynamodb';
import { describe, expect, test } from 'vitest';
import { LOCAL_ACCESS, useStoreBench } from '../support/store-bench.ts';
import { StoreClock } from '../support/store-clock.ts';

const bench = useStoreBench();

async function describeTable(tableName: string): Promise<{ table: unknown; ttl: unknown }> {
  const client = new DynamoDBClient({ ...LOCAL_ACCESS, endpoint: bench.backendEndpoint });
  const { Table } = await client.send(new DescribeTableCommand({ TableName: tableName }));
  const { TimeToLiveDescription } = await client.send(new DescribeTimeToLiveCommand({ TableName: tableName }));
  client.destroy();
  return { table: Table, ttl: TimeToLiveDescription };
}

test.each(['', 'ab', 'x'.repeat(256), 'a b', 'a/b', 'täble', 1])(
  'a table called %j is refused by the store',
  (name) => {
    expect(() => bench.store({ tableName: name as string })).toThrow(/tableName: from 3 to 255 letters/);
  },
);

describe('bootstrap', () => {
  test('makes the table with its keys and index, and switches TTL on', async () => {
    // Arrange
    const tableName = bench.unique('table');

    // Act
    const report = await bench.store({ tableName }).bootstrap();

    // Assert
    expect(report).toEqual({ table: tableName, created: true, ttlSwitchedOn: true });
    expect(await describeTable(tableName)).toMatchObject({
      table: {
        TableStatus: 'ACTIVE',
        KeySchema: [
          { AttributeName: 'PK', KeyType: 'HASH' },
          { AttributeName: 'SK', KeyType: 'RANGE' },
        ],
        GlobalSecondaryIndexes: [{ IndexName: 'GSI1', Projection: { ProjectionType: 'ALL' } }],
      },
      ttl: { TimeToLiveStatus: 'ENABLED', AttributeName: 'ttl' },
    });
  });

  test('changes nothing when it is repeated', async () => {
    // Arrange
    const store = bench.store({ tableName: bench.unique('table') });
    await store.bootstrap();
    await store.update({ key: { PK: 'a', SK: 'b' }, change: { set: { kept: true } } });

    // Act
    const again = await store.bootstrap();

    // Assert
    expect(again).toMatchObject({ created: false, ttlSwitchedOn: false });
    expect(await store.get({ PK: 'a', SK: 'b' })).toMatchObject({ kept: true });
  });

  test('run by eight at once makes one table, and none of them fails', async () => {
    // Arrange
    const tableName = bench.unique('table');
    const stores = Array.from({ length: 8 }, () => bench.store({ tableName }));

    // Act
    const reports = await Promise.all(stores.map((store) => store.bootstrap()));

    // Assert
    expect(reports.filter((report) => report.created)).toHaveLength(1);
    expect(await describeTable(tableName)).toMatchObject({ ttl: { TimeToLiveStatus: 'ENABLED' } });
  });

  test('takes a lost answer to the creation for what it is', async () => {
    // Arrange
    const tableName = bench.unique('table');
    bench.transport.fault('CreateTable', { kind: 'lose the answer' });

    // Act
    await bench.store({ tableName }).bootstrap();

    // Assert
    expect(await describeTable(tableName)).toMatchObject({ table: { TableStatus: 'ACTIVE' } });
  });

  test('takes TTL that another has just switched on for switched on', async () => {
    // Arrange
    bench.transport.fault('UpdateTimeToLive', { kind: 'refuse', name: 'ValidationException' });

    // Act
    const report = await bench.store({ tableName: bench.unique('table') }).bootstrap();

    // Assert
    expect(report.ttlSwitchedOn).toBe(false);
  });

  test.each(['CreateTable', 'DescribeTable', 'DescribeTimeToLive', 'UpdateTimeToLive'])(
    'hands on a %s that is not allowed',
    async (operation) => {
      // Arrange
      bench.transport.fault(operation, { kind: 'refuse', name: 'AccessDeniedException' }, { times: 9 });

      // Act
      const bootstrap = bench.store({ tableName: bench.unique('table') }).bootstrap();

      // Assert
      await expect(bootstrap).rejects.toMatchObject({ code: 'BACKEND', cause: { name: 'AccessDeniedException' } });
    },
  );

  test('waits until the table is active, without spinning', async () => {
    // Arrange
    const clock = new StoreClock({ waits: 'jump' });
    const store = bench.store({ tableName: bench.unique('table'), clock, maxAttempts: 1 });
    const startMs = clock.monotonicMs();
    bench.transport.fault('DescribeTable', { kind: 'say', body: { Table: { TableStatus: 'CREATING' } } }, { times: 3 });

    // Act
    const report = await store.bootstrap();

    // Assert
    expect(report.created).toBe(true);
    expect(clock.monotonicMs() - startMs).toBe(600);
  });

  test('gives up on a table that does not become active', async () => {
    // Arrange
    const store = bench.store({ tableName: bench.unique('table'), clock: new StoreClock({ waits: 'jump' }) });
    bench.transport.fault(
      'DescribeTable',
      { kind: 'say', body: { Table: { TableStatus: 'CREATING' } } },
      { times: 1_000 },
    );

    // Act
    const bootstrap = store.bootstrap();

    // Assert
    await expect(bootstrap).rejects.toMatchObject({ code: 'BACKEND', retryable: true });
  });
});
