import { existsSync } from 'node:fs';
import path from 'node:path';
import { describe, expect, it } from 'vitest';
import { BackendError, createMemoryStore, type MemoryFault } from '../../src/index.ts';
import { resolveEffectCallOptions } from '../../src/store/effects/effect-call-options.ts';
import { checkedLockOptions } from '../../src/store/locks/lock-options.ts';
import { checkedMaxWaitMs } from '../../src/store/locks/lock-waiters.ts';
import { useStoreBench } from '../support/store-bench.ts';
import { readFiles, REPOSITORY } from '../tooling/repository.ts';
import { blocksOf, readDocument, readDocuments, sectionOf, tableIn } from './markdown.ts';
import { runProgram } from './run-program.ts';

const bench = useStoreBench();
const page = { name: 'docs/store.md', text: readDocument('docs/store.md') };

const run = (file: string): ReturnType<typeof runProgram> =>
  runProgram(file, { cwd: REPOSITORY, dynamodbEndpoint: bench.backendEndpoint });

describe('the programs of docs/store.md', () => {
  const UNIT_TEST = 'examples/store/unit-test.ts';
  const blocks = blocksOf(page).filter(({ language }) => language === 'ts' || language === 'text');
  const programs = blocks.flatMap((block, at) => {
    const file = /^<!-- (\S+) -->$/.exec(block.lineAbove)?.[1] ?? '';
    const next = blocks[at + 1];
    return block.language === 'ts' ? [{ file, printed: next?.language === 'text' ? next.text : undefined }] : [];
  });

  it('are all of the folder', () => {
    const files = readFiles('examples/store', '.ts').map(({ name }) => name);

    expect(programs.map(({ file }) => file).toSorted()).toEqual(files.toSorted());
  });

  it.each(programs.filter(({ file }) => file !== UNIT_TEST))('print what the page says: $file', async (program) => {
    const ended = await run(program.file);

    expect(ended).toEqual({ code: 0, output: program.printed?.trimEnd().split('\n') });
  });

  it('end well where the program is a test, without a server', async () => {
    const { code, output } = await run(UNIT_TEST);

    expect(code).toBe(0);
    expect(output.filter((line) => /^\W+(pass|fail) \d/.test(line)).map((line) => line.replace(/^\W+/, ''))).toEqual([
      'pass 2',
      'fail 0',
    ]);
  });
});

describe('the choice of a tool in docs/store.md', () => {
  const { rows } = tableIn(sectionOf(page.text, '## Which tool'));

  it('costs what the page of each pattern says, where the costs are measured', () => {
    for (const [must, , call = '', cost, link = ''] of rows) {
      const file = /\((patterns\/[\w-]+\.md)\)/.exec(link)?.[1] ?? '';
      const costs = tableIn(sectionOf(readDocument(`docs/${file}`), '## What it costs')).rows;
      const [, requests, units] = costs.find(([name]) => name === call) ?? [];

      expect([must, cost]).toEqual([must, `${String(requests)} / ${String(units)}`]);
    }
    expect(rows.length).toBeGreaterThan(8);
  });

  it('names every pattern', () => {
    const pages = readFiles('docs/patterns', '.md').filter(({ name }) => !name.endsWith('README.md'));
    const linked = new Set(rows.map(([, , , , link = '']) => /patterns\/[\w-]+\.md/.exec(link)?.[0]));

    expect(pages.map(({ name }) => name.replace('docs/', '')).filter((name) => !linked.has(name))).toEqual([]);
  });
});

describe('the faults of the memory store in docs/store.md', () => {
  const cells = tableIn(`| fault |${sectionOf(page.text, '## Unit tests').split('| fault |')[1] ?? ''}`).rows;
  const faults = cells.map((row) => row.map((cell) => cell.replaceAll('`', '')));
  const rows = faults.map(([fault = '', applied, reason]) => ({ fault, applied, reason }));

  it.each(rows)('are applied or not, and classified, as it says: $fault', async ({ fault, applied, reason }) => {
    const store = createMemoryStore({ random: () => 0 });
    store.backend.failNext('PutItem', fault as MemoryFault, 1_000);

    const answer: unknown = await store.items.create({ PK: 'a', SK: 'b' }).catch((error: unknown) => error);

    expect(answer).toBeInstanceOf(BackendError);
    expect(answer).toMatchObject({ reason });
    expect(store.backend.items()).toHaveLength(applied === 'yes' ? 1 : 0);
  });

  it('are all that there are', () => {
    const source = readFiles('src/store/memory', 'faults.ts')[0]?.text ?? '';
    const union = /type MemoryFault =([^]*?);\n\n/.exec(source)?.[1] ?? '';

    expect(rows.map(({ fault }) => fault)).toEqual([...union.matchAll(/'([\w ]+)'/g)].map(([, fault]) => fault));
  });
});

