import { ListTablesCommand } from '@aws-sdk/client-dynamodb';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { createDocumentClient } from '../../src/store/client.ts';
import { processLab } from '../support/process-bench.ts';
import { runCli, startCli, type Finished } from '../support/process-cli.ts';
import { LOCAL_ACCESS } from '../support/store-bench.ts';
import { startStoreTransport, type StoreTransport } from '../support/store-transport.ts';

const NUMBERS = [22, 23, 24, 25, 26, 27, 28, 29];

const lab = processLab();
let transport: StoreTransport;

beforeAll(async () => {
  transport = await startStoreTransport(lab.endpoints.dynamodb);
});
afterAll(async () => {
  await transport.close();
});

function env(endpoint: string = lab.endpoints.dynamodb): Record<string, string> {
  return { AWS_ENDPOINT_URL_DYNAMODB: endpoint, ONLYONCE_TABLE: 'users-table' };
}

function onLab(args: readonly string[]): Promise<Finished> {
  return runCli(['pattern', ...args], { env: env() });
}

async function tables(): Promise<string[]> {
  const client = createDocumentClient({ ...LOCAL_ACCESS, endpoint: lab.endpoints.dynamodb });
  const { TableNames = [] } = await client.send(new ListTablesCommand({}));
  client.destroy();
  return TableNames;
}

test('without a number it lists all patterns, one a line, and needs no backend', async () => {
  const text = await runCli(['pattern']);
  const json = await runCli(['pattern', '--json']);

  expect(text).toMatchObject({ code: 0, stderr: '' });
  expect(text.stdout.trimEnd().split('\n')).toHaveLength(NUMBERS.length);
  expect(json).toMatchObject({ code: 0, stderr: '' });
  expect(json.json().map(({ pattern }) => pattern)).toEqual(NUMBERS);
  for (const line of json.json()) expect(Object.keys(line)).toEqual(['pattern', 'title', 'summary']);
});

test.each(['21', '30', '022', '22.0', '', 'ALL', 'locks'])(
  'the unknown number "%s" exits with 2 and the list',
  async (number) => {
    const end = await runCli(['pattern', number]);

    expect(end).toMatchObject({ code: 2, stdout: '' });
    expect(end.stderr).toContain('must be all, or one of:');
    for (const known of NUMBERS) expect(end.stderr).toMatch(new RegExp(`^${String(known)}  `, 'm'));
    expect(end.stderr).not.toMatch(/^\s+at /m);
  },
);

test('all of them come to what they must, as one line each, and leave no table behind', async () => {
  const end = await onLab(['all', '--json']);

  expect(end.stderr).not.toContain('expected');
  expect(end.code).toBe(0);
  expect(end.json().map(({ pattern, ok }) => [pattern, ok])).toEqual(NUMBERS.map((number) => [number, true]));
  for (const line of end.json()) expect(Object.keys(line)).toEqual(['pattern', 'title', 'ok', 'results']);
  expect(await tables()).toEqual([]);
});

