import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DeleteMessageCommand, ReceiveMessageCommand } from '@aws-sdk/client-sqs';
import { expect, onTestFinished, test } from 'vitest';
import { startProvider } from '../../src/cli/provider-process.ts';
import type { Invariant } from '../../src/verify/invariants.ts';
import { plus } from '../../src/store/expressions.ts';
import { accountKey, ledgerEntryKey } from '../../src/store/table.ts';
import { processLab, type Scene } from '../support/process-bench.ts';
import type { Finished } from '../support/process-cli.ts';

const lab = processLab();

test('verify exits with 0 after charges with duplicates, conflicts and malformed messages', async () => {
  // Arrange
  const scene = await lab.open();
  await using provider = await startProvider({ port: 0 });
  const providerFlag = ['--provider-url', provider.url];
  const flags = ['--count', '20', '--duplicates', '50', '--conflicts', '2', '--malformed', '6', '--seed', '3'];
  const produced = await scene.run(['produce', 'charges', '--json', ...flags]);
  const worker = scene.work(providerFlag);
  await worker.stdout.when(38, (line) => /"outcome":"(completed|replayed|conflict|invalid)"/.test(line));

  // Act
  const asJson = await verify(scene, ['--json', ...providerFlag, '--sent', fileOf(produced.stdout)]);
  const asText = await verify(scene, []);

  // Assert
  expect(asJson.code).toBe(0);
  expect(invariantsOf(asJson)).toMatchObject([
    { id: 'C1', ok: true, evidence: 20 },
    { id: 'C2', ok: true },
    { id: 'C3', ok: true, evidence: 20 },
    { id: 'C5', ok: true },
    { id: 'Q1', ok: true, evidence: 38 },
    { id: 'Q3', ok: true, evidence: 8 },
  ]);
  expect(asText.code).toBe(0);
  expect(asText.stdout).toMatch(/^holds +C1 +20 +one ledger entry per request$/m);
  expect(asText.stderr).toContain('the payment provider was not looked at: add --provider-url');
  expect(asText.stderr).toContain('lost messages were not looked for: add --sent');
});

test('verify does not say that all holds where nothing was found to look at', async () => {
  // Arrange
  const scene = await lab.open();

  // Act
  const end = await verify(scene, []);

  // Assert
  expect([end.code, end.stdout]).toEqual([3, '']);
  expect(end.stderr).toContain('there is nothing to verify');
});

test('verify exits with 1 and names C1 when a charge has two ledger entries', async () => {
  // Arrange
  const scene = await lab.open();
  const charge = await chargedOnce(scene);
  const { accountId, requestId, amountMinor } = charge;
  const key = { ...ledgerEntryKey(accountId, requestId), SK: `CHARGE#${requestId}#again` };
  const [entry] = await scene.ledger(requestId);
  await scene.connection.store.transactions.write([
    { kind: 'put', label: 'entry', item: { ...entry, ...key } },
    {
      kind: 'update',
      label: 'balance',
      key: accountKey(accountId),
      change: { set: { balance: plus(amountMinor, 0) } },
    },
  ]);

  // Act
  const end = await verify(scene, ['--json']);

  // Assert
  expect(end.code).toBe(1);
  expect(brokenOf(end)).toEqual(['C1']);
  expect(end.stderr).toContain(`C1: ${requestId}: 2 ledger entries`);
});

test('verify exits with 1 and names C2 when a balance is not the sum of its ledger', async () => {
  // Arrange
  const scene = await lab.open();
  const { accountId } = await chargedOnce(scene);
  await scene.connection.store.items.update(accountKey(accountId), { set: { balance: plus(1, 0) } });

  // Act
  const end = await verify(scene, ['--json']);

  // Assert
  expect(end.code).toBe(1);
  expect(brokenOf(end)).toEqual(['C2']);
  expect(end.stderr).toContain(`C2: ${accountId}: balance 1251, ledger says 1250`);
});

test('verify --sent finds a message that was taken off the queue without a trace', async () => {
  // Arrange
  const scene = await lab.open();
  const produced = await scene.run(['produce', 'charges', '--json', '--count', '2']);
  const { queues } = scene.connection;
  const QueueUrl = scene.queues.queue.url;
  const { Messages: [lost] = [] } = await queues.send(new ReceiveMessageCommand({ QueueUrl, MaxNumberOfMessages: 1 }));
  await queues.send(new DeleteMessageCommand({ QueueUrl, ReceiptHandle: lost?.ReceiptHandle }));
  const worker = scene.work();
  await worker.event({ event: 'outcome', outcome: 'completed' });

  // Act
  const unaware = await verify(scene, ['--json']);
  const end = await verify(scene, ['--json', '--sent', fileOf(produced.stdout)]);

  // Assert
  expect(unaware.code).toBe(0);
  expect(end.code).toBe(1);
  expect(brokenOf(end)).toEqual(['Q1']);
  expect(end.stderr).toContain(`(${lost?.MessageId ?? ''}): lost`);
});

test('verify finds no fault with a dead letter whose reason had to be kept in the table', async () => {
  // Arrange
  const scene = await lab.open();
  const worker = scene.work();
  await scene.sendBody('x'.repeat(1_048_576));
  await worker.event({ event: 'outcome', outcome: 'invalid' });

  // Act
  const end = await verify(scene, ['--json']);

  // Assert
  expect(end.code).toBe(0);
  expect(invariantsOf(end).find(({ id }) => id === 'Q3')).toMatchObject({ ok: true, evidence: 1 });
});

test.each([
  ['--sent', '/no/such/sent.ndjson', 1],
  ['--provider-url', 'http://127.0.0.1:1', 1],
] as const)('verify with a %s that cannot be read says so in one sentence', async (flag, value, code) => {
  // Arrange
  const scene = await lab.open();

  // Act
  const end = await scene.run(['verify', '--json', flag, value]);

  // Assert
  expect(end).toMatchObject({ code, stdout: '' });
  expect(end.stderr).toContain(value);
  expect(end.stderr).not.toMatch(/^\s+at /m);
});

test('verify names the line of a --sent file that is not what produce printed', async () => {
  // Arrange
  const scene = await lab.open();
  const file = fileOf('{"messageId":"1","key":"a"}\n{"messageId":2}\n');

  // Act
  const end = await scene.run(['verify', '--sent', file]);

  // Assert
  expect(end.code).toBe(1);
  expect(end.stderr).toContain(`${file}, line 2: `);
  expect(end.stderr).not.toMatch(/^\s+at /m);
});

/** Without the shared provider, which also knows the charges of other tests. An empty variable is as good as none. */
function verify(scene: Scene, flags: readonly string[]): Promise<Finished> {
  return scene.run(['verify', ...flags], { env: { ONLYONCE_PROVIDER_URL: '' } });
}

async function chargedOnce(scene: Scene) {
  const charge = scene.charge();
  const worker = scene.work();
  await scene.sendCharge(charge);
  await worker.event({ event: 'outcome', outcome: 'completed' });
  return charge;
}

function invariantsOf(end: Finished): readonly Invariant[] {
  const [report] = end.json<{ invariants: Invariant[] }>();
  return report?.invariants ?? [];
}

function brokenOf(end: Finished): string[] {
  return invariantsOf(end)
    .filter(({ ok }) => !ok)
    .map(({ id }) => id);
}

function fileOf(text: string): string {
  const folder = mkdtempSync(join(tmpdir(), 'onlyonce-'));
  onTestFinished(() => {
    rmSync(folder, { recursive: true });
  });
  const file = join(folder, 'sent.ndjson');
  writeFileSync(file, text);
  return file;
}
