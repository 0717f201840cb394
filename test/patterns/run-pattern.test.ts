import { DeleteTableCommand, ListTablesCommand } from '@aws-sdk/client-dynamodb';
import { PutCommand } from '@aws-sdk/lib-dynamodb';
import { describe, expect, test } from 'vitest';
import type { Pattern, Scene } from '../../src/patterns/pattern.ts';
import { runPattern, type PatternRunOptions } from '../../src/patterns/run-pattern.ts';
import type { Section } from '../../src/patterns/transcript.ts';
import { createDocumentClient } from '../../src/store/client.ts';
import { LOCAL_ACCESS, useStoreBench } from '../support/store-bench.ts';
import { StoreClock } from '../support/store-clock.ts';

const bench = useStoreBench();

/** A walk-through of one step that comes to `result`. */
function patternOf(run: Pattern['run']): Pattern {
  return { number: 99, title: 'Sample', summary: 'for tests', expected: { answer: 42 }, run };
}

const stepOf = (scene: Scene, act: () => Promise<unknown>): Promise<unknown> =>
  scene.step({ heading: 'The answer', result: 'answer' }, act);

interface Run extends Pick<PatternRunOptions, 'signal' | 'note' | 'onSection' | 'client' | 'tablePrefix'> {
  readonly sections: Section[];
  readonly notes: string[];
}

function prepare(signal: AbortSignal = new AbortController().signal): Run {
  const sections: Section[] = [];
  const notes: string[] = [];
  return {
    sections,
    notes,
    signal,
    client: { ...LOCAL_ACCESS, endpoint: bench.transport.endpoint, maxAttempts: 1 },
    tablePrefix: bench.unique('own'),
    onSection: (section) => void sections.push(section),
    note: (text) => void notes.push(text),
  };
}

async function tables(): Promise<string[]> {
  const client = createDocumentClient({ ...LOCAL_ACCESS, endpoint: bench.backendEndpoint });
  const { TableNames = [] } = await client.send(new ListTablesCommand({}));
  client.destroy();
  return TableNames;
}

describe('a walk-through', () => {
  test('works on a table of its own, with a fresh name, and leaves nothing behind', async () => {
    const run = prepare();
    const names: string[] = [];
    const pattern = patternOf(async (scene) => {
      names.push(scene.tableName);
      await stepOf(scene, async () => {
        await scene.store.transactions.write([{ kind: 'put', label: 'x', item: { PK: 'a', SK: 'b' } }]);
        return 42;
      });
      expect(await tables()).toContain(scene.tableName);
    });

    const reports = [await runPattern(pattern, run), await runPattern(pattern, run)];

    expect(reports).toEqual([
      { pattern: 99, title: 'Sample', ok: true, results: { answer: 42 } },
      { pattern: 99, title: 'Sample', ok: true, results: { answer: 42 } },
    ]);
    expect(names[0]).toMatch(new RegExp(`^${run.tablePrefix}-pattern-99-[0-9a-f]{8}$`));
    expect(names[0]).not.toBe(names[1]);
    // The bench's own table, and nothing else.
    expect(await tables()).toEqual(['onlyonce']);
  });

  test('shows the requests of each step and none of the making and deleting of the table', async () => {
    const run = prepare();
    const pattern = patternOf(async (scene) => {
      await stepOf(scene, async () => {
        await scene.bare.send(new PutCommand({ TableName: scene.tableName, Item: { PK: 'a', SK: 'b' } }));
        return 42;
      });
      await scene.step({ heading: 'A look' }, () => scene.store.get({ PK: 'a', SK: 'b' }));
    });

    await runPattern(pattern, run);

    expect(run.sections.map(({ heading, result }) => [heading, result])).toEqual([
      ['The answer', 42],
      ['A look', undefined],
    ]);
    expect(run.sections.map(({ requests }) => requests.map(({ operation }) => operation))).toEqual([
      ['PutItem'],
      ['GetItem'],
    ]);
  });

  test('is not ok when it comes to something else, and says to what', async () => {
    const report = await runPattern(
      patternOf(async (scene) => void (await stepOf(scene, () => Promise.resolve(41)))),
      prepare(),
    );

    expect(report).toEqual({
      pattern: 99,
      title: 'Sample',
      ok: false,
      results: { answer: 41 },
      differences: ['answer: expected 42, found 41'],
    });
  });

  test('is not ok when it ends early, says why, shows what was sent, and leaves nothing behind', async () => {
    const run = prepare();
    bench.transport.fault('GetItem', { kind: 'refuse', name: 'AccessDeniedException' });
    const pattern = patternOf(async (scene) => void (await stepOf(scene, () => scene.store.get({ PK: 'a', SK: 'b' }))));

    const report = await runPattern(pattern, run);

    expect(report).toMatchObject({ ok: false, results: {} });
    expect(report.differences).toHaveLength(2);
    expect(report.differences?.[0]).toMatch(/^the walk-through ended early: .*AccessDeniedException/);
    expect(report.differences?.[1]).toBe('answer: expected 42, but it never came about');
    expect(run.sections[0]?.requests).toHaveLength(1);
    expect(await tables()).toEqual(['onlyonce']);
  });

  test('deletes its table when it is interrupted, and ends with the reason', async () => {
    const controller = new AbortController();
    const reason = new Error('enough');
    const late: string[] = [];
    const pattern = patternOf(async (scene) => {
      await stepOf(scene, () => {
        controller.abort(reason);
        return Promise.resolve(42);
      });
      await scene.step({ heading: 'never' }, () => {
        late.push('a step after the end');
        return Promise.resolve();
      });
    });

    await expect(runPattern(pattern, prepare(controller.signal))).rejects.toBe(reason);

    expect(late).toEqual([]);
    expect(await tables()).toEqual(['onlyonce']);
  });

  test('makes no table when it is interrupted before', async () => {
    const run = prepare(AbortSignal.abort(new Error('enough')));

    expect(() =>
      runPattern(
        patternOf(() => Promise.resolve()),
        run,
      ),
    ).toThrow('enough');
    expect(bench.transport.count('CreateTable')).toBe(0);
  });
});

