import {
  CreateTableCommand,
  GetItemCommand,
  PutItemCommand,
  QueryCommand,
  TransactWriteItemsCommand,
  UpdateItemCommand,
  type CreateTableCommandInput,
} from '@aws-sdk/client-dynamodb';
import type { DynamoDBDocumentClient } from '@aws-sdk/lib-dynamodb';
import { describe, expect, test } from 'vitest';
import { ConfigurationError } from '../../../src/errors.ts';
import { createDocumentClient } from '../../../src/store/client.ts';
import { tableDefinition } from '../../../src/store/create-table.ts';
import { createMemoryBackend, type MemoryBackend } from '../../../src/store/memory/memory-backend.ts';
import { StoreClock } from '../../support/store-clock.ts';

const TableName = 'table';
const Key = { PK: { S: 'p' }, SK: { S: 's' } };

interface Scene {
  readonly backend: MemoryBackend;
  readonly client: DynamoDBDocumentClient;
  readonly clock: StoreClock;
}

function scene(): Scene {
  const clock = new StoreClock();
  const tables = [{ definition: tableDefinition(TableName), ttlAttribute: 'ttl' }];
  const backend = createMemoryBackend({ clock, tables });
  return { backend, clock, client: createDocumentClient({ backend, maxAttempts: 1 }) };
}

async function nameOfFailure(work: Promise<unknown>): Promise<unknown> {
  return work.then(
    () => 'none',
    (error: unknown) => (error instanceof Error ? error.name : error),
  );
}

const addOne = { TableName, Key, UpdateExpression: 'ADD n :one', ExpressionAttributeValues: { ':one': { N: '1' } } };
const counted = (ClientRequestToken: string, by = '1'): TransactWriteItemsCommand =>
  new TransactWriteItemsCommand({
    ClientRequestToken,
    TransactItems: [{ Update: { ...addOne, ExpressionAttributeValues: { ':one': { N: by } } } }],
  });

describe('request tokens', () => {
  test('a transaction that is sent again is applied once within ten minutes, and again after them', async () => {
    // Arrange
    const { backend, client, clock } = scene();
    const balances: unknown[] = [];
    const send = async (): Promise<void> => {
      await client.send(counted('token'));
      balances.push(backend.items()[0]?.['n']);
    };

    // Act
    await send();
    clock.advance(599_999);
    await send();
    clock.advance(1);
    await send();

    // Assert
    expect(balances).toEqual([1, 1, 2]);
  });

  test('the same token with other contents is refused', async () => {
    const { backend, client } = scene();
    await client.send(counted('token'));
    expect(await nameOfFailure(client.send(counted('token', '2')))).toBe('IdempotentParameterMismatchException');
    expect(backend.items()).toMatchObject([{ n: 1 }]);
  });

  test('a cancelled transaction may be sent again with its token', async () => {
    // Arrange
    const { backend, client } = scene();
    const guarded = (): TransactWriteItemsCommand =>
      new TransactWriteItemsCommand({
        ClientRequestToken: 'token',
        TransactItems: [{ Update: { ...addOne, ConditionExpression: 'attribute_exists(PK)' } }],
      });

    // Act
    const first = await nameOfFailure(client.send(guarded()));
    await client.send(new PutItemCommand({ TableName, Item: { ...Key, n: { N: '1' } } }));
    await client.send(guarded());

    // Assert
    expect([first, backend.items()]).toEqual(['TransactionCanceledException', [{ PK: 'p', SK: 's', n: 2 }]]);
  });
});

describe('faults on request', () => {
  test.each([
    { fault: 'throttle', name: 'ProvisionedThroughputExceededException', applied: false },
    { fault: 'conflict', name: 'TransactionConflictException', applied: false },
    { fault: 'internal error', name: 'InternalServerError', applied: false },
    { fault: 'lose the request', name: 'TimeoutError', applied: false },
    { fault: 'lose the answer', name: 'TimeoutError', applied: true },
  ] as const)('$fault: fails as $name, applied: $applied, and the next request works', async (given) => {
    // Arrange
    const { backend, client } = scene();
    backend.failNext('UpdateItem', given.fault);

    // Act
    const failure = await nameOfFailure(client.send(new UpdateItemCommand(addOne)));
    const after = backend.items().length;
    await client.send(new UpdateItemCommand(addOne));

    // Assert
    expect([failure, after]).toEqual([given.name, given.applied ? 1 : 0]);
    expect(backend.items()).toMatchObject([{ n: given.applied ? 2 : 1 }]);
  });

  test('a transaction in conflict is cancelled with a reason for each action', async () => {
    const { backend, client } = scene();
    backend.failNext('TransactWriteItems', 'conflict');
    await expect(client.send(counted('token'))).rejects.toMatchObject({
      name: 'TransactionCanceledException',
      CancellationReasons: [{ Code: 'TransactionConflict' }],
    });
  });

  test('the SDK repeats what it repeats with AWS', async () => {
    const { backend } = scene();
    const client = createDocumentClient({ backend });
    backend.failNext('GetItem', 'internal error', 2);
    await expect(client.send(new GetItemCommand({ TableName, Key }))).resolves.toBeDefined();
  });

  test('other operations are not hit, and what was planned can be taken back', async () => {
    const { backend, client } = scene();
    backend.failNext('PutItem', 'throttle', 2);
    await client.send(new UpdateItemCommand(addOne));
    backend.heal();
    await client.send(new PutItemCommand({ TableName, Item: Key }));
  });

  test.each([0, -1, 1.5, Number.NaN, 1_001])('%d times is refused', (times) => {
    expect(() => scene().backend.failNext('GetItem', 'throttle', times)).toThrow(ConfigurationError);
  });
});

