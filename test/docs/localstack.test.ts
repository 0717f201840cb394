import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { DescribeTableCommand, DescribeTimeToLiveCommand, DynamoDBClient } from '@aws-sdk/client-dynamodb';
import { GetQueueAttributesCommand, SQSClient } from '@aws-sdk/client-sqs';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { openConnection } from '../../src/cli/connection.ts';
import { startLocalBackends, type LocalBackends } from '../../src/local/backends.ts';
import { findQueue } from '../../src/queues/create-queues.ts';
import { deadLetterQueueName, queueName } from '../../src/queues/topology.ts';
import { STORE_DEFAULTS } from '../../src/store/store.ts';
import { REPOSITORY } from '../tooling/repository.ts';

const HOOK = path.join(REPOSITORY, 'localstack/init/ready.d/01-topology.sh');
const TABLE = STORE_DEFAULTS.tableName;
const SHARED = { region: 'us-east-1', credentials: { accessKeyId: 'local', secretAccessKey: 'local' } };

describe('the init hook of LocalStack', () => {
  let backends: LocalBackends;
  let folder: string;
  let sqs: SQSClient;
  let dynamodb: DynamoDBClient;

  beforeAll(async () => {
    backends = await startLocalBackends();
    sqs = new SQSClient({ ...SHARED, endpoint: backends.sqsEndpoint, useQueueUrlAsEndpoint: false });
    dynamodb = new DynamoDBClient({ ...SHARED, endpoint: backends.dynamodbEndpoint });
    folder = mkdtempSync(path.join(tmpdir(), 'onlyonce-localstack-'));
    const standIn = path.join(REPOSITORY, 'test/docs/awslocal.mjs');
    const program = `#!/bin/sh\nexec '${process.execPath}' '${standIn}' "$@"\n`;
    writeFileSync(path.join(folder, 'awslocal'), program, { mode: 0o755 });
  });
  afterAll(async () => {
    sqs.destroy();
    dynamodb.destroy();
    await backends.stop();
    rmSync(folder, { recursive: true, force: true });
  });

  function runHook(): { code: number | null; stdout: string; stderr: string } {
    const { status, stdout, stderr } = spawnSync('bash', [HOOK], {
      encoding: 'utf8',
      env: {
        PATH: `${folder}:${process.env['PATH'] ?? ''}`,
        AWS_ENDPOINT_URL_SQS: backends.sqsEndpoint,
        AWS_ENDPOINT_URL_DYNAMODB: backends.dynamodbEndpoint,
        AWS_REGION: 'us-east-1',
        AWS_ACCESS_KEY_ID: 'local',
        AWS_SECRET_ACCESS_KEY: 'local',
      },
    });
    return { code: status, stdout, stderr };
  }

  async function tableSettings(name: string): Promise<unknown> {
    const { Table = {} } = await dynamodb.send(new DescribeTableCommand({ TableName: name }));
    const { TimeToLiveDescription } = await dynamodb.send(new DescribeTimeToLiveCommand({ TableName: name }));
    return {
      keys: Table.KeySchema,
      attributes: Table.AttributeDefinitions,
      billing: Table.BillingModeSummary?.BillingMode,
      indexes: Table.GlobalSecondaryIndexes?.map((index) => [index.IndexName, index.KeySchema, index.Projection]),
      ttl: TimeToLiveDescription,
    };
  }

  async function queueSettings(name: string, prefix = ''): Promise<unknown> {
    const { url } = await findQueue(sqs, name);
    const { Attributes = {} } = await sqs.send(
      new GetQueueAttributesCommand({ QueueUrl: url, AttributeNames: ['All'] }),
    );
    const { VisibilityTimeout, MessageRetentionPeriod, RedrivePolicy = '', DelaySeconds } = Attributes;
    const redrive = RedrivePolicy.replace(`:${prefix}`, ':');
    return { VisibilityTimeout, MessageRetentionPeriod, DelaySeconds, redrive };
  }

  it('makes what bootstrap makes, and may run again', async () => {
    // Arrange
    const flags = { table: 'by-bootstrap', prefix: 'b-', logLevel: 'error' };
    const connection = openConnection({ sqs: backends.sqsEndpoint, dynamodb: backends.dynamodbEndpoint }, flags);
    await connection.bootstrap('charges');
    await connection.close();

    // Act
    const runs = [runHook(), runHook()];

    // Assert
    expect(runs.map(({ code, stderr }) => ({ code, stderr }))).toEqual(runs.map(() => ({ code: 0, stderr: '' })));
    expect(await tableSettings(TABLE)).toEqual(await tableSettings('by-bootstrap'));
    for (const name of [queueName('charges'), deadLetterQueueName(queueName('charges'))]) {
      expect(await queueSettings(name)).toEqual(await queueSettings(`b-${name}`, 'b-'));
    }
  });

  it('is executable and has no carriage returns', () => {
    expect(statSync(HOOK).mode & 0o111).toBe(0o111);
    expect(readFileSync(HOOK, 'utf8')).not.toContain('\r');
  });
});

describe('docker-compose.yml', () => {
  const compose = readFileSync(path.join(REPOSITORY, 'docker-compose.yml'), 'utf8');

  it('pins the image and publishes no port beyond this machine', () => {
    const images = [...compose.matchAll(/^ +image: (.+)$/gm)].map(([, image]) => image);
    const ports = [...compose.matchAll(/^ +- '(.*:\d+)'$/gm)].map(([, port]) => port);

    expect(images).toEqual(['localstack/localstack:4.14.0']);
    expect(ports).toEqual(['127.0.0.1:${LOCALSTACK_PORT:-4566}:4566']);
  });

  it('neither restarts by itself nor reaches for the Docker socket', () => {
    expect(compose).not.toMatch(/^\s+restart:/m);
    expect(compose).not.toContain('docker.sock');
  });
});
