import { expect, test } from 'vitest';
import { EnvironmentError } from '../../src/errors.ts';
import { startChild, type Child, type ChildOptions } from '../../src/local/child-process.ts';
import { until } from '../support/until.ts';

const WAIT_FOREVER = 'setInterval(() => undefined, 1e9); console.log("ready");';

test('stop ends a child by SIGTERM and lets it finish', async () => {
  // Arrange
  const child = await ready(`process.on("SIGTERM", () => process.exit(7)); ${WAIT_FOREVER}`);

  // Act
  await child.stop();

  // Assert
  expect(await child.exited).toEqual({ code: 7, signal: null });
  expect(child.isRunning()).toBe(false);
});

test('stop kills a child that refuses SIGTERM when the grace is over', async () => {
  // Arrange
  const child = await ready(`process.on("SIGTERM", () => undefined); ${WAIT_FOREVER}`);

  // Act
  await child.stop({ graceMs: 50 });

  // Assert
  expect(await child.exited).toEqual({ code: null, signal: 'SIGKILL' });
});

test('stop lets a child that was stopped by SIGSTOP end in order', async () => {
  // Arrange
  const child = await ready(`process.on("SIGTERM", () => process.exit(0)); ${WAIT_FOREVER}`);
  child.signal('SIGSTOP');

  // Act
  await child.stop({ graceMs: 8_000 });

  // Assert
  expect(await child.exited).toEqual({ code: 0, signal: null });
});

test('stop of a child that has ended resolves', async () => {
  // Arrange
  const child = run('');
  await child.exited;

  // Act
  const stopped = child.stop();

  // Assert
  await expect(stopped).resolves.toBeUndefined();
});

test('stdout comes line by line, an overlong line is cut, and no line is lost', async () => {
  // Arrange
  const lines: string[] = [];
  const script =
    'process.stdout.write("first\\r\\nsec"); process.stdout.write("ond\\n" + "x".repeat(200000) + "\\nlast\\n")';

  // Act
  await run(script, { onStdoutLine: (line) => lines.push(line) }).exited;

  // Assert
  expect(lines.map((line) => line.slice(0, 8))).toEqual(['first', 'second', 'xxxxxxxx', 'last']);
  expect(lines[2]).toHaveLength(65_536);
});

test('the last 4 Ki characters of stderr are kept', async () => {
  // Arrange
  const child = run('process.stderr.write("lost" + "x".repeat(10000) + "last words")');

  // Act
  await child.exited;

  // Assert
  expect(child.stderrTail()).toHaveLength(4_096);
  expect(child.stderrTail()).toMatch(/^x+last words$/);
});

test('a command that does not exist is an error that names it', () => {
  // Act
  const start = (): Child => startChild({ name: 'nothing', command: './no-such-program', args: [] });

  // Assert
  expect(start).toThrow(EnvironmentError);
  expect(start).toThrow('nothing: could not start ./no-such-program');
});

test('a child gets exactly the environment it was given', async () => {
  // Arrange
  const lines: string[] = [];

  // Act
  await run('console.log(Object.keys(process.env).join())', {
    env: { ONLY: 'this' },
    onStdoutLine: (line) => lines.push(line),
  }).exited;

  // Assert
  expect(lines).toEqual(['ONLY']);
});

test('a child without stdin reads an end at once', async () => {
  // Arrange
  const child = run('process.stdin.on("end", () => process.exit(3)).resume()', { stdin: 'none' });

  // Act
  const exit = await child.exited;

  // Assert
  expect(exit.code).toBe(3);
});

function run(script: string, options: Partial<ChildOptions> = {}): Child {
  return startChild({ name: 'test child', command: process.execPath, args: ['-e', script], ...options });
}

async function ready(script: string): Promise<Child> {
  let isReady = false;
  const child = run(script, { onStdoutLine: () => (isReady = true) });
  await until(() => isReady);
  return child;
}
