/**
 * Where the local DynamoDB (dynoxide 1.2.1) is known to differ from AWS, and the in-memory one follows AWS. This is the
 * only list. Each difference is shown on both, so that an entry whose reason is gone is noticed.
 */
import type { DynamoDBDocumentClient } from '@aws-sdk/lib-dynamodb';
import { describe, expect, test } from 'vitest';
import { systemClock } from '../../../src/clock.ts';
import { createDocumentClient } from '../../../src/store/client.ts';
import { createTable } from '../../../src/store/create-table.ts';
import { createMemoryBackend } from '../../../src/store/memory/memory-backend.ts';
import { LOCAL_ACCESS, useStoreBench } from '../../support/store-bench.ts';
import { sendRandom, type RandomRequest } from '../../support/store-random-requests.ts';

const bench = useStoreBench();

const KEY = { PK: { S: 'p' }, SK: { S: 's' } };

interface Difference {
  readonly title: string;
  /** Why AWS is known to do it that way. */
  readonly reason: string;
  /** What is stored before; nothing when absent. */
  readonly stored?: object;
  readonly request: Omit<RandomRequest, 'input'> & { readonly input: (TableName: string) => object };
  /** The answer, or the name of the refusal; with the item that is stored afterwards where that is what differs. */
  readonly aws: unknown;
  readonly local: unknown;
  readonly looksAt: 'answer' | 'item';
}

const update = (UpdateExpression: string, more: object = {}): Difference['request'] => ({
  operation: 'UpdateItem',
  input: (TableName) => ({ TableName, Key: KEY, UpdateExpression, ...more }),
});
const checkedUpdate = (ConditionExpression: string, values: object): Difference['request'] =>
  update('SET tick = :one', {
    ConditionExpression,
    ExpressionAttributeValues: { ':one': { N: '1' }, ...values },
  });

const OBSERVED = 'observed on AWS by the authors of Alternator, whose tests run on both';

