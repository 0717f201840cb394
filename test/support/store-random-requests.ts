/** Random requests on few keys, as they go over the wire: most are valid, some are not. */
import {
  BatchGetItemCommand,
  DeleteItemCommand,
  GetItemCommand,
  PutItemCommand,
  QueryCommand,
  ScanCommand,
  TransactGetItemsCommand,
  TransactWriteItemsCommand,
  UpdateItemCommand,
} from '@aws-sdk/client-dynamodb';
import type { DynamoDBDocumentClient } from '@aws-sdk/lib-dynamodb';
import { convertToAttr } from '@aws-sdk/util-dynamodb';
import fc from 'fast-check';
import { all, attributeType, present } from '../../src/store/conditions.ts';
import { Placeholders, type Condition } from '../../src/store/expressions.ts';
import { condition, pathText } from './store-random-conditions.ts';
import { attributes, key, PARTITIONS, type Values } from './store-random-values.ts';
import { parts, updateText, type Part } from './store-random-updates.ts';

/** One request by the name of its operation. */
export interface RandomRequest {
  readonly operation:
    | 'GetItem'
    | 'PutItem'
    | 'UpdateItem'
    | 'DeleteItem'
    | 'BatchGetItem'
    | 'Query'
    | 'Scan'
    | 'TransactGetItems'
    | 'TransactWriteItems';
  readonly input: object;
}

/** Sends it, whether its types fit or not: to refuse what does not fit is for DynamoDB. */
export function sendRandom(client: DynamoDBDocumentClient, { operation, input }: RandomRequest): Promise<object> {
  switch (operation) {
    case 'GetItem':
      return client.send(new GetItemCommand(input as never));
    case 'PutItem':
      return client.send(new PutItemCommand(input as never));
    case 'UpdateItem':
      return client.send(new UpdateItemCommand(input as never));
    case 'DeleteItem':
      return client.send(new DeleteItemCommand(input as never));
    case 'BatchGetItem':
      return client.send(new BatchGetItemCommand(input as never));
    case 'Query':
      return client.send(new QueryCommand(input as never));
    case 'Scan':
      return client.send(new ScanCommand(input as never));
    case 'TransactGetItems':
      return client.send(new TransactGetItemsCommand(input as never));
    case 'TransactWriteItems':
      return client.send(new TransactWriteItemsCommand(input as never));
  }
}

/** The placeholders as the wire takes them: the builders of conditions are given plain values as well. */
function wireFields(placeholders: Placeholders): object {
  const { ExpressionAttributeNames, ExpressionAttributeValues } = placeholders.fields();
  return {
    ...(ExpressionAttributeNames && { ExpressionAttributeNames }),
    ...(ExpressionAttributeValues && {
      ExpressionAttributeValues: Object.fromEntries(
        Object.entries(ExpressionAttributeValues).map(([name, each]) => [
          name,
          typeof each === 'object' ? each : convertToAttr(each),
        ]),
      ),
    }),
  };
}

const optionalCondition = fc.option(condition, { nil: undefined, freq: 3 });
const onFailure = fc.constantFrom('ALL_OLD', 'ALL_OLD', 'NONE');

interface Guard {
  readonly when: Condition | undefined;
  readonly onFailure: string;
}

const guard: fc.Arbitrary<Guard> = fc.record({ when: optionalCondition, onFailure });

/** The fields of a write: what it does, and when. */
function written(what: (placeholders: Placeholders) => object, { when, onFailure: onFailed }: Guard): object {
  const placeholders = new Placeholders();
  return {
    ...what(placeholders),
    ...(when !== undefined && { ConditionExpression: when(placeholders) }),
    ...wireFields(placeholders),
    ReturnValuesOnConditionCheckFailure: onFailed,
  };
}

const put = (Key: Values): fc.Arbitrary<object> =>
  fc.tuple(attributes, guard).map(([item, when]) => written(() => ({ Item: { ...item, ...Key } }), when));

const remove = (Key: Values): fc.Arbitrary<object> => guard.map((when) => written(() => ({ Key }), when));

const check = (Key: Values): fc.Arbitrary<object> =>
  fc.record({ when: condition, onFailure }).map((when) => written(() => ({ Key }), when));

