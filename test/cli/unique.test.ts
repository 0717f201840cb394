import { expect, test } from 'vitest';
import type { UniqueValues } from '../../src/store/unique/unique-constraint.ts';
import { processLab, type Scene } from '../support/process-bench.ts';
import { runCli } from '../support/process-cli.ts';

const lab = processLab();
const ADA = { PK: 'USER#ada', SK: 'PROFILE' };
const BOB = { PK: 'USER#bob', SK: 'PROFILE' };
const CY = { PK: 'USER#cy', SK: 'PROFILE' };

interface Line {
  readonly value: string;
  readonly state: string;
  readonly result?: string;
}

function emailsOf(scene: Scene): UniqueValues {
  return scene.connection.store.unique({ scope: 'email', attribute: 'email' });
}

/** One held sentinel and one orphan of each kind. */
async function leaky(): Promise<Scene> {
  const scene = await lab.open();
  const { transactions } = scene.connection.store;
  const emails = emailsOf(scene);
  await emails.create({ ...ADA, email: 'Ada@x.com' });
  await emails.create({ ...BOB, email: 'bob@x.com' });
  await emails.create({ ...CY, email: 'cy@x.com' });
  await transactions.write([
    { kind: 'delete', label: 'bob', key: BOB },
    { kind: 'put', label: 'cy', item: { ...CY, email: 'other@x.com' } },
    { kind: 'put', label: 'unreadable', item: { PK: 'UNIQUE#name#\u001b[2Jx', SK: 'UNIQUE' } },
  ]);
  return scene;
}

function byValue<Each extends Line>(lines: readonly Each[]): Each[] {
  return lines.toSorted((left, right) => left.value.localeCompare(right.value));
}

test('unique ls tells what each sentinel is worth, and ends with 6 when there are orphans', async () => {
  // Arrange
  const scene = await leaky();

  // Act
  const asJson = await scene.run(['unique', 'ls', '--json']);
  const asText = await scene.run(['unique', 'ls', '--orphans']);

  // Assert
  expect([asJson.code, asText.code]).toEqual([6, 6]);
  expect(byValue(asJson.json<Line>())).toEqual([
    expect.objectContaining({ value: '\u001b[2Jx', scope: 'name', state: 'unreadable' }),
    {
      scope: 'email',
      value: 'ada@x.com',
      owner: ADA,
      sentinel: { PK: 'UNIQUE#email#ada@x.com', SK: 'UNIQUE' },
      state: 'held',
    },
    expect.objectContaining({ value: 'bob@x.com', owner: BOB, state: 'owner gone' }),
    expect.objectContaining({ value: 'cy@x.com', owner: CY, state: 'value changed' }),
  ]);
  expect(asText.stdout).toMatch(/^owner gone {2}email {2}bob@x\.com {2}USER#bob \| PROFILE$/m);
  expect(asText.stdout).toMatch(/^unreadable {2}name {2}\\u001b\[2Jx {2}no owner$/m);
  expect(asText.stdout).not.toContain('ada@x.com');
  expect(asText.stderr).toContain('sentinels: 4, orphans: 3');
});

test('unique ls ends with 0 without orphans, also of one scope alone', async () => {
  const scene = await leaky();
  const empty = await lab.open();

  const ofScope = await scene.run(['unique', 'ls', '--scope', 'other']);
  const ofEmpty = await empty.run(['unique', 'ls']);

  expect([ofScope, ofEmpty]).toMatchObject([
    { code: 0, stdout: '' },
    { code: 0, stdout: '' },
  ]);
});

test('unique repair --dry-run removes nothing and asks nobody', async () => {
  const scene = await leaky();

  const end = await scene.run(['unique', 'repair', '--dry-run', '--json']);

  expect(end.code).toBe(0);
  expect(byValue(end.json<Line>())).toMatchObject([
    { value: 'bob@x.com', state: 'owner gone', result: 'would remove' },
    { value: 'cy@x.com', state: 'value changed', result: 'would remove' },
  ]);
  expect(end.stderr).toContain('orphans left: 1');
  expect(await emailsOf(scene).owner('bob@x.com')).toEqual(BOB);
});

test('unique repair needs --yes where nobody can be asked', async () => {
  const scene = await leaky();

  const end = await scene.run(['unique', 'repair']);

  expect(end).toMatchObject({ code: 2, stdout: '' });
  expect(end.stderr).toContain('add --yes');
  expect(await emailsOf(scene).owner('bob@x.com')).toEqual(BOB);
});

test('unique repair --yes frees the values of orphans and keeps what it does not understand', async () => {
  // Arrange
  const scene = await leaky();

  // Act
  const repaired = await scene.run(['unique', 'repair', '--yes']);
  const unreadable = await scene.run(['unique', 'repair', '--reason', 'unreadable', '--yes', '--json']);
  const rest = await scene.run(['unique', 'ls', '--json']);

  // Assert
  expect([repaired.code, unreadable.code, rest.code]).toEqual([0, 0, 0]);
  expect(repaired.stdout).toMatch(/^removed \(owner gone\) {2}email {2}bob@x\.com {2}USER#bob \| PROFILE$/m);
  expect(repaired.stdout.trim().split('\n')).toHaveLength(2);
  expect(unreadable.json<Line>()).toMatchObject([{ state: 'unreadable', result: 'removed' }]);
  expect(rest.json<Line>()).toMatchObject([{ value: 'ada@x.com', state: 'held' }]);
  expect(await emailsOf(scene).change(ADA, 'bob@x.com')).toEqual({ kind: 'written' });
});

test('unique repair removes no more than its limit, and only of its scope and reason', async () => {
  const scene = await leaky();

  const limited = await scene.run(['unique', 'repair', '--limit', '1', '--yes', '--json']);
  const byScope = await scene.run(['unique', 'repair', '--scope', 'name', '--yes', '--json']);
  const byReason = await scene.run(['unique', 'repair', '--reason', 'owner gone', '--dry-run', '--json']);

  expect(limited.json<Line>()).toHaveLength(1);
  expect(byScope.json<Line>()).toEqual([]);
  expect(byScope.stderr).toContain('no orphans to remove');
  expect(byReason.json<Line>().every(({ state }) => state === 'owner gone')).toBe(true);
});

test('the unique commands tell usage faults and a table that is not there', async () => {
  const reason = await runCli(['unique', 'repair', '--reason', 'none']);
  const limit = await runCli(['unique', 'repair', '--limit', '0']);
  const missing = await lab.openEmpty().run(['unique', 'ls']);

  expect([reason.code, limit.code, missing.code]).toEqual([2, 2, 3]);
  expect(reason.stderr).toContain('Allowed choices are owner gone, value changed, unreadable.');
  expect(missing.stderr).not.toMatch(/^\s+at /m);
});

test('unique needs no endpoint but that of DynamoDB', async () => {
  const scene = await leaky();
  const only = ['--dynamodb-endpoint', scene.endpoints.dynamodb, '--table', scene.table];

  const ends = [
    await runCli(['unique', 'ls', ...only]),
    await runCli(['unique', 'repair', '--dry-run', ...only]),
    await runCli(['unique', 'repair', '--yes', ...only]),
  ];

  expect(ends.map(({ code }) => code)).toEqual([6, 0, 0]);
});