test('the index knows nothing new while it is held, and everything after', async () => {
  // Arrange
  const { backend, client } = scene();
  const write = (SK: string, list: string): Promise<unknown> =>
    client.send(
      new PutItemCommand({ TableName, Item: { PK: Key.PK, SK: { S: SK }, GSI1PK: { S: list }, GSI1SK: { S: SK } } }),
    );
  const listed = async (): Promise<unknown> => {
    const read = new QueryCommand({
      TableName,
      IndexName: 'GSI1',
      KeyConditionExpression: 'GSI1PK = :list',
      ExpressionAttributeValues: { ':list': { S: 'list' } },
    });
    return (await client.send(read)).Items?.map(({ SK }) => SK?.S);
  };

  // Act
  await write('a', 'list');
  await write('b', 'list');
  backend.index.hold();
  await write('a', 'elsewhere');
  await write('c', 'list');
  const [held, table] = [await listed(), backend.items().length];
  backend.index.release();

  // Assert
  expect([held, table, await listed()]).toEqual([['a', 'b'], 3, ['b', 'c']]);
});

test('TTL deletes on request what is over, and only with a number of seconds of the last five years', async () => {
  // Arrange
  const { backend, client } = scene();
  const nowSeconds = 1_800_000_000;
  const ttls = { over: nowSeconds - 1, now: nowSeconds, ahead: nowSeconds + 1, old: nowSeconds - 200_000_000 };
  for (const [name, ttl] of Object.entries(ttls)) {
    const Item = { PK: { S: name }, SK: { S: 's' }, ttl: { N: String(ttl) } };
    await client.send(new PutItemCommand({ TableName, Item }));
  }
  await client.send(new PutItemCommand({ TableName, Item: { ...Key, ttl: { S: '1' } } }));

  // Act
  const gone = [backend.expire(nowSeconds * 1_000), backend.expire(nowSeconds * 1_000)];

  // Assert
  expect(gone).toEqual([1, 0]);
  expect(new Set(backend.items().map(({ PK }) => PK))).toEqual(new Set(['now', 'ahead', 'old', 'p']));
});

describe('what it does not know', () => {
  test.each([
    { what: 'an operation', operation: 'DeleteTable', input: {}, name: 'UnknownOperationException' },
    { what: 'an operation by an odd name', operation: 'constructor', input: {}, name: 'UnknownOperationException' },
    { what: 'a field', operation: 'Scan', input: { Segment: 0, TotalSegments: 2 }, name: 'ValidationException' },
    { what: 'an old way', operation: 'GetItem', input: { Key, AttributesToGet: ['n'] }, name: 'ValidationException' },
    { what: 'a table', operation: 'GetItem', input: { TableName: 'no', Key }, name: 'ResourceNotFoundException' },
  ])('$what is refused, not passed over', async ({ operation, input, name }) => {
    // Act
    const request = { headers: { 'X-Amz-Target': `DynamoDB_20120810.${operation}` } };
    const { response } = await scene().backend.handle({ ...request, body: JSON.stringify({ TableName, ...input }) });

    // Assert
    expect(response.statusCode).toBe(400);
    expect(JSON.parse(Buffer.from(response.body).toString())).toMatchObject({
      __type: expect.stringMatching(new RegExp(`#${name}$`)) as unknown,
    });
  });

  test.each([{ BillingMode: 'PROVISIONED' }, { TableName: 'a' }, { StreamSpecification: { StreamEnabled: true } }])(
    'a table with %j is refused',
    async (change) => {
      const input = { ...tableDefinition('more'), ...change } as CreateTableCommandInput;
      expect(await nameOfFailure(scene().client.send(new CreateTableCommand(input)))).toBe('ValidationException');
    },
  );
});

test('the dump has plain values of every type', async () => {
  const { backend, client } = scene();
  const Item = {
    ...Key,
    n: { N: '1.50' },
    large: { N: '9007199254740993' },
    bytes: { B: Uint8Array.from([1]) },
    list: { L: [{ NULL: true as const }, { BOOL: false }] },
    map: { M: { ['__proto__']: { S: 'x' } } },
    numbers: { NS: ['1', '2'] },
  };
  await client.send(new PutItemCommand({ TableName, Item }));
  expect(backend.items()).toEqual([
    {
      PK: 'p',
      SK: 's',
      n: 1.5,
      large: 9_007_199_254_740_993n,
      bytes: Uint8Array.from([1]),
      list: [null, false],
      map: JSON.parse('{"__proto__":"x"}') as unknown,
      numbers: new Set([1, 2]),
    },
  ]);
});

test('a caller who gives up is told so; by then the write may have been applied', async () => {
  // Arrange
  const { backend, client } = scene();
  const before = AbortSignal.abort();
  const during = new AbortController();
  const headers = { 'x-amz-target': 'DynamoDB_20120810.UpdateItem' };

  // Act
  const first = await nameOfFailure(client.send(new UpdateItemCommand(addOne), { abortSignal: before }));
  const untouched = backend.items().length;
  const second = backend.handle({ headers, body: JSON.stringify(addOne) }, { abortSignal: during.signal });
  during.abort();

  // Assert
  expect([first, untouched, await nameOfFailure(second)]).toEqual(['AbortError', 0, 'AbortError']);
  expect(backend.items()).toMatchObject([{ n: 1 }]);
});