const update =
  (changed: fc.Arbitrary<readonly Part[]>) =>
  (Key: Values): fc.Arbitrary<object> =>
    fc.tuple(changed, guard).map(([changes, { when, onFailure: onFailed }]) => {
      const guards = [...(when === undefined ? [] : [when]), ...changes.flatMap(guardOf)];
      return written((placeholders) => ({ Key, UpdateExpression: updateText(changes, placeholders) }), {
        when: guards.length === 0 ? undefined : all(...guards),
        onFailure: onFailed,
      });
    });

/** Changes within something that is not there or of another type are refused by AWS; the local DynamoDB lets some pass. */
function guardOf({ path }: Part): Condition[] {
  const [, parent = '', index] = /^(.+?)(?:\.\w+|\[(\d+)\])$/.exec(path) ?? [];
  if (parent === '') return [];
  if (index === undefined) return [attributeType(parent, 'M')];
  const before = `${parent}[${String(Number(index) - 1)}]`;
  // Nor is a list left out of which a place would be skipped.
  const isNext: Condition = (placeholders) => `attribute_exists(${pathText(placeholders, before)})`;
  return index === '0' ? [attributeType(parent, 'L')] : [attributeType(parent, 'L'), isNext];
}

/** What is returned of a list that was changed in one place differs, and is told in another test. */
const partsOfMaps = parts.map((changes) => changes.filter(({ path }) => !path.endsWith(']')));

/** Any request on this table. */
export function randomRequest(TableName: string): fc.Arbitrary<RandomRequest> {
  return fc.oneof(
    { weight: 11, arbitrary: write(TableName) },
    { weight: 4, arbitrary: transaction(TableName) },
    { weight: 3, arbitrary: read(TableName) },
    query(TableName),
    scan(TableName),
  );
}

function write(TableName: string): fc.Arbitrary<RandomRequest> {
  const single = (
    operation: RandomRequest['operation'],
    input: (key_: Values) => fc.Arbitrary<object>,
    returned: readonly string[],
  ): fc.Arbitrary<RandomRequest> =>
    fc.tuple(key.chain(input), fc.constantFrom(...returned)).map(([fields, ReturnValues]) => ({
      operation,
      input: { TableName, ...fields, ReturnValues, ReturnConsumedCapacity: 'INDEXES' },
    }));
  return fc.oneof(
    { weight: 4, arbitrary: single('PutItem', put, ['NONE', 'ALL_OLD']) },
    { weight: 4, arbitrary: single('UpdateItem', update(parts), ['NONE', 'ALL_NEW']) },
    { weight: 2, arbitrary: single('UpdateItem', update(partsOfMaps), ['UPDATED_OLD', 'UPDATED_NEW']) },
    { weight: 1, arbitrary: single('DeleteItem', remove, ['NONE', 'ALL_OLD']) },
    // What an update that makes an item says of the item before it is told in another test.
    { weight: 1, arbitrary: single('UpdateItem', updateOfPresent, ['ALL_OLD']) },
  );
}

const updateOfPresent = (Key: Values): fc.Arbitrary<object> =>
  parts.map((changes) =>
    written((placeholders) => ({ Key, UpdateExpression: updateText(changes, placeholders) }), {
      when: all(present(), ...changes.flatMap(guardOf)),
      onFailure: 'ALL_OLD',
    }),
  );

function transaction(TableName: string): fc.Arbitrary<RandomRequest> {
  const action = (Key: Values): fc.Arbitrary<object> =>
    fc.oneof(
      put(Key).map((each) => ({ Put: { TableName, ...each } })),
      { weight: 2, arbitrary: update(parts)(Key).map((each) => ({ Update: { TableName, ...each } })) },
      remove(Key).map((each) => ({ Delete: { TableName, ...each } })),
      check(Key).map((each) => ({ ConditionCheck: { TableName, ...each } })),
    );
  const keys = fc.uniqueArray(key, { minLength: 1, maxLength: 4, selector: (each) => JSON.stringify(each) });
  const actions = keys.chain((each) => fc.tuple(...each.map(action)));
  const token = fc.option(fc.constantFrom(`${TableName} 1`, `${TableName} 2`), { nil: undefined, freq: 4 });
  return fc.tuple(actions, token).map(([TransactItems, ClientRequestToken]) => ({
    operation: 'TransactWriteItems',
    input: {
      TransactItems,
      ...(ClientRequestToken !== undefined && { ClientRequestToken }),
      ReturnConsumedCapacity: 'INDEXES',
    },
  }));
}

