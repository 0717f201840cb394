import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, type Server } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { CreateTableCommand, GetItemCommand, PutItemCommand } from '@aws-sdk/client-dynamodb';
import { ReceiveMessageCommand, SendMessageCommand } from '@aws-sdk/client-sqs';
import { afterEach, expect, test, vi } from 'vitest';
import { ConfigurationError, EnvironmentError } from '../../src/errors.ts';
import { startLocalBackends, type LocalBackends } from '../../src/local/backends.ts';
import { startChild } from '../../src/local/child-process.ts';
import { loadCompanion } from '../../src/local/companion.ts';
import { siblingEntry } from '../../src/local/reaper-link.ts';
import { createQueue, dynamodbClient, sqsClient } from './aws-clients.ts';
import { until } from '../support/until.ts';
import { answersOn, listeningAddresses } from './listening.ts';
import { childrenOf, commandOf } from './processes.ts';

const packaged = (await loadCompanion()).dynoxideBinary();
const available = packaged !== undefined;

afterEach(() => {
  vi.unstubAllEnvs();
});

test.skipIf(!available)('both servers work, listen on 127.0.0.1 only, and end with stop', async () => {
  // Arrange
  const backends = await startLocalBackends();
  const ports = portsOf(backends);

  // Act
  const received = await sendAndReceive(backends.sqsEndpoint);
  const stored = await putAndGet(backends.dynamodbEndpoint);
  const addresses = process.platform === 'linux' ? ports.map(listeningAddresses) : [];
  await backends.stop();

  // Assert
  expect(received).toBe('over SQS');
  expect(stored).toBe('in DynamoDB');
  for (const listened of addresses) expect(listened).toEqual(['0100007F']);
  expect(await Promise.all(ports.map(answersOn))).toEqual([false, false]);
  expect(await backends.exited).toBeUndefined();
});

test.skipIf(!available)('tables in a file outlive the servers', async () => {
  // Arrange
  const folder = mkdtempSync(join(tmpdir(), 'onlyonce-'));
  const dbPath = join(folder, 'tables.db');
  const first = await startLocalBackends({ dbPath });
  await putAndGet(first.dynamodbEndpoint);
  await first.stop();

  // Act
  const second = await startLocalBackends({ dbPath });
  const stored = await get(second.dynamodbEndpoint);
  await second.stop();

  // Assert
  expect(stored).toBe('in DynamoDB');
  rmSync(folder, { recursive: true });
});

test.skipIf(!available)('a server that dies is named by exited', async () => {
  // Arrange
  const sqsPort = await freedPort();
  const backends = await startLocalBackends({ sqsPort });
  const server = await until(() =>
    childrenOf(process.pid).find(({ pid }) => commandOf(pid).includes(`--port ${String(sqsPort)}`)),
  );

  // Act
  process.kill(server.pid, 'SIGKILL');
  const exit = await backends.exited;

  // Assert
  expect(exit).toMatchObject({ name: 'SQS', code: null, signal: 'SIGKILL' });
  await backends.stop();
});

test.skipIf(!available).each([
  ['sqsPort', 'SQS', 'dynamodbPort'],
  ['dynamodbPort', 'DynamoDB', 'sqsPort'],
] as const)(
  'a taken %s is an error that names the server and the port, and the other server ends',
  async (taken, name, other) => {
    // Arrange
    const holder = await listenAnywhere();
    const takenPort = portOf(holder);
    const otherPort = await freedPort();

    // Act
    const start = startLocalBackends({ [taken]: takenPort, [other]: otherPort });

    // Assert
    await expect(start).rejects.toThrow(EnvironmentError);
    await expect(start).rejects.toThrow(
      new RegExp(`local ${name} ended before it was ready[^]*Port ${String(takenPort)} is taken`),
    );
    expect(await answersOn(otherPort)).toBe(false);
    holder.close();
  },
);

test.skipIf(!available)('a start that is given up leaves nothing running', async () => {
  // Arrange
  const [sqsPort, dynamodbPort] = [await freedPort(), await freedPort()];
  const caller = new AbortController();
  const start = startLocalBackends({ sqsPort, dynamodbPort, signal: caller.signal });

  // Act
  caller.abort(new Error('changed my mind'));

  // Assert
  await expect(start).rejects.toThrow('changed my mind');
  expect(await answersOn(sqsPort)).toBe(false);
  expect(await answersOn(dynamodbPort)).toBe(false);
});

test.skipIf(!available)('a server that does not answer within the deadline is named', async () => {
  // Arrange
  const folder = mkdtempSync(join(tmpdir(), 'onlyonce-'));
  vi.stubEnv('DYNOXIDE_BIN', silentProgram(folder));

  // Act
  const start = startLocalBackends({ deadlineMs: 3_000 });

  // Assert
  await expect(start).rejects.toThrow(/local DynamoDB did not answer within 3000 ms[^]*thinking/);
  rmSync(folder, { recursive: true });
});

