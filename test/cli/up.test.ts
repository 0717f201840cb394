import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { isRunning } from '../../src/local/process-identity.ts';
import { answersOn } from '../local/listening.ts';
import { childrenOf, commandOf } from '../local/processes.ts';
import { runCli, startCli, type Running } from '../support/process-cli.ts';
import { until } from '../support/until.ts';

const linux = process.platform === 'linux';
const anAddress = expect.stringMatching(/^http:\/\/127\.0\.0\.1:\d+$/) as string;

test('up prints variables that the next command needs nothing else for', async () => {
  // Arrange
  const up = start(['up']);
  await up.stderr.when(1, (line) => line.startsWith('ready'));
  const variables = Object.fromEntries(up.stdout.entries.map(variableOf));

  // Act
  const listed = await runCli(['queues', 'ls', '--json'], { env: variables });

  // Assert
  expect(variables).toEqual({
    AWS_ENDPOINT_URL_SQS: anAddress,
    AWS_ENDPOINT_URL_DYNAMODB: anAddress,
    AWS_REGION: 'us-east-1',
    AWS_ACCESS_KEY_ID: 'local',
    AWS_SECRET_ACCESS_KEY: 'local',
    ONLYONCE_PROVIDER_URL: anAddress,
  });
  expect(listed.code).toBe(0);
  expect(listed.json()).toMatchObject([{ name: 'onlyonce-charges' }, { name: 'onlyonce-charges-dlq' }]);
});

test('up --json prints one object, and Ctrl-C ends everything, frees the ports and is no failure', async () => {
  // Arrange
  const up = start(['up', '--json']);
  await up.stderr.when(1, (line) => line.startsWith('ready'));
  const [line = ''] = up.stdout.entries;
  const ports = portsOf(JSON.parse(line) as Record<string, string>);
  const before = await Promise.all(ports.map(answersOn));

  // Act
  up.signal('SIGINT');
  const end = await up.ended;

  // Assert
  expect(before).toEqual([true, true, true]);
  expect(end.code).toBe(0);
  expect(end.json()).toHaveLength(1);
  expect(await Promise.all(ports.map(answersOn))).toEqual([false, false, false]);
});

test('up --provider-only starts the payment provider and nothing else', async () => {
  // Arrange
  const up = start(['up', '--provider-only', '--json']);
  await up.stderr.when(1, (line) => line.startsWith('ready'));
  const [line = ''] = up.stdout.entries;
  const variables = JSON.parse(line) as Record<string, string>;

  // Act
  const health = await fetch(new URL('/health', variables['ONLYONCE_PROVIDER_URL']));
  up.signal('SIGTERM');
  const end = await up.ended;

  // Assert
  expect(variables).toEqual({ ONLYONCE_PROVIDER_URL: anAddress });
  expect([health.status, end.code]).toEqual([200, 0]);
});

test.skipIf(!linux)('up that is killed by SIGKILL leaves no process running and no port open', async () => {
  // Arrange
  const up = start(['up', '--json']);
  await up.stderr.when(1, (line) => line.startsWith('ready'));
  const ports = portsOf(JSON.parse(up.stdout.entries[0] ?? '') as Record<string, string>);
  const children = childrenOf(up.pid);

  // Act
  await up.kill();

  // Assert
  expect(children.length).toBeGreaterThanOrEqual(4); // SQS, DynamoDB, the provider, and what watches over them
  await until(() => !children.some(isRunning));
  expect(await Promise.all(ports.map(answersOn))).toEqual([false, false, false]);
});

test.skipIf(!linux)('up whose SQS dies stops the rest and fails with a sentence', async () => {
  // Arrange
  const up = start(['up', '--json']);
  await up.stderr.when(1, (line) => line.startsWith('ready'));
  const ports = portsOf(JSON.parse(up.stdout.entries[0] ?? '') as Record<string, string>);
  const sqs = childrenOf(up.pid).find(({ pid }) => commandOf(pid).includes('queue-server'));

  // Act
  process.kill(sqs?.pid ?? 0, 'SIGKILL');
  const end = await up.ended;

  // Assert
  expect(end.code).toBe(1);
  expect(end.stderr).toContain('a local backend ended by itself; everything else was stopped');
  expect(end.stderr).not.toMatch(/^\s+at /m);
  expect(await Promise.all(ports.map(answersOn))).toEqual([false, false, false]);
});

test.each(['--sqs-port', '--dynamodb-port', '--provider-port'])(
  'up with a taken %s fails with a sentence that names the port',
  async (flag) => {
    // Arrange
    const holder = createServer().listen(0, '127.0.0.1');
    await once(holder, 'listening');
    onTestFinished(() => void holder.close());
    const address = holder.address();
    const port = typeof address === 'object' && address !== null ? String(address.port) : '';

    // Act
    const end = await runCli(['up', flag, port]);

    // Assert
    expect(end.code).toBe(1);
    expect(end.stderr).toContain(port);
    expect(end.stderr).not.toMatch(/^\s+at /m);
    expect(end.stdout).toBe('');
  },
);

test('up --data and --journal keep what was charged beyond a restart', async () => {
  // Arrange
  const folder = mkdtempSync(join(tmpdir(), 'onlyonce-'));
  onTestFinished(() => {
    rmSync(folder, { recursive: true });
  });
  const kept = ['up', '--json', '--data', join(folder, 'tables.db'), '--journal', join(folder, 'journal.ndjson')];
  const first = start(kept);
  await first.stderr.when(1, (line) => line.startsWith('ready'));
  const env = JSON.parse(first.stdout.entries[0] ?? '') as Record<string, string>;
  await runCli(['produce', 'charges', '--count', '1', '--seed', '1'], { env });
  const worker = startCli(['work', 'charges', '--json', '--wait-seconds', '1'], { env });
  const { key } = await worker.event({ event: 'outcome', outcome: 'completed' });
  worker.signal('SIGTERM');
  await worker.ended;
  first.signal('SIGTERM');
  await first.ended;

  // Act
  const second = start(kept);
  await second.stderr.when(1, (line) => line.startsWith('ready'));
  const effect = await runCli(['effects', 'get', 'charges', String(key), '--json'], {
    env: JSON.parse(second.stdout.entries[0] ?? '') as Record<string, string>,
  });

  // Assert
  expect(effect.json()).toMatchObject([{ key, status: 'COMPLETED' }]);
  expect(readFileSync(join(folder, 'journal.ndjson'), 'utf8')).toContain(String(key));
});

function start(args: readonly string[]): Running {
  const running = startCli(args);
  onTestFinished(async () => {
    await running.kill();
  });
  return running;
}

function variableOf(line: string): [string, string] {
  const [, name = '', value = ''] = /^export (\w+)=(.*)$/.exec(line) ?? [];
  return [name, value];
}

function portsOf(variables: Record<string, string>): number[] {
  const urls = ['AWS_ENDPOINT_URL_SQS', 'AWS_ENDPOINT_URL_DYNAMODB', 'ONLYONCE_PROVIDER_URL'];
  return urls.map((name) => Number(new URL(variables[name] ?? '').port));
}
