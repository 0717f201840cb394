import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { text } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';
import { expect, onTestFinished, test } from 'vitest';
import { isRunning, type ProcessIdentity } from '../../src/local/process-identity.ts';
import { childrenOf, stateOf } from '../local/processes.ts';
import { startCli, type Running } from '../support/process-cli.ts';
import { until } from '../support/until.ts';

const linux = process.platform === 'linux';
const ROOT = fileURLToPath(new URL('../..', import.meta.url));

interface DemoReport {
  readonly ok: boolean;
  readonly seed: number;
  readonly seconds: number;
  readonly flows: { readonly charges: Readonly<Record<string, number>> };
  readonly invariants: readonly { readonly id: string; readonly ok: boolean }[];
}

const count = expect.any(Number) as number;

test('npm run demo makes 500 charges exactly once in under a minute, while workers are killed and frozen', async () => {
  // Arrange
  const npm = spawn('npm', ['run', '-s', 'demo', '--', '--json'], { cwd: ROOT, stdio: ['ignore', 'pipe', 'pipe'] });

  // Act
  const [stdout, stderr] = await Promise.all([text(npm.stdout), text(npm.stderr), once(npm, 'close')]);

  // Assert
  const [line = '', ...rest] = stdout.trimEnd().split('\n');
  const report = JSON.parse(line) as DemoReport;
  expect(rest).toEqual([]);
  expect(npm.exitCode).toBe(0);
  expect(report).toMatchObject({ ok: true, seed: count, seconds: count });
  expect(report.seconds).toBeLessThan(60);
  expect(report.flows.charges).toEqual({
    sent: 710,
    unique: 500,
    delivered: count,
    applied: 500,
    replayed: count,
    conflicts: 5,
    invalid: 5,
    takenOver: count,
  });
  expect(report.flows.charges['delivered']).toBeGreaterThan(710);
  expect(report.flows.charges['takenOver']).toBeGreaterThanOrEqual(1);
  expect(report.invariants.map(({ id }) => id)).toEqual(['C1', 'C2', 'C3', 'C4', 'C5', 'Q1', 'Q3', 'X2']);
  for (const each of report.invariants) {
    expect(each).toEqual({
      id: expect.any(String) as string,
      statement: expect.any(String) as string,
      ok: true,
      evidence: count,
      violations: [],
    });
  }
  expect(stderr).toContain('was killed (SIGKILL)');
  expect(stderr).toContain('was frozen (SIGSTOP)');
});

test('the demo without protection fails and names double entries and double charges', async () => {
  // Arrange
  const demo = start(['demo', '--protection', 'none', '--seed', '7', '--json']);

  // Act
  const end = await demo.ended;

  // Assert
  const [report] = end.json<DemoReport>();
  const broken = report?.invariants.filter(({ ok }) => !ok).map(({ id }) => id);
  expect(end.code).toBe(1);
  expect(report).toMatchObject({ ok: false, seed: 7 });
  expect(broken).toEqual(expect.arrayContaining(['C1', 'C3']));
  expect(end.stderr).toMatch(/^C3: .+: charged 2 times by the provider$/m);
});

test.skipIf(!linux)('Ctrl-C in the middle of a demo exits with 130 and leaves nothing running', async () => {
  // Arrange
  const demo = start(['demo', '--json']);
  await demo.stderr.when(1, (line) => line.startsWith('sending 710'));
  const family = descendantsOf(demo.pid);

  // Act
  demo.signal('SIGINT');
  const end = await demo.ended;

  // Assert
  expect(family.length).toBeGreaterThanOrEqual(7); // SQS, DynamoDB, provider, three workers, and what watches over them
  expect(end).toMatchObject({ code: 130, stdout: '' });
  expect(end.stderr).not.toMatch(/^\s+at /m);
  await until(() => !family.some(isRunning));
});

test.skipIf(!linux)('a demo that is killed by SIGKILL leaves nothing running', async () => {
  // Arrange
  const demo = start(['demo', '--json']);
  await demo.stderr.when(1, (line) => line.startsWith('sending 710'));
  const family = descendantsOf(demo.pid);

  // Act
  await demo.kill();

  // Assert
  expect(family.length).toBeGreaterThanOrEqual(7);
  await until(() => !family.some(isRunning));
});

test.skipIf(!linux).each(['SIGKILL', 'SIGINT'] as const)(
  'a demo that is ended by %s while one of its workers is frozen leaves nothing running',
  async (signal) => {
    // Arrange
    const demo = start(['demo', '--json']);
    const frozen = await until(() => childrenOf(demo.pid).find(({ pid }) => stateOf(pid) === 'T'), {
      withinMs: 60_000,
    });
    const family = descendantsOf(demo.pid);

    // Act
    demo.signal(signal);
    await demo.ended;

    // Assert
    expect(family.map(({ pid }) => pid)).toContain(frozen.pid);
    await until(() => !family.some(isRunning));
  },
);

function start(args: readonly string[]): Running {
  const running = startCli(args);
  onTestFinished(async () => {
    await running.kill();
  });
  return running;
}

function descendantsOf(pid: number): ProcessIdentity[] {
  return childrenOf(pid).flatMap((child) => [child, ...descendantsOf(child.pid)]);
}