test.skipIf(!available)('a server that failed ends the wait for one that is still starting', async () => {
  // Arrange
  const folder = mkdtempSync(join(tmpdir(), 'onlyonce-'));
  vi.stubEnv('DYNOXIDE_BIN', silentProgram(folder));
  const holder = await listenAnywhere();

  // Act
  const start = startLocalBackends({ sqsPort: portOf(holder), deadlineMs: 600_000 });

  // Assert
  await expect(start).rejects.toThrow('local SQS ended before it was ready');
  holder.close();
  rmSync(folder, { recursive: true });
});

test('ports out of range are refused, all at once', async () => {
  // Act
  const start = startLocalBackends({ sqsPort: -1, dynamodbPort: 65_536 });

  // Assert
  await expect(start).rejects.toThrow(ConfigurationError);
  await expect(start).rejects.toMatchObject({ faults: [{ name: 'sqsPort' }, { name: 'dynamodbPort' }] });
});

test('without the companion package the error names the one package to add and the other ways on', async () => {
  // Act
  const start = startLocalBackends({ resolveCompanion: () => undefined });

  // Assert
  await expect(start).rejects.toThrow(EnvironmentError);
  await expect(start).rejects.toThrow('npm install --save-dev onlyonce-local-backends');
  await expect(start).rejects.toThrow(/docker compose up[^]*AWS_ENDPOINT_URL_SQS[^]*AWS_ENDPOINT_URL_DYNAMODB/);
});

test('a companion package of another shape is refused', async () => {
  // Act
  const load = loadCompanion(() => siblingEntry('until', new URL('../support/until.ts', import.meta.url).href));

  // Assert
  await expect(load).rejects.toThrow('onlyonce-local-backends does not fit this version');
});

test('DYNOXIDE_BIN that names nothing is an error that says so, even where a packaged program exists', async () => {
  // Arrange
  vi.stubEnv('DYNOXIDE_BIN', '/no/such/dynoxide');

  // Act
  const start = startLocalBackends();

  // Assert
  await expect(start).rejects.toThrow('DYNOXIDE_BIN is /no/such/dynoxide, which does not exist');
});

test('the SQS process ends in order when its stdin ends', async () => {
  // Arrange
  const child = startChild({
    name: 'queue-server',
    command: process.execPath,
    args: [siblingEntry('queue-server', import.meta.resolve('../../src/local/backends.ts'))],
    stdin: 'none',
  });

  // Act
  const exit = await child.exited;

  // Assert
  expect(exit).toEqual({ code: 0, signal: null });
});

/** A program that starts and never listens. */
function silentProgram(folder: string): string {
  const path = join(folder, 'silent');
  writeFileSync(path, '#!/bin/sh\necho "thinking" >&2\nexec sleep 600\n', { mode: 0o755 });
  return path;
}

function portsOf(backends: LocalBackends): [number, number] {
  return [Number(new URL(backends.sqsEndpoint).port), Number(new URL(backends.dynamodbEndpoint).port)];
}

async function sendAndReceive(endpoint: string): Promise<string | undefined> {
  const sqs = sqsClient(endpoint);
  const queueUrl = await createQueue(sqs, 'both-work');
  const poll = sqs.send(new ReceiveMessageCommand({ QueueUrl: queueUrl, WaitTimeSeconds: 20 }));
  await sqs.send(new SendMessageCommand({ QueueUrl: queueUrl, MessageBody: 'over SQS' }));
  const { Messages } = await poll;
  sqs.destroy();
  return Messages?.[0]?.Body;
}

async function putAndGet(endpoint: string): Promise<string | undefined> {
  const dynamodb = dynamodbClient(endpoint);
  await dynamodb.send(
    new CreateTableCommand({
      TableName: 'both-work',
      BillingMode: 'PAY_PER_REQUEST',
      AttributeDefinitions: [{ AttributeName: 'PK', AttributeType: 'S' }],
      KeySchema: [{ AttributeName: 'PK', KeyType: 'HASH' }],
    }),
  );
  await dynamodb.send(
    new PutItemCommand({ TableName: 'both-work', Item: { PK: { S: 'key' }, value: { S: 'in DynamoDB' } } }),
  );
  dynamodb.destroy();
  return get(endpoint);
}

async function get(endpoint: string): Promise<string | undefined> {
  const dynamodb = dynamodbClient(endpoint);
  const { Item } = await dynamodb.send(
    new GetItemCommand({ TableName: 'both-work', Key: { PK: { S: 'key' } }, ConsistentRead: true }),
  );
  dynamodb.destroy();
  return Item?.['value']?.S;
}

async function listenAnywhere(): Promise<Server> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  return server;
}

function portOf(server: Server): number {
  const address = server.address();
  if (typeof address !== 'object' || address === null) throw new Error('not listening');
  return address.port;
}

async function freedPort(): Promise<number> {
  const server = await listenAnywhere();
  const port = portOf(server);
  server.close();
  await once(server, 'close');
  return port;
}
