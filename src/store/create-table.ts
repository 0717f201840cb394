/** Creates the table, its index and its TTL. Safe to repeat and to run from many processes at once; never deletes. */
import {
  CreateTableCommand,
  DescribeTableCommand,
  DescribeTimeToLiveCommand,
  UpdateTimeToLiveCommand,
  type CreateTableCommandInput,
} from '@aws-sdk/client-dynamodb';
import type { DynamoDBDocumentClient } from '@aws-sdk/lib-dynamodb';
import { classifyFault, faultName } from '../aws-fault.ts';
import { sleep, type Clock } from '../clock.ts';
import { BackendError } from '../errors.ts';
import { TABLE } from './table.ts';

export interface TableReport {
  readonly table: string;
  /** False when it was there already. */
  readonly created: boolean;
  /** False when TTL was on already. */
  readonly ttlSwitchedOn: boolean;
}

const POLL_MS = 200;
const MAX_POLLS = 300;

export async function createTable(
  client: DynamoDBDocumentClient,
  tableName: string,
  clock: Clock,
): Promise<TableReport> {
  const created = await createIfMissing(client, tableName);
  await waitUntilActive(client, tableName, clock);
  const ttlSwitchedOn = await switchOnTtl(client, tableName);
  return { table: tableName, created, ttlSwitchedOn };
}

async function createIfMissing(client: DynamoDBDocumentClient, tableName: string): Promise<boolean> {
  try {
    await client.send(new CreateTableCommand(tableDefinition(tableName)));
    return true;
  } catch (error) {
    // Another process was faster, or it has been there all along.
    if (classifyFault(error) === 'exists') return false;
    throw error;
  }
}

async function waitUntilActive(client: DynamoDBDocumentClient, tableName: string, clock: Clock): Promise<void> {
  for (let poll = 0; poll < MAX_POLLS; poll += 1) {
    const { Table } = await client.send(new DescribeTableCommand({ TableName: tableName }));
    if (Table?.TableStatus === 'ACTIVE') return;
    await sleep(clock, POLL_MS);
  }
  throw new BackendError(`table ${tableName} did not become active within a minute`, {
    reason: 'notFound',
    retryable: true,
  });
}

async function switchOnTtl(client: DynamoDBDocumentClient, tableName: string): Promise<boolean> {
  const { TimeToLiveDescription } = await client.send(new DescribeTimeToLiveCommand({ TableName: tableName }));
  const status = TimeToLiveDescription?.TimeToLiveStatus;
  if (status === 'ENABLED' || status === 'ENABLING') return false;
  try {
    await client.send(
      new UpdateTimeToLiveCommand({
        TableName: tableName,
        TimeToLiveSpecification: { Enabled: true, AttributeName: TABLE.ttlAttribute },
      }),
    );
    return true;
  } catch (error) {
    // Switching on what another process has just switched on is refused as a validation error.
    if (faultName(error) === 'ValidationException' || classifyFault(error) === 'exists') return false;
    throw error;
  }
}

export function tableDefinition(tableName: string): CreateTableCommandInput {
  const { index } = TABLE;
  return {
    TableName: tableName,
    BillingMode: 'PAY_PER_REQUEST',
    AttributeDefinitions: [TABLE.partitionKey, TABLE.sortKey, index.partitionKey, index.sortKey].map((name) => ({
      AttributeName: name,
      AttributeType: 'S' as const,
    })),
    KeySchema: [
      { AttributeName: TABLE.partitionKey, KeyType: 'HASH' },
      { AttributeName: TABLE.sortKey, KeyType: 'RANGE' },
    ],
    GlobalSecondaryIndexes: [
      {
        IndexName: index.name,
        KeySchema: [
          { AttributeName: index.partitionKey, KeyType: 'HASH' },
          { AttributeName: index.sortKey, KeyType: 'RANGE' },
        ],
        Projection: { ProjectionType: 'ALL' },
      },
    ],
  };
}
