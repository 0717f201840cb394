/** All tables of one in-memory DynamoDB. */
import type { Clock } from '../../clock.ts';
import { MemoryTable } from './memory-table.ts';
import { checkFields, flagOf, recordOf, textOf, type WireRequest } from './request-fields.ts';
import { invalid, ServiceError } from './service-error.ts';
import { parseTableDefinition } from './table-definition.ts';
import { TransactionTokens } from './transaction-tokens.ts';

export class Database {
  readonly tokens: TransactionTokens;
  readonly #tables = new Map<string, MemoryTable>();
  #isLagging = false;

  constructor(clock: Clock) {
    this.tokens = new TransactionTokens(clock);
  }

  get tables(): readonly MemoryTable[] {
    return [...this.#tables.values()];
  }

  /** @throws {ServiceError} ResourceNotFoundException */
  table(request: WireRequest): MemoryTable {
    const name = textOf(request, 'TableName');
    const table = this.#tables.get(name);
    if (table === undefined) throw new ServiceError('ResourceNotFoundException', 'Requested resource not found');
    return table;
  }

  createTable(request: WireRequest, ttlAttribute?: string): object {
    const definition = parseTableDefinition(request);
    if (this.#tables.has(definition.name)) {
      throw new ServiceError('ResourceInUseException', `Table already exists: ${definition.name}`);
    }
    const table = new MemoryTable(definition);
    table.ttlAttribute = ttlAttribute;
    if (this.#isLagging) table.holdIndexes();
    this.#tables.set(definition.name, table);
    return { TableDescription: describe(table) };
  }

  describeTable(request: WireRequest): object {
    checkFields('DescribeTable', request, ['TableName']);
    return { Table: describe(this.table(request)) };
  }

  describeTimeToLive(request: WireRequest): object {
    checkFields('DescribeTimeToLive', request, ['TableName']);
    const { ttlAttribute } = this.table(request);
    const status = ttlAttribute === undefined ? 'DISABLED' : 'ENABLED';
    return { TimeToLiveDescription: { TimeToLiveStatus: status, AttributeName: ttlAttribute } };
  }

  updateTimeToLive(request: WireRequest): object {
    checkFields('UpdateTimeToLive', request, ['TableName', 'TimeToLiveSpecification']);
    const table = this.table(request);
    const specification = recordOf(request, 'TimeToLiveSpecification');
    const isOn = flagOf(specification, 'Enabled', false);
    if (isOn === (table.ttlAttribute !== undefined)) {
      throw invalid(`TimeToLive is already ${isOn ? 'enabled' : 'disabled'}`);
    }
    table.ttlAttribute = isOn ? textOf(specification, 'AttributeName') : undefined;
    return { TimeToLiveSpecification: specification };
  }

  holdIndexes(): void {
    this.#isLagging = true;
    for (const table of this.tables) table.holdIndexes();
  }

  releaseIndexes(): void {
    this.#isLagging = false;
    for (const table of this.tables) table.releaseIndexes();
  }
}

function describe(table: MemoryTable): object {
  const { wire, name } = table.definition;
  const indexes = wire['GlobalSecondaryIndexes'];
  return {
    TableName: name,
    TableStatus: 'ACTIVE',
    TableArn: `arn:aws:dynamodb:in-process:000000000000:table/${name}`,
    AttributeDefinitions: wire['AttributeDefinitions'],
    KeySchema: wire['KeySchema'],
    BillingModeSummary: { BillingMode: 'PAY_PER_REQUEST' },
    ...(Array.isArray(indexes) && {
      GlobalSecondaryIndexes: indexes.map((index: object) => ({ ...index, IndexStatus: 'ACTIVE' })),
    }),
  };
}
