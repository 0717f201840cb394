/** What DynamoDB takes and refuses as an expression, and as a value; the same on both. */
import type { DynamoDBDocumentClient } from '@aws-sdk/lib-dynamodb';
import { beforeAll, describe, expect, test } from 'vitest';
import { systemClock } from '../../../src/clock.ts';
import { createDocumentClient } from '../../../src/store/client.ts';
import { createTable } from '../../../src/store/create-table.ts';
import { createMemoryBackend } from '../../../src/store/memory/memory-backend.ts';
import { LOCAL_ACCESS, useStoreBench } from '../../support/store-bench.ts';
import { sendRandom, type RandomRequest } from '../../support/store-random-requests.ts';

const TableName = 'expressions';
const Key = { PK: { S: 'p' }, SK: { S: 's' } };
/** What is left of 400 KiB beside the names and the key. */
const LONGEST = 400 * 1024 - 7;
const STORED = {
  n: { N: '5' },
  s: { S: 'a😀' },
  l: { L: [{ N: '0' }, { N: '1' }, { N: '2' }] },
  m: { M: { x: { N: '1' } } },
  set: { NS: ['1', '2'] },
};

const VALUES: Readonly<Record<string, object>> = {
  ':n': { N: '1' },
  ':nine': { N: '9' },
  ':s': { S: 'a' },
  ':l': { L: [] },
  ':set': { NS: ['1', '2', '9'] },
  ':type': { S: 'N' },
};
const NAMES: Readonly<Record<string, string>> = {
  '#n': 'n',
  '#size': 'size',
  '#dots': 'a.b',
  '#set': 'set',
  '#copy': 'copy',
};

