import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { INJECT_KINDS, type InjectKind } from '../../src/cli/inject/kinds.ts';
import { readDepth } from '../../src/queues/depth.ts';
import { readDocument, sectionOf } from '../docs/markdown.ts';
import { processLab, type Scene } from '../support/process-bench.ts';
import { runCli, type CliOptions, type Finished } from '../support/process-cli.ts';
import { until } from '../support/until.ts';

const lab = processLab();

/** Several processes one after the other, each of which takes a second to load on a busy machine. */
const PROCESSES_MS = 90_000;

interface Line {
  readonly at: string;
  readonly kind: InjectKind;
  readonly flow: string;
  readonly action: string;
  readonly messageId?: string;
  readonly key?: string;
  readonly payloadHash?: string;
  readonly receiveCount?: number;
}

function journalFile(): string {
  const folder = mkdtempSync(join(tmpdir(), 'onlyonce-inject-'));
  onTestFinished(() => {
    rmSync(folder, { recursive: true, force: true });
  });
  return join(folder, 'journal.ndjson');
}

function linesOf(file: string): Line[] {
  const lines = readFileSync(file, 'utf8').split('\n');
  return lines.filter((line) => line !== '').map((line) => JSON.parse(line) as Line);
}

function inject(scene: Scene, args: readonly string[], options: CliOptions = {}): Promise<Finished> {
  return scene.run(['inject', ...args, '--json'], options);
}

/** Until the queue is empty; each message has used up its attempts by then. */
async function drain(scene: Scene): Promise<void> {
  const worker = scene.work(['--max-attempts', '2']);
  await until(async () => (await scene.depth()) === 0, { withinMs: 60_000 });
  await worker.kill();
}

/** Those that receive count a receive of whatever else is there, and workers wait longer for what came often. */
const RECEIVING: readonly InjectKind[] = ['same-delivery', 'stale-receipt'];
const RECEIVING_FIRST = [...RECEIVING, ...INJECT_KINDS.filter((kind) => !RECEIVING.includes(kind))];

test(
  'after everything was injected a worker has each effect once, and the dead-letter queue holds what belongs there',
  async () => {
    // Arrange
    const scene = await lab.open();
    const journal = journalFile();
    const printed: Line[] = [];

    // Act
    for (const kind of RECEIVING_FIRST) {
      const end = await inject(scene, [kind, '--journal', journal, '--delay-seconds', '1', '--count', '3']);
      expect(end).toMatchObject({ code: 0 });
      printed.push(...end.json<Line>());
    }
    await drain(scene);

    // Assert
    const lines = linesOf(journal);
    expect(lines).toEqual(printed);
    expect(new Set(lines.map(({ kind }) => kind))).toEqual(new Set(INJECT_KINDS));
    const isPoison = ({ kind }: Line): boolean => kind === 'poison';
    await expectOnce(
      scene,
      lines.filter((line) => !isPoison(line)),
    );
    for (const { key = '' } of lines.filter(isPoison)) {
      expect([await scene.ledger(key), await scene.providerCharges(key)]).toEqual([[], []]);
    }
    expect(await reasonsOf(scene)).toEqual({
      ...{ 'invalid KEY_MISMATCH': 1, 'invalid NOT_JSON': 2, 'invalid SCHEMA': 1 },
      ...{ 'invalid UNKNOWN_TYPE': 3, 'invalid UNKNOWN_VERSION': 3, 'exhausted PAYMENT': 3 },
    });
    const verified = await scene.run(['verify', '--json']);
    expect(verified.json()).toMatchObject([{ ok: true }]);
  },
  PROCESSES_MS * 2,
);

/** Each valid message has its one charge. */
async function expectOnce(scene: Scene, lines: readonly Line[]): Promise<void> {
  const keys = new Set(lines.flatMap(({ key, payloadHash }) => (payloadHash === undefined ? [] : [key ?? ''])));
  // One duplicated, and three each of: delivered twice, delayed, out of order, deleted too late.
  expect(keys.size).toBe(1 + 4 * 3);
  for (const key of keys) {
    expect([key, (await scene.ledger(key)).length, (await scene.providerCharges(key)).length]).toEqual([key, 1, 1]);
  }
}