const DIFFERENCES: readonly Difference[] = [
  {
    title: 'an update that only removes attributes does not make an item',
    reason: OBSERVED,
    request: update('REMOVE a'),
    looksAt: 'item',
    aws: undefined,
    local: KEY,
  },
  {
    title: 'a member of something that is no list cannot be removed',
    reason: OBSERVED,
    stored: { a: { NULL: true } },
    request: update('REMOVE a[0]'),
    looksAt: 'answer',
    aws: 'ValidationException',
    local: {},
  },
  {
    title: 'a member of something that is no list cannot be set',
    reason: OBSERVED,
    stored: { a: { NULL: true } },
    request: update('SET a[0] = :a', { ExpressionAttributeValues: { ':a': { S: 'x' } } }),
    looksAt: 'answer',
    aws: 'ValidationException',
    local: {},
  },
  {
    title: 'attribute_type knows only the ten types',
    reason: OBSERVED,
    stored: { a: { N: '1' } },
    request: checkedUpdate('attribute_type(a, :type)', { ':type': { S: 'DOG' } }),
    looksAt: 'answer',
    aws: 'ValidationException',
    local: 'ConditionalCheckFailedException',
  },
  {
    title: 'indexes of what is removed from a list are those before the update',
    reason: 'AWS, Update expressions: REMOVE of several elements of a list',
    stored: { l: { L: [{ N: '0' }, { N: '1' }, { N: '2' }] }, m: { M: { x: { N: '1' } } } },
    request: update('REMOVE l[0], m.x, l[2]'),
    looksAt: 'item',
    aws: { ...KEY, l: { L: [{ N: '1' }] }, m: { M: {} } },
    local: { ...KEY, l: { L: [{ N: '1' }, { N: '2' }] }, m: { M: {} } },
  },
  {
    title: 'a number that is written otherwise is the same member of a set',
    reason: 'AWS, Data types: numbers are normalised, leading and trailing zeros are trimmed',
    stored: { numbers: { NS: ['1', '2'] } },
    request: update('DELETE numbers :n', { ExpressionAttributeValues: { ':n': { NS: ['1.0'] } } }),
    looksAt: 'item',
    aws: { ...KEY, numbers: { NS: ['2'] } },
    local: { ...KEY, numbers: { NS: ['1', '2'] } },
  },
  {
    title: 'an update that makes an item has no old attributes to return',
    reason: 'AWS, Working with items, return values: ALL_OLD has no effect on an item that did not exist',
    request: update('SET a = :a', { ExpressionAttributeValues: { ':a': { S: 'x' } }, ReturnValues: 'ALL_OLD' }),
    looksAt: 'answer',
    aws: {},
    local: { Attributes: KEY },
  },
  {
    title: 'members far beyond the end of a list become its next ones, in the order of their indexes',
    reason: 'AWS, Update expressions: SET appends new elements to the end of the list, sorted by element number',
    stored: { l: { L: [] }, m: { M: {} } },
    request: update('SET l[3] = :a, m.x = :a, l[1] = :b', {
      ExpressionAttributeValues: { ':a': { S: 'a' }, ':b': { S: 'b' } },
    }),
    looksAt: 'item',
    aws: { ...KEY, l: { L: [{ S: 'b' }, { S: 'a' }] }, m: { M: { x: { S: 'a' } } } },
    local: { ...KEY, l: { L: [{ NULL: true }, { S: 'b' }, { NULL: true }, { S: 'a' }] }, m: { M: { x: { S: 'a' } } } },
  },
  {
    title: 'UPDATED_OLD brings only the changed member of a list',
    reason: OBSERVED,
    stored: { l: { L: [{ N: '1' }, { N: '2' }] } },
    request: update('SET l[1] = :a', {
      ExpressionAttributeValues: { ':a': { N: '3' } },
      ReturnValues: 'UPDATED_OLD',
    }),
    looksAt: 'answer',
    aws: { Attributes: { l: { L: [{ N: '2' }] } } },
    local: { Attributes: { l: { L: [{ N: '1' }, { N: '2' }] } } },
  },
  {
    title: 'a value that has no order cannot be compared with <',
    reason: OBSERVED,
    stored: { a: { N: '1' } },
    request: checkedUpdate('a < :list', { ':list': { L: [] } }),
    looksAt: 'answer',
    aws: 'ValidationException',
    local: 'ConditionalCheckFailedException',
  },
  {
    title: 'a value that has no order cannot be a bound of BETWEEN',
    reason: OBSERVED,
    stored: { a: { N: '1' } },
    request: checkedUpdate('a BETWEEN :list AND :list', { ':list': { L: [] } }),
    looksAt: 'answer',
    aws: 'ValidationException',
    local: 'ConditionalCheckFailedException',
  },
  {
    title: 'a snapshot brings the attributes that it names and no others',
    reason: 'AWS, TransactGetItems: only the requested attributes',
    stored: { a: { S: 'x' } },
    request: {
      operation: 'TransactGetItems',
      input: (TableName) => ({ TransactItems: [{ Get: { TableName, Key: KEY, ProjectionExpression: 'a' } }] }),
    },
    looksAt: 'answer',
    aws: { Responses: [{ Item: { a: { S: 'x' } } }] },
    local: { Responses: [{ Item: { ...KEY, a: { S: 'x' } } }] },
  },
  {
    title: 'an action of a transaction is of one kind',
    reason: 'AWS, TransactWriteItem: one of ConditionCheck, Delete, Put and Update',
    request: {
      operation: 'TransactWriteItems',
      input: (TableName) => ({ TransactItems: [{ Put: { TableName, Item: KEY }, Delete: { TableName, Key: KEY } }] }),
    },
    looksAt: 'answer',
    aws: 'ValidationException',
    local: {},
  },
  {
    title: 'a transaction whose expression is wrong is invalid, not cancelled',
    reason: 'as in a single update; AWS gives reasons only for what depends on stored items',
    request: {
      operation: 'TransactWriteItems',
      input: (TableName) => ({
        TransactItems: [
          {
            Update: {
              TableName,
              Key: KEY,
              UpdateExpression: 'SET a.b = :a, a = :a',
              ConditionExpression: 'attribute_exists(PK)',
              ExpressionAttributeValues: { ':a': { S: 'x' } },
            },
          },
        ],
      }),
    },
    looksAt: 'answer',
    aws: 'ValidationException',
    local: 'TransactionCanceledException',
  },
];

let tables = 0;

async function outcome(client: DynamoDBDocumentClient, difference: Difference): Promise<unknown> {
  tables += 1;
  const TableName = `difference-${String(tables)}`;
  await createTable(client, TableName, systemClock);
  if (difference.stored !== undefined) {
    await sendRandom(client, { operation: 'PutItem', input: { TableName, Item: { ...KEY, ...difference.stored } } });
  }
  const { operation, input } = difference.request;
  const answer = await answerOf(client, { operation, input: input(TableName) });
  if (difference.looksAt === 'answer') return answer;
  const stored = await answerOf(client, { operation: 'GetItem', input: { TableName, Key: KEY, ConsistentRead: true } });
  return typeof stored === 'object' && stored !== null && 'Item' in stored ? stored.Item : undefined;
}

async function answerOf(client: DynamoDBDocumentClient, request: RandomRequest): Promise<unknown> {
  try {
    const { $metadata: _, ...answer } = (await sendRandom(client, request)) as Record<string, unknown>;
    return answer;
  } catch (error) {
    return error instanceof Error ? error.name : error;
  }
}

describe('the local DynamoDB differs from AWS', () => {
  test.each(DIFFERENCES.map((each) => [each.title, each] as const))('%s', async (_, difference) => {
    // Arrange
    const memory = createDocumentClient({ backend: createMemoryBackend(), maxAttempts: 1 });
    const local = createDocumentClient({ ...LOCAL_ACCESS, endpoint: bench.backendEndpoint, maxAttempts: 1 });

    // Act
    const outcomes = [await outcome(memory, difference), await outcome(local, difference)];
    local.destroy();

    // Assert
    expect(outcomes).toEqual([difference.aws, difference.local]);
  });
});