describe('the table of a walk-through', () => {
  const fine = patternOf(async (scene) => void (await stepOf(scene, () => Promise.resolve(42))));

  test('is deleted a little later where it is still being changed', async () => {
    bench.transport.fault('DeleteTable', { kind: 'refuse', name: 'ResourceInUseException' }, { times: 3 });

    const report = await runPattern(fine, { ...prepare(), clock: new StoreClock({ waits: 'jump' }) });

    expect(report.ok).toBe(true);
    expect(bench.transport.count('DeleteTable')).toBe(4);
    expect(await tables()).toEqual(['onlyonce']);
  });

  test('is taken for deleted when the answer to that is lost', async () => {
    bench.transport.fault('DeleteTable', { kind: 'lose the answer' });

    const report = await runPattern(fine, { ...prepare(), clock: new StoreClock({ waits: 'jump' }) });

    expect(report.ok).toBe(true);
    expect(await tables()).toEqual(['onlyonce']);
  });

  test('is not asked for where nobody was there to make it', async () => {
    const run = prepare();
    const client = { ...run.client, endpoint: 'http://127.0.0.1:1' };
    const nowhere = { ...run, client, clock: new StoreClock({ waits: 'jump' }) };

    await expect(runPattern(fine, nowhere)).rejects.toMatchObject({ code: 'BACKEND', reason: 'unreachable' });

    expect(run.notes).toEqual([]);
  });

  test('is deleted when its making was answered by nothing', async () => {
    bench.transport.fault('CreateTable', { kind: 'lose the answer' });

    await expect(runPattern(fine, prepare())).rejects.toMatchObject({ code: 'BACKEND', reason: 'ambiguous' });

    expect(await tables()).toEqual(['onlyonce']);
  });

  test('is named when it cannot be deleted within half a minute', async () => {
    const run = { ...prepare(), clock: new StoreClock({ waits: 'jump' }) };
    bench.transport.fault('DeleteTable', { kind: 'refuse', name: 'ResourceInUseException' }, { times: 1_000 });

    await expect(runPattern(fine, run)).rejects.toThrow('could not be deleted');

    expect(bench.transport.count('DeleteTable')).toBe(31);
    bench.transport.heal();
    await removeTables(run.tablePrefix);
  });

  test('is named when it cannot be deleted', async () => {
    const run = prepare();
    bench.transport.fault('DeleteTable', { kind: 'refuse', name: 'AccessDeniedException' });

    const ended = runPattern(fine, run);

    await expect(ended).rejects.toThrow(new RegExp(`^table ${run.tablePrefix}-pattern-99-\\w{8} could not be deleted`));
    await removeTables(run.tablePrefix);
  });

  test('is named besides what had gone wrong before', async () => {
    const controller = new AbortController();
    const run = prepare(controller.signal);
    bench.transport.fault('DeleteTable', { kind: 'refuse', name: 'AccessDeniedException' });
    const pattern = patternOf(() => {
      controller.abort(new Error('enough'));
      return Promise.reject(new Error('cut off'));
    });

    await expect(runPattern(pattern, run)).rejects.toThrow('enough');

    expect(run.notes).toHaveLength(1);
    expect(run.notes[0]).toContain(`table ${run.tablePrefix}-pattern-99-`);
    await removeTables(run.tablePrefix);
  });
});

async function removeTables(prefix: string): Promise<void> {
  const client = createDocumentClient({ ...LOCAL_ACCESS, endpoint: bench.backendEndpoint });
  for (const name of await tables()) {
    if (name.startsWith(prefix)) await client.send(new DeleteTableCommand({ TableName: name }));
  }
  client.destroy();
}