/** How many dead letters there are for each reason and its code. */
async function reasonsOf(scene: Scene): Promise<Record<string, number>> {
  const shown = await scene.run(['dlq', 'show', 'charges', '--json']);
  const counts: Record<string, number> = {};
  for (const { reason, detail } of shown.json<{ reason: string; detail: string }>()) {
    const name = `${reason} ${detail.split(':')[0] ?? ''}`;
    counts[name] = (counts[name] ?? 0) + 1;
  }
  return counts;
}

test('inject duplicate sends one key under several message ids, and all but one are replayed', async () => {
  // Arrange
  const scene = await lab.open();
  const worker = scene.work();

  // Act
  const end = await inject(scene, ['duplicate', 'charges', '--count', '3']);
  const sent = end.json<Line>();
  const outcomes: unknown[] = [];
  for (const { messageId } of sent) outcomes.push((await worker.event({ event: 'outcome', messageId }))['outcome']);
  await until(async () => (await scene.depth()) === 0, { withinMs: 30_000 });

  // Assert
  expect(new Set(sent.map(({ messageId }) => messageId)).size).toBe(4);
  expect(new Set(sent.map(({ key, payloadHash }) => `${String(key)} ${String(payloadHash)}`)).size).toBe(1);
  expect(outcomes.filter((outcome) => outcome === 'completed').length).toBeLessThanOrEqual(1);
  expect(await scene.ledger(sent[0]?.key ?? '')).toHaveLength(1);
}, 60_000);

test('inject same-delivery brings one message to a worker at its second delivery', async () => {
  // Arrange
  const scene = await lab.open();

  // Act
  const end = await inject(scene, ['same-delivery']);
  const lines = end.json<Line>();
  const worker = scene.work();
  const outcome = await worker.event({ event: 'outcome', messageId: lines[0]?.messageId });

  // Assert
  expect(lines.map(({ action }) => action)).toEqual(['sent', 'received', 'shown']);
  expect(lines[1]).toMatchObject({ receiveCount: 1 });
  expect(outcome).toMatchObject({ outcome: 'completed', receiveCount: 2 });
}, 60_000);

test('inject stale-receipt deletes with an old handle, and the message is still there', async () => {
  const scene = await lab.open();

  const end = await inject(scene, ['stale-receipt']);

  expect(end.json<Line>().map(({ action }) => action)).toEqual([
    'sent',
    'received',
    'received',
    'deleting',
    'accepted',
  ]);
  expect(await readDepth(scene.connection.queues, scene.queues.queue.url)).toMatchObject({ visible: 1, inFlight: 0 });
}, 60_000);

test('inject out-of-order brings the last message first, and delayed one that cannot be received yet', async () => {
  // Arrange
  const scene = await lab.open();

  // Act
  const ordered = await inject(scene, ['out-of-order']);
  const worker = scene.work(['--concurrency', '1']);
  const keys = ordered.json<Line>().map(({ key }) => key);
  for (const key of keys) await worker.event({ event: 'outcome', key, outcome: 'completed' });
  await worker.kill();
  const delayed = await inject(scene, ['delayed', '--delay-seconds', '900']);

  // Assert
  const worked = worker.stdout.entries
    .map((line) => JSON.parse(line) as Record<string, unknown>)
    .filter((event) => event['event'] === 'outcome')
    .map((event) => event['key']);
  expect(worked).toEqual(keys.toReversed());
  expect(delayed.json()).toMatchObject([{ action: 'sent', delaySeconds: 900 }]);
  expect(await readDepth(scene.connection.queues, scene.queues.queue.url)).toMatchObject({ visible: 0, delayed: 1 });
}, 60_000);

test('inject oversized sends the largest body that SQS takes and tells that one byte more is refused', async () => {
  const scene = await lab.open();

  const end = await inject(scene, ['oversized']);

  expect(end.json()).toMatchObject([
    { action: 'sent', bodyBytes: 1_048_576 },
    { action: 'refused', bodyBytes: 1_048_577, detail: expect.stringContaining('one too many') as string },
  ]);
  expect(await scene.depth()).toBe(1);
});

