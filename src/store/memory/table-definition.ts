/** What a table is, read from CreateTable: its key and its indexes. */
import { checkFields, recordsOf, recordOf, textOf, wordOf, type WireRequest } from './request-fields.ts';
import { invalid, unsupported } from './service-error.ts';

export interface KeyAttribute {
  readonly name: string;
  readonly type: 'S' | 'N' | 'B';
}

export interface KeySchema {
  readonly partition: KeyAttribute;
  readonly sort: KeyAttribute | undefined;
}

export interface TableDefinition {
  readonly name: string;
  readonly key: KeySchema;
  readonly indexes: readonly { readonly name: string; readonly key: KeySchema }[];
  /** As CreateTable gave them, for DescribeTable. */
  readonly wire: WireRequest;
}

const KNOWN = [
  'TableName',
  'AttributeDefinitions',
  'KeySchema',
  'GlobalSecondaryIndexes',
  'BillingMode',
  'Tags',
  'TableClass',
  'DeletionProtectionEnabled',
];
const FEW = { min: 1, max: 100 };

export function parseTableDefinition(request: WireRequest): TableDefinition {
  checkFields('CreateTable', request, KNOWN);
  const name = textOf(request, 'TableName');
  if (!/^[\w.-]{3,255}$/.test(name)) {
    throw invalid('TableName must be 3 to 255 characters long, of a-z, A-Z, 0-9, _, - and .');
  }
  if (wordOf(request, 'BillingMode', ['PROVISIONED', 'PAY_PER_REQUEST']) === 'PROVISIONED') {
    throw unsupported('provisioned capacity');
  }
  const types: AttributeTypes = new Map(
    recordsOf(request, 'AttributeDefinitions', FEW).map((each) => [
      textOf(each, 'AttributeName'),
      wordOf(each, 'AttributeType', ['S', 'N', 'B']),
    ]),
  );
  const indexes = request['GlobalSecondaryIndexes'] === undefined ? [] : parseIndexes(request, types);
  return { name, key: parseKeySchema(request, types), indexes, wire: request };
}

type AttributeTypes = ReadonlyMap<string, KeyAttribute['type']>;

function parseIndexes(request: WireRequest, types: AttributeTypes): TableDefinition['indexes'] {
  return recordsOf(request, 'GlobalSecondaryIndexes', FEW).map((each) => {
    if (recordOf(each, 'Projection')['ProjectionType'] !== 'ALL') throw unsupported('an index without all attributes');
    return { name: textOf(each, 'IndexName'), key: parseKeySchema(each, types) };
  });
}

function parseKeySchema(request: WireRequest, types: AttributeTypes): KeySchema {
  const [partition, sort] = recordsOf(request, 'KeySchema', { min: 1, max: 2 }).map((each, index) => {
    const name = textOf(each, 'AttributeName');
    const type = types.get(name);
    if (type === undefined || each['KeyType'] !== (index === 0 ? 'HASH' : 'RANGE')) {
      throw invalid('One or more parameter values were invalid: Some index key attributes are not defined');
    }
    return { name, type };
  });
  if (partition === undefined) throw invalid('KeySchema must not be empty');
  return { partition, sort };
}

export function keyAttributes(schema: KeySchema): readonly KeyAttribute[] {
  return schema.sort === undefined ? [schema.partition] : [schema.partition, schema.sort];
}