test('as text it shows each request with names and values filled in, and what came of it', async () => {
  const end = await onLab(['25']);

  expect(end).toMatchObject({ code: 0, stderr: '' });
  expect(end.stdout).toMatch(/^>>> TransactWriteItems$/m);
  expect(end.stdout).toMatch(/^ {4}- Put users-table-pattern-25-[0-9a-f]{8}$/m);
  expect(end.stdout).toMatch(/^ {8}condition: {2}.*stock >= 5/m);
  expect(end.stdout).toContain('refused: TransactionCanceledException (None, ConditionalCheckFailed, None)');
  expect(end.stdout).toMatch(/^=== An order of 2 ===\n"OK"$/m);
  // No placeholder is left where a name or value belongs.
  expect(end.stdout).not.toMatch(/[#:][nv]\d/);
});

test('a long series is abbreviated unless all of it is asked for', async () => {
  const short = await onLab(['24']);
  const full = await onLab(['24', '--full']);
  const byVariable = await runCli(['pattern', '24'], { env: { ...env(), ONLYONCE_FULL: '1' } });

  const shownAdditions = ({ stdout }: Finished): number => stdout.match(/^>>> UpdateItem /gm)?.length ?? 0;
  expect(short.stdout).toContain('... (+47 more UpdateItem calls not shown)');
  expect(shownAdditions(short)).toBeLessThan(10);
  expect(full.stdout).not.toContain('not shown');
  expect(shownAdditions(full)).toBeGreaterThanOrEqual(50);
  expect(byVariable.stdout).not.toContain('not shown');
});

test('without an endpoint it works on backends of its own', async () => {
  const end = await runCli(['pattern', '23', '--json']);

  expect(end).toMatchObject({ code: 0 });
  expect(end.stderr).toContain('local backends for this command alone');
  expect(end.json()).toMatchObject([{ pattern: 23, ok: true }]);
});

test('the endpoint of SQS alone is a usage error', async () => {
  const end = await runCli(['pattern', '23'], { env: { AWS_ENDPOINT_URL_SQS: 'http://127.0.0.1:1' } });

  expect(end).toMatchObject({ code: 2, stdout: '' });
  expect(end.stderr).toContain('set AWS_ENDPOINT_URL_DYNAMODB too');
});

test('an endpoint that is no URL is a usage error', async () => {
  const end = await runCli(['pattern', '23', '--dynamodb-endpoint', 'here']);

  expect(end).toMatchObject({ code: 2, stdout: '' });
  expect(end.stderr).toContain('"here" is not a URL');
});

test('where nothing answers it exits with 1 and a sentence', async () => {
  const end = await runCli(['pattern', 'all', '--json'], { env: env('http://127.0.0.1:1') });

  expect(end).toMatchObject({ code: 1, stdout: '' });
  expect(end.stderr).toMatch(/^onlyonce: .*ECONNREFUSED 127\.0\.0\.1:1$/m);
  expect(end.stderr).not.toMatch(/^\s+at /m);
});

test('a store that accepts what it must refuse is caught, named, and exits with 1', async () => {
  // Arrange: the third transaction is the order that must be refused.
  transport.fault('TransactWriteItems', { kind: 'say', body: {} }, { nth: 3 });

  // Act
  const end = await runCli(['pattern', '25', '--json'], { env: env(transport.endpoint) });
  transport.heal();

  // Assert
  expect(end.code).toBe(1);
  const difference = 'secondOrder: expected ["None","ConditionalCheckFailed","None"], found "OK"';
  expect(end.json()).toMatchObject([
    { pattern: 25, ok: false, results: { firstOrder: 'OK', secondOrder: 'OK' }, differences: [difference] },
  ]);
  expect(end.stderr).toContain(`25: ${difference}`);
  expect(await tables()).toEqual([]);
});

test('one that fails does not keep the others from being shown', async () => {
  transport.forget();
  transport.fault('PutItem', { kind: 'refuse', name: 'AccessDeniedException' }, { times: 1_000 });

  const end = await runCli(['pattern', 'all', '--json'], { env: env(transport.endpoint) });
  transport.heal();

  expect(end.code).toBe(1);
  expect(end.json()).toHaveLength(NUMBERS.length);
  expect(end.json().find(({ pattern }) => pattern === 29)).toMatchObject({ ok: true });
  expect(end.json().filter(({ ok }) => ok === false)).not.toEqual([]);
  expect(await tables()).toEqual([]);
});

test.each(['SIGINT', 'SIGTERM'] as const)('%s ends it within a step, and its table is deleted', async (signal) => {
  const running = startCli(['pattern', '29'], { env: env() });
  await running.stderr.when(1, (line) => line.includes('stands still'));
  const during = await tables();

  running.signal(signal);
  const end = await running.ended;

  expect(during).toHaveLength(1);
  expect(end.code).toBe(130);
  expect(end.stdout).not.toContain('as it must');
  expect(await tables()).toEqual([]);
});
