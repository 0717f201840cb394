import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { isRunning } from '../../src/local/process-identity.ts';
import { childrenOf } from '../local/processes.ts';
import { processLab } from '../support/process-bench.ts';
import { runCli } from '../support/process-cli.ts';
import { until } from '../support/until.ts';

const lab = processLab();

test('bootstrap creates table and queues once and says the second time that they are there', async () => {
  // Arrange
  const scene = lab.openEmpty();

  // Act
  const missing = await scene.run(['queues', 'ls']);
  const first = await scene.run(['bootstrap', '--json']);
  const second = await scene.run(['bootstrap', '--json']);
  const third = await scene.run(['bootstrap']);

  // Assert
  expect(missing).toMatchObject({ code: 3, stdout: '' });
  expect(missing.stderr).toContain('run "onlyonce bootstrap" first');
  expect(first.json()).toMatchObject([
    { flow: 'charges', table: scene.table, tableCreated: true, queuesCreated: true },
  ]);
  expect(second.json()).toMatchObject([{ flow: 'charges', tableCreated: false, queuesCreated: false }]);
  expect(third.stdout).toContain(`table ${scene.table}: there already`);
  expect([first.code, second.code, third.code]).toEqual([0, 0, 0]);
});

test('produce sends a file, and names each bad line with its number and reason', async () => {
  // Arrange
  const scene = await lab.open();
  const good = scene.charge();
  const lines = [JSON.stringify(good), 'not JSON', JSON.stringify({ ...good, amountMinor: -1 }), ''];

  // Act
  const end = await scene.run(['produce', 'charges', fileOf(lines.join('\n')), '--json']);

  // Assert
  expect(end.code).toBe(6);
  expect(end.json()).toMatchObject([{ kind: 'original', result: 'sent', key: good.requestId }]);
  expect(end.stderr).toMatch(/^line 2: the line is not JSON$/m);
  expect(end.stderr).toMatch(/^line 3: amountMinor: .+$/m);
  expect(end.stderr).toContain('sent 1 to');
  expect(end.stderr).toContain('bad lines 2');
  expect(await scene.depth()).toBe(1);
});

test('produce reads standard input', async () => {
  // Arrange
  const scene = await lab.open();
  const charges = [scene.charge(), scene.charge()];

  // Act
  const end = await scene.run(['produce', 'charges', '-', '--json'], {
    stdin: charges.map((charge) => JSON.stringify(charge)).join('\r\n'),
  });

  // Assert
  expect(end.code).toBe(0);
  expect(end.json().map((line) => line['key'])).toEqual(charges.map(({ requestId }) => requestId));
  expect(await scene.depth()).toBe(2);
});

test('produce repeats the same messages for the same seed and others for another', async () => {
  // Arrange
  const scene = await lab.open();
  const produce = async (seed: string): Promise<unknown[]> => {
    const flags = ['--count', '20', '--duplicates', '50', '--conflicts', '2', '--malformed', '2', '--seed', seed];
    const end = await scene.run(['produce', 'charges', '--json', ...flags]);
    return end.json().map(({ kind, key }) => ({ kind, key }));
  };

  // Act
  const first = await produce('7');
  const again = await produce('7');
  const other = await produce('8');

  // Assert
  expect(first).toHaveLength(34);
  expect(again).toEqual(first);
  expect(other).not.toEqual(first);
  expect(await scene.depth()).toBe(3 * 34);
});

test('produce without --json prints no data, only a summary on stderr', async () => {
  // Arrange
  const scene = await lab.open();

  // Act
  const end = await scene.run(['produce', 'charges', '--count', '3', '--seed', '5']);

  // Assert
  expect(end).toMatchObject({ code: 0, stdout: '' });
  expect(end.stderr).toBe(`sent 3 to ${scene.queues.queue.name}, failed 0, bad lines 0, seed 5\n`);
});

test('produce of a file that does not exist is one sentence, not a stack', async () => {
  // Arrange
  const scene = await lab.open();

  // Act
  const end = await scene.run(['produce', 'charges', '/no/such/charges.ndjson']);

  // Assert
  expect(end.code).toBe(1);
  expect(end.stderr).toMatch(/^onlyonce: .*\/no\/such\/charges\.ndjson.*$/m);
  expect(end.stderr).not.toMatch(/^\s+at /m);
  expect(end.stderr.trim().split('\n')).toHaveLength(1);
});

test('produce that waits for standard input ends at the first Ctrl-C', async () => {
  // Arrange
  const scene = await lab.open();
  const producing = scene.start(['produce', 'charges', '-'], { stdin: 'not JSON\n', keepStdinOpen: true });
  await producing.stderr.when(1, (line) => line.startsWith('line 1: '));

  // Act
  producing.signal('SIGINT');
  const end = await producing.ended;

  // Assert
  expect(end.code).toBe(130);
});

test('a reader that closes the pipe early ends the command without a stack', async () => {
  // Arrange
  const scene = await lab.open();
  const producing = scene.start(['produce', 'charges', '--json', '--count', '3000']);
  await producing.stdout.when(1);

  // Act
  producing.closeStdout();
  const end = await producing.ended;

  // Assert
  expect(end.stderr).not.toMatch(/^\s+at /m);
});

test.skipIf(process.platform !== 'linux')(
  'a command without an endpoint starts backends of its own and leaves none running',
  async () => {
    // Arrange
    const scene = await lab.open();
    const flags = ['--table', scene.table, '--prefix', scene.prefix, '--wait-seconds', '1', '--json'];
    const none = { AWS_ENDPOINT_URL_SQS: '', AWS_ENDPOINT_URL_DYNAMODB: '' };
    const worker = scene.start(['work', 'charges', ...flags], { env: none });
    await worker.event({ event: 'ready' });
    const children = childrenOf(worker.pid);

    // Act
    worker.signal('SIGTERM');
    const end = await worker.ended;

    // Assert
    expect(end.code).toBe(0);
    expect(end.stderr).toContain('no endpoint given: local backends for this command alone');
    expect(children.length).toBeGreaterThanOrEqual(3);
    await until(() => !children.some(isRunning));
  },
);

test('a command whose own backends refuse its table name ends with a sentence instead of staying', async () => {
  // Act
  const end = await runCli(['queues', 'ls', '--table', 'not a name!']);

  // Assert
  expect(end.code).toBe(2);
  expect(end.stderr).toContain('not a name!');
  expect(end.stderr).not.toMatch(/^\s+at /m);
});

function fileOf(text: string): string {
  const folder = mkdtempSync(join(tmpdir(), 'onlyonce-'));
  onTestFinished(() => {
    rmSync(folder, { recursive: true });
  });
  const file = join(folder, 'charges.ndjson');
  writeFileSync(file, text);
  return file;
}
