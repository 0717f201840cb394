import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, expect, test } from 'vitest';
import { startChild, type Child } from '../../src/local/child-process.ts';
import { identityOf, isRunning } from '../../src/local/process-identity.ts';
import { until } from '../support/until.ts';
import { answersOn } from './listening.ts';
import { childrenOf, commandOf, stateOf } from './processes.ts';

const linux = process.platform === 'linux';

const folder = mkdtempSync(join(tmpdir(), 'onlyonce-'));
let parents = 0;

afterAll(() => {
  rmSync(folder, { recursive: true });
});

interface Started {
  stubborn: number;
  frozen: number;
  sqsPort: number;
  dynamodbPort: number;
}

test.skipIf(!linux)('all children end and their ports are free when their parent is killed by SIGKILL', async () => {
  // Arrange
  const { parent, started } = await startParent();
  const children = childrenOf(parent.pid);
  const pids = children.map(({ pid }) => pid);
  expect(pids).toEqual(expect.arrayContaining([started.stubborn, started.frozen]));
  expect(pids).toHaveLength(5); // both servers, the stubborn one, the frozen one, the reaper itself
  expect(stateOf(started.frozen)).toBe('T');

  // Act
  parent.signal('SIGKILL');
  await parent.exited;

  // Assert
  await until(() => !children.some(isRunning));
  expect(await answersOn(started.sqsPort)).toBe(false);
  expect(await answersOn(started.dynamodbPort)).toBe(false);
});

test.skipIf(!linux)('all children end when their parent ends without stopping them', async () => {
  // Arrange and Act
  const { parent, started } = await startParent('leave');
  const exit = await parent.exited;

  // Assert
  expect(exit).toEqual({ code: 0, signal: null });
  const left = [started.stubborn, started.frozen].map(identityOf);
  await until(() => !left.some(isRunning));
  await until(async () => !(await answersOn(started.sqsPort)) && !(await answersOn(started.dynamodbPort)));
});

test.skipIf(!linux)('a reaper that was killed is replaced and knows the children there are', async () => {
  // Arrange
  const { parent, started } = await startParent();
  const before = childrenOf(parent.pid);
  const reaper = await until(() => before.find(({ pid }) => commandOf(pid).includes('reaper.ts')));

  // Act
  process.kill(reaper.pid, 'SIGKILL');
  await until(() =>
    childrenOf(parent.pid).some(({ pid }) => pid !== reaper.pid && commandOf(pid).includes('reaper.ts')),
  );
  parent.signal('SIGKILL');
  await parent.exited;

  // Assert
  await until(() => !before.some(isRunning));
  expect(await answersOn(started.sqsPort)).toBe(false);
});

test.skipIf(!linux)('a stopped child ends in order when its parent is killed', async () => {
  // Arrange
  const { parent, started, evidence } = await startParent();
  const frozen = identityOf(started.frozen);

  // Act
  parent.signal('SIGKILL');
  await until(() => !isRunning(frozen));

  // Assert
  expect(existsSync(evidence)).toBe(true);
});

test.skipIf(!linux)('signals for the terminal do not end the reaper before its parent', async () => {
  // Arrange
  const { parent } = await startParent();
  const children = childrenOf(parent.pid);
  const reaper = await until(() => children.find(({ pid }) => commandOf(pid).includes('reaper.ts')));

  // Act
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.kill(reaper.pid, signal);
  parent.signal('SIGKILL');
  await parent.exited;

  // Assert
  await until(() => !children.some(isRunning));
});

test.skipIf(!linux)('a pid that belongs to another process by now is left alone', async () => {
  // Arrange
  const bystander = startChild({
    name: 'bystander',
    command: process.execPath,
    args: ['-e', 'setInterval(() => undefined, 1e9)'],
  });
  const reaper = startChild({
    name: 'reaper',
    command: process.execPath,
    // A child that began at another time than the process that has its pid now, and lines that must never become a kill.
    args: ['-e', feedReaper([`+${String(bystander.pid)} 1`, '+-1 1', '+0 1', 'nonsense'])],
  });

  // Act
  const exit = await reaper.exited;

  // Assert
  expect(exit).toEqual({ code: 0, signal: null });
  expect(isRunning(identityOf(bystander.pid))).toBe(true);
  await bystander.stop();
});

async function startParent(...args: string[]): Promise<{ parent: Child; started: Started; evidence: string }> {
  const evidence = join(folder, `ended-in-order-${String((parents += 1))}`);
  const line = Promise.withResolvers<string>();
  const parent = startChild({
    name: 'parent',
    command: process.execPath,
    args: [fileURLToPath(new URL('parent-fixture.ts', import.meta.url)), evidence, ...args],
    onStdoutLine: line.resolve,
  });
  void parent.exited.then(() => {
    line.reject(new Error(`the parent ended: ${parent.stderrTail()}`));
  });
  return { parent, started: JSON.parse(await line.promise) as Started, evidence };
}

function feedReaper(lines: readonly string[]): string {
  const entry = fileURLToPath(new URL('../../src/local/reaper.ts', import.meta.url));
  const run = `require('node:child_process').spawnSync(process.execPath, [${JSON.stringify(entry)}], { input: ${JSON.stringify(`${lines.join('\n')}\n`)} })`;
  return `process.exit(${run}.status)`;
}