/** Gives the request the placeholders that its expressions name, and no others. */
function withPlaceholders(input: Readonly<Record<string, unknown>>): object {
  const text = Object.entries(input).flatMap(([field, value]) => (field.endsWith('Expression') ? [String(value)] : []));
  const used = new Set(text.join(' ').match(/[#:]\w+/g));
  const of = <Given>(given: Readonly<Record<string, Given>>): [string, Given][] =>
    Object.entries(given).filter(([placeholder]) => used.has(placeholder));
  return {
    TableName,
    ...(of(NAMES).length > 0 && { ExpressionAttributeNames: Object.fromEntries(of(NAMES)) }),
    ...(of(VALUES).length > 0 && { ExpressionAttributeValues: Object.fromEntries(of(VALUES)) }),
    ...input,
  };
}

const update = (UpdateExpression: string): RandomRequest => ({
  operation: 'UpdateItem',
  input: withPlaceholders({ Key, UpdateExpression, ReturnValues: 'ALL_NEW' }),
});
const deleteIf = (ConditionExpression: string): RandomRequest => ({
  operation: 'DeleteItem',
  input: withPlaceholders({ Key, ConditionExpression }),
});
const putOf = (Item: object): RandomRequest => ({ operation: 'PutItem', input: { TableName, Item } });
const nested = (depth: number): object => (depth === 0 ? { N: '1' } : { L: [nested(depth - 1)] });

const transaction = (TransactItems: readonly object[], more: object = {}): RandomRequest => ({
  operation: 'TransactWriteItems',
  input: { TransactItems, ...more },
});
const putAt = (place: number, v: object): object => ({
  Put: { TableName, Item: { ...Key, SK: { S: String(place) }, v } },
});

const INVALID: Readonly<Record<string, RandomRequest>> = {
  'an empty expression': update(''),
  'an unknown clause': update('PUT n = :n'),
  'a clause twice': update('SET n = :n SET s = :s'),
  'three summands': update('SET n = :n + :n + :n'),
  'an undefined name': deleteIf('attribute_exists(#none)'),
  'an undefined value': deleteIf('n = :none'),
  'a name that is not used': {
    operation: 'DeleteItem',
    input: { TableName, Key, ConditionExpression: 'attribute_exists(n)', ExpressionAttributeNames: { '#x': 'x' } },
  },
  'paths that overlap': update('SET n = :n, n = :nine'),
  'a path that is a map and a list': update('SET m.x = :n, m[0] = :n'),
  'a part of the key': update('SET SK = :s'),
  'an absent attribute on the right': update('SET n = nowhere'),
  'what was set in the same update': update('SET fresh = :n, #copy = fresh'),
  'a number added to a text': update('SET s = s + :n'),
  'a list appended to a number': update('SET n = list_append(n, :l)'),
  'a set added to a number': update('ADD n :set'),
  'a number deleted from a set': update('DELETE #n :n'),
  'a function that does not exist': deleteIf('about(n, :n)'),
  'a function with too few arguments': deleteIf('contains(s)'),
  'a value where a path belongs': deleteIf('attribute_exists(:n)'),
  'begins_with a number': deleteIf('begins_with(s, :n)'),
  'bounds the wrong way round': deleteIf('n BETWEEN :nine AND :n'),
  'nothing to choose from': deleteIf('n IN ()'),
  'brackets that are not closed': deleteIf('(n = :n'),
  'brackets within brackets': deleteIf('((n = :n))'),
  'a dangling AND': deleteIf('n = :n AND'),
  'an empty set': putOf({ ...Key, v: { SS: [] } }),
  'a set with a member twice': putOf({ ...Key, v: { NS: ['1', '1.0'] } }),
  'a number that is none': putOf({ ...Key, v: { N: '1x' } }),
  'a number of 39 digits': putOf({ ...Key, v: { N: '1'.repeat(39) } }),
  'a number that is too large': putOf({ ...Key, v: { N: '1E126' } }),
  'a number that is too small': putOf({ ...Key, v: { N: '1E-131' } }),
  'an empty key': putOf({ ...Key, PK: { S: '' } }),
  'a missing key': putOf({ PK: { S: 'p' } }),
  'a key of another type': putOf({ ...Key, SK: { N: '1' } }),
  'a key that is too long': putOf({ ...Key, SK: { S: 'x'.repeat(1_025) } }),
  'an empty key of the index': putOf({ ...Key, GSI1PK: { S: '' }, GSI1SK: { S: 'a' } }),
  'more levels than 32': putOf({ ...Key, v: nested(33) }),
  'a key with more than the key': { operation: 'GetItem', input: { TableName, Key: { ...Key, more: { S: 'x' } } } },
  'an item of more than 400 KiB': putOf({ ...Key, v: { S: 'x'.repeat(LONGEST + 1) } }),
  'a transaction of nothing': transaction([]),
  'a transaction of 101 actions': transaction(Array.from({ length: 101 }, (_, place) => putAt(place, { N: '1' }))),
  'a transaction of more than 4 MB': transaction(
    Array.from({ length: 11 }, (_, place) => putAt(place, { S: 'x'.repeat(399_000) })),
  ),
  'two actions on one item': transaction([putAt(1, { N: '1' }), putAt(1, { N: '2' })]),
  'a check of nothing': transaction([{ ConditionCheck: { TableName, Key } }]),
  'a request token that is too long': transaction([putAt(1, { N: '1' })], { ClientRequestToken: 'x'.repeat(37) }),
  'a filter on the key': {
    operation: 'Query',
    input: withPlaceholders({ KeyConditionExpression: 'PK = :s', FilterExpression: 'SK = :s' }),
  },
  'a query without a partition': {
    operation: 'Query',
    input: withPlaceholders({ KeyConditionExpression: 'SK = :s' }),
  },
  'a consistent read of the index': {
    operation: 'Query',
    input: withPlaceholders({ IndexName: 'GSI1', KeyConditionExpression: 'GSI1PK = :s', ConsistentRead: true }),
  },
  'an index that is not there': {
    operation: 'Query',
    input: withPlaceholders({ IndexName: 'GSI2', KeyConditionExpression: 'GSI1PK = :s' }),
  },
};

const VALID: Readonly<Record<string, RandomRequest>> = {
  'clauses in any order and case': update('remove n set s = :s'),
  'right-hand sides before the update': update('SET n = :nine, #copy = n'),
  'a list index after a removal before it': update('REMOVE l[0] SET l[2] = :nine'),
  'a removal beyond the end': update('REMOVE l[7], nowhere'),
  'a set that loses all its members': update('DELETE #set :set'),
  'a sum of a function': update('SET n = if_not_exists(nowhere, :n) + n'),
  'a difference': update('SET n = :n - n'),
  'a list before a list': update('SET l = list_append(l, l)'),
  'a dot in a name': update('SET #dots = :n'),
  'a reserved word by a placeholder': update('SET #size = :n'),
  'an update without an expression': { operation: 'UpdateItem', input: { TableName, Key } },
  'NOT before AND before OR': deleteIf('NOT n = :n AND s = :s OR n = :nine'),
  'a size of a text with an emoji': deleteIf('size(s) = :n'),
  'a nested path': deleteIf('m.x = :n AND l[1] = :n AND attribute_type(n, :type)'),
  'an item of exactly 400 KiB': putOf({ ...Key, v: { S: 'x'.repeat(LONGEST) } }),
  'the longest number': putOf({ ...Key, v: { N: `-${'9'.repeat(38)}E87` } }),
};

const bench = useStoreBench();
const clients: Partial<Record<'memory' | 'local', DynamoDBDocumentClient>> = {};

beforeAll(async () => {
  clients.memory = createDocumentClient({ backend: createMemoryBackend(), maxAttempts: 1 });
  clients.local = createDocumentClient({ ...LOCAL_ACCESS, endpoint: bench.backendEndpoint, maxAttempts: 1 });
  for (const client of [clients.memory, clients.local]) await createTable(client, TableName, systemClock);
  return () => clients.local?.destroy();
});

/** The answer, or the name of the refusal, and the item afterwards. */
async function outcomes(request: RandomRequest): Promise<readonly [unknown, unknown]> {
  const { memory, local } = clients;
  if (memory === undefined || local === undefined) throw new Error('the clients are ready only within a test');
  return [await outcome(memory, request), await outcome(local, request)];
}

async function outcome(client: DynamoDBDocumentClient, request: RandomRequest): Promise<unknown> {
  await sendRandom(client, { operation: 'PutItem', input: { TableName, Item: { ...Key, ...STORED } } });
  const answer = await sendRandom(client, request).then(
    (given) => ({ ...given, $metadata: undefined }),
    (error: unknown) => (error instanceof Error ? error.name : error),
  );
  const read: RandomRequest = { operation: 'GetItem', input: { TableName, Key, ConsistentRead: true } };
  return { answer, item: { ...(await sendRandom(client, read)), $metadata: undefined } };
}

describe('refused, with nothing changed', () => {
  test.each(Object.entries(INVALID))('%s', async (_, request) => {
    const [memory, local] = await outcomes(request);
    expect(memory).toEqual({ answer: 'ValidationException', item: { Item: { ...Key, ...STORED } } });
    expect(memory).toEqual(local);
  });
});

describe('understood the same way', () => {
  test.each(Object.entries(VALID))('%s', async (_, request) => {
    const [memory, local] = await outcomes(request);
    expect(memory).not.toMatchObject({ answer: 'ValidationException' });
    expect(memory).toEqual(local);
  });
});