test('the journal only grows, and half a line of a crash does not swallow the next one', async () => {
  // Arrange
  const scene = await lab.open();
  const journal = journalFile();
  writeFileSync(journal, '{"at":"2026-01-01T00:00:00.000Z","kind":"delay');

  // Act
  const end = await inject(scene, ['unknown-type', '--journal', journal]);

  // Assert
  const [torn, whole, ...rest] = readFileSync(journal, 'utf8').split('\n');
  expect(torn).toBe('{"at":"2026-01-01T00:00:00.000Z","kind":"delay');
  expect(JSON.parse(whole ?? '')).toEqual(end.json()[0]);
  expect(rest).toEqual(['']);
});

test('the same seed gives the same keys, and text output names what was done', async () => {
  const scene = await lab.open();

  const first = await scene.run(['inject', 'duplicate', '--seed', '7']);
  const second = await inject(scene, ['delayed', '--seed', '7']);

  expect(first.stdout).toMatch(/^duplicate: sent [0-9a-f-]{36}, key req_\w+: the original$/m);
  expect(first.stdout).toContain(`key ${String(second.json<Line>()[0]?.key)}:`);
  expect(first.stderr).toContain('seed 7');
});

const REMOTE = ['--sqs-endpoint', 'https://sqs.example.com', '--dynamodb-endpoint', 'https://dynamodb.example.com'];
const LOCAL = ['--sqs-endpoint', 'http://127.0.0.1:1', '--dynamodb-endpoint', 'http://127.0.0.1:1'];

test.each([
  ['of an unknown kind', ['nonsense'], 'must be one of: duplicate, same-delivery, poison'],
  ['without backends that others share', ['duplicate'], 'start some with "onlyonce up"'],
  [
    'on a remote endpoint where nobody can be asked',
    ['duplicate', ...REMOTE],
    'at sqs.example.com? Nobody can be asked',
  ],
  ['of half an endpoint', ['duplicate', ...LOCAL.slice(2)], 'set AWS_ENDPOINT_URL_SQS too'],
])('an inject %s exits with 2 and says what to do', async (_case, args, sentence) => {
  const end = await runCli(['inject', ...args]);

  expect(end).toMatchObject({ code: 2, stdout: '' });
  expect(end.stderr).toContain(sentence);
  expect(end.stderr).not.toMatch(/^\s+at /m);
});

test.each([
  ['no provider', { url: '', code: 2, sentence: 'set ONLYONCE_PROVIDER_URL' }],
  ['a remote provider', { url: 'https://pay.example.com', code: 2, sentence: 'pay.example.com is not local' }],
  [
    'a provider that is away',
    { url: 'http://127.0.0.1:1', code: 1, sentence: 'no payment provider answers at 127.0.0.1:1' },
  ],
  ['no URL', { url: 'pay', code: 2, sentence: '"pay" is not a URL' }],
])('inject poison with %s sends nothing and says what to do', async (_case, { url, code, sentence }) => {
  const scene = await lab.open();

  const end = await inject(scene, ['poison'], { env: { ONLYONCE_PROVIDER_URL: url } });

  expect(end).toMatchObject({ code, stdout: '' });
  expect(end.stderr).toContain(sentence);
  expect(await scene.depth()).toBe(0);
});

test('each kind is told in the help and in the document', async () => {
  const help = await runCli(['inject', '--help']);
  const document = sectionOf(readDocument('docs/command-line.md'), '## inject');

  const documented = [...document.matchAll(/^\| `([a-z][a-z-]*)` \|/gm)].map(([, kind]) => kind);
  expect(documented).toEqual([...INJECT_KINDS]);
  for (const kind of INJECT_KINDS) expect(help.stdout).toMatch(new RegExp(`^ {2}${kind} +\\w`, 'm'));
});

test('a journal that cannot be opened ends the command before anything is sent', async () => {
  const scene = await lab.open();

  const end = await inject(scene, ['duplicate', '--journal', join(tmpdir(), 'no-such-folder-here', 'journal')]);

  expect(end).toMatchObject({ code: 1, stdout: '' });
  expect(end.stderr).toContain('no-such-folder-here');
  expect(await scene.depth()).toBe(0);
});