const projection: fc.Arbitrary<object> = fc.constantFrom(
  {},
  {},
  { ProjectionExpression: 'n, #s, PK, SK', ExpressionAttributeNames: { '#s': 's' } },
  { ProjectionExpression: 'm.x, PK, SK, m.y' },
  { ProjectionExpression: 'l[0], nowhere, PK, SK' },
  // Refused: one leads into the other, and a name that is not used.
  { ProjectionExpression: 'm, m.x' },
  { ProjectionExpression: 'n', ExpressionAttributeNames: { '#s': 's' } },
);

function read(TableName: string): fc.Arbitrary<RandomRequest> {
  const keys = fc.array(key, { minLength: 1, maxLength: 4 });
  return fc.oneof(
    fc.tuple(key, fc.boolean(), projection).map(([Key, ConsistentRead, fields]): RandomRequest => ({
      operation: 'GetItem',
      input: { TableName, Key, ConsistentRead, ...fields, ReturnConsumedCapacity: 'TOTAL' },
    })),
    keys.map((Keys): RandomRequest => ({
      operation: 'BatchGetItem',
      input: { RequestItems: { [TableName]: { Keys } }, ReturnConsumedCapacity: 'TOTAL' },
    })),
    fc.tuple(keys, projection).map(([each, fields]): RandomRequest => ({
      operation: 'TransactGetItems',
      input: {
        TransactItems: each.map((Key) => ({ Get: { TableName, Key, ...fields } })),
        ReturnConsumedCapacity: 'TOTAL',
      },
    })),
  );
}

function query(TableName: string): fc.Arbitrary<RandomRequest> {
  const range = fc.constantFrom(
    '',
    '',
    ' AND #s >= :low',
    ' AND begins_with(#s, :low)',
    ' AND #s BETWEEN :low AND :high',
  );
  return fc
    .record({
      index: fc.constantFrom('GSI1', undefined),
      partition: fc.constantFrom(...PARTITIONS, 'g', 'h'),
      range,
      forward: fc.boolean(),
      consistent: fc.boolean(),
      limit: fc.option(fc.integer({ min: 1, max: 3 }), { nil: undefined }),
      filter: optionalCondition,
    })
    .map((each) => {
      const placeholders = new Placeholders();
      const filter = each.filter === undefined ? {} : { FilterExpression: each.filter(placeholders) };
      const fields: { ExpressionAttributeNames?: object; ExpressionAttributeValues?: object } =
        wireFields(placeholders);
      return {
        operation: 'Query',
        input: {
          TableName,
          ...(each.index !== undefined && { IndexName: each.index }),
          KeyConditionExpression: `#p = :p${each.range}`,
          ...filter,
          ExpressionAttributeNames: {
            ...fields.ExpressionAttributeNames,
            '#p': each.index === undefined ? 'PK' : 'GSI1PK',
            ...(each.range !== '' && { '#s': each.index === undefined ? 'SK' : 'GSI1SK' }),
          },
          ExpressionAttributeValues: {
            ...fields.ExpressionAttributeValues,
            ':p': { S: each.partition },
            ...(each.range !== '' && { ':low': { S: each.index === undefined ? 'a' : '1' } }),
            ...(each.range.includes(':high') && { ':high': { S: each.index === undefined ? 'b' : '2' } }),
          },
          ScanIndexForward: each.forward,
          ...(each.consistent && { ConsistentRead: true }),
          ...(each.limit !== undefined && { Limit: each.limit }),
          ReturnConsumedCapacity: 'TOTAL',
        },
      };
    });
}

function scan(TableName: string): fc.Arbitrary<RandomRequest> {
  return fc.record({ index: fc.constantFrom('GSI1', undefined), filter: optionalCondition }).map((each) => {
    const placeholders = new Placeholders();
    const filter = each.filter === undefined ? {} : { FilterExpression: each.filter(placeholders) };
    const IndexName = each.index === undefined ? {} : { IndexName: each.index };
    return {
      operation: 'Scan',
      input: { TableName, ...IndexName, ...filter, ...wireFields(placeholders), ReturnConsumedCapacity: 'TOTAL' },
    };
  });
}