describe('tests that documents give as their source', () => {
  it('exist', () => {
    const named = readDocuments().flatMap(({ name, text }) =>
      [...text.matchAll(/`(test\/[\w./-]+\.ts)`/g)].map(([, file = '']) => ({ name, file })),
    );

    expect(named.length).toBeGreaterThan(10);
    expect(named.filter(({ file }) => !existsSync(path.join(REPOSITORY, file)))).toEqual([]);
  });
});

describe('ranges of numbers in docs/configuration.md', () => {
  const text = readDocument('docs/configuration.md');
  const store = createMemoryStore();
  const key = { PK: 'a', SK: 'b' };

  /** By section and option: refuses what is out of the range. */
  const checks: Readonly<Record<string, (value: number) => unknown>> = {
    'Versioned items maxAttempts': (maxAttempts) => store.versioned.update(key, () => ({}), { maxAttempts }),
    'Counters deadlineMs': (deadlineMs) =>
      store.counters.numbered(`at-${String(deadlineMs)}`, () => [], { deadlineMs }),
    'Index reads maxAttempts': (maxAttempts) => search({ maxAttempts }),
    'Index reads baseDelayMs': (baseDelayMs) => search({ baseDelayMs }),
    'Closing locks graceMs': (graceMs) => store.locks().close({ graceMs }),
    'Waiting for a lock maxWaitMs': (maxWaitMs) => checkedMaxWaitMs({ maxWaitMs }),
    'Locks pollMinMs': (pollMinMs) => checkedLockOptions({ pollMinMs }),
    'Locks pollMaxMs': (pollMaxMs) => checkedLockOptions({ pollMaxMs }),
    'Locks maxHoldMs': (maxHoldMs) => checkedLockOptions({ maxHoldMs }),
    'Locks requireProgressMs': (requireProgressMs) => checkedLockOptions({ requireProgressMs }),
    'Locks dangerAfterMs': (dangerAfterMs) => checkedLockOptions({ dangerAfterMs }),
    'Locks retentionDays': (retentionDays) => checkedLockOptions({ retentionDays }),
    'Effect calls maxHoldMs': (maxHoldMs) => resolveEffectCallOptions({ scope: 'a', maxHoldMs }, 35),
    'Memory store times': (times) => {
      store.backend.failNext('Scan', 'throttle', times);
    },
  };

  /** A number, or what it is for the default lease. */
  const NUMBERS: Readonly<Record<string, number>> = {
    leaseMs: 20_000,
    heartbeatMs: 5_000,
    'leaseMs - safetyMarginMs': 18_000,
    pollMinMs: 10,
    pollMaxMs: 60_000,
  };

  async function search(options: object): Promise<unknown> {
    await store.items.create({ ...key, GSI1PK: 'a', GSI1SK: 'b' });
    return store.index.queryIndexUntilFound({ partition: 'a' }, options);
  }

  function rangeOf(name: string): [number, number] {
    const [, section = '', option = ''] = /^(.+) (\w+)$/.exec(name) ?? [];
    const heading = text.includes(`\n### ${section}\n`) ? `### ${section}` : `## ${section}`;
    const row = tableIn(sectionOf(text, heading)).rows.find(([cell]) => cell === `\`${option}\``);
    const cell = (row?.[2] ?? '').replaceAll('`', '').split(', ')[0] ?? '';
    const ends = cell.split(/(?<=\w)-(?=\w)| to /);
    const [low = Number.NaN, high = Number.NaN] = ends.map((end) => NUMBERS[end] ?? Number(end));
    return [low, high];
  }

  async function isAccepted(check: (value: number) => unknown, value: number): Promise<boolean> {
    try {
      await check(value);
      return true;
    } catch (error) {
      if (error instanceof Error && error.message.includes('from')) return false;
      throw error;
    }
  }

  it.each(Object.entries(checks))('are those of the code: %s', async (name, check) => {
    const [low, high] = rangeOf(name);

    const accepted = await Promise.all([low - 1, low, high, high + 1].map((value) => isAccepted(check, value)));

    expect([name, low, high, ...accepted]).toEqual([name, low, high, false, true, true, false]);
  });
});
