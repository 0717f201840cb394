import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { expect, test } from 'vitest';
import { silentLog, withFields, type Log } from '../../src/telemetry/log.ts';
import type { LogProcessInput } from '../support/worker-log-process.ts';
import { workerLab } from '../support/worker-fixture.ts';

const lab = workerLab();
const run = promisify(execFile);

async function runScript(name: string, argument: string) {
  const script = fileURLToPath(new URL(`../support/${name}.ts`, import.meta.url));
  const { stdout, stderr } = await run(process.execPath, ['--disable-warning=ExperimentalWarning', script, argument]);
  const lines = stderr.split('\n').filter((line) => line !== '');
  return { stdout, stderr, lines: lines.map((line) => JSON.parse(line) as Record<string, unknown>) };
}

test('a worker at every level of its log tells outcomes and keys, and nothing of what customers wrote', async () => {
  const bench = await lab.open();
  const description = 'a present for Grandma';
  const bodies = [
    bench.chargeBody({ description }),
    bench.chargeBody({ description }),
    bench.chargeBody({ description, amountMinor: 1 }),
    bench.chargeBody({ description, requestId: 'declined' }),
    bench.chargeBody({ description, requestId: 'failing' }),
    bench.chargeBody({ description: description.repeat(100) }),
    `not JSON: ${description}`,
  ];
  for (const body of bodies) await bench.send(body);
  const { queue, queueUrl, deadLetterQueueUrl } = bench;
  const { sqsEndpoint, dynamodbEndpoint } = lab;
  const input: LogProcessInput = {
    sqsEndpoint,
    dynamodbEndpoint,
    queue,
    queueUrl,
    deadLetterQueueUrl,
    deliveries: bodies.length,
  };

  const { lines, stderr } = await runScript('worker-log-process', JSON.stringify(input));

  expect(lines.map(({ key, outcome }) => [key, outcome])).toEqual([
    ['r1', 'completed'],
    ['r1', 'replayed'],
    ['r1', 'conflict'],
    ['declined', 'rejected'],
    ['failing', 'exhausted'],
    [undefined, 'invalid'],
    [undefined, 'invalid'],
  ]);
  expect(lines[4]).toMatchObject({
    error: 'the provider is down',
    msg: 'delivery settled',
    messageId: expect.any(String) as string,
  });
  expect(stderr).not.toContain(description);
});

test('the log goes to stderr as JSON, censors what may be secret, and leaves stdout to data', async () => {
  const { stdout, stderr, lines } = await runScript('worker-logger-process', 'info');

  expect(stdout).toBe('data\n');
  expect(lines.map(({ msg }) => msg)).toEqual(['at the top', 'one level down', 'two levels down', 'bound']);
  expect(lines[0]).toMatchObject({ name: 'logger-test', key: 'r1', payload: '[redacted]', sessionToken: '[redacted]' });
  expect(lines[3]).toMatchObject({ key: 'r1', attempt: 2 });
  expect(stderr).not.toContain('SECRET');
});

test('a log at level silent says nothing, and one at debug says all', async () => {
  const [silent, debug] = await Promise.all([
    runScript('worker-logger-process', 'silent'),
    runScript('worker-logger-process', 'debug'),
  ]);

  expect([silent.lines.length, debug.lines.length]).toEqual([0, 5]);
});

test('bound fields stand on every line of each level, and the line’s own win', () => {
  const told: unknown[] = [];
  const tell = (fields: Record<string, unknown>, text: string): void => {
    told.push([fields, text]);
  };
  const log: Log = withFields({ debug: tell, info: tell, warn: tell, error: tell }, { key: 'r1', attempt: 1 });

  for (const level of ['debug', 'info', 'warn', 'error'] as const) log[level]({ attempt: 2 }, level);
  for (const level of ['debug', 'info', 'warn', 'error'] as const) silentLog[level]({}, level);

  expect(told).toEqual(['debug', 'info', 'warn', 'error'].map((level) => [{ key: 'r1', attempt: 2 }, level]));
});
