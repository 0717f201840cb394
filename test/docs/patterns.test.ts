import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import {
  conditions,
  createOnlyonceEffect,
  createRequestMeter,
  createStore,
  plus,
  spend,
  type Lock,
  type SeenVersion,
  type Store,
  type TransactionAction,
} from '../../src/index.ts';
import { PATTERNS } from '../../src/patterns/catalogue.ts';
import { LOCAL_ACCESS, useStoreBench } from '../support/store-bench.ts';
import { readFiles, REPOSITORY } from '../tooling/repository.ts';
import { blocksOf, readDocument, sectionOf, tableIn } from './markdown.ts';
import { runProgram } from './run-program.ts';

const bench = useStoreBench();

const pages = readFiles('docs/patterns', '.md').filter(({ name }) => !name.endsWith('README.md'));

function pageOf(number: number): { name: string; text: string } {
  const page = pages.find(({ name }) => path.basename(name).startsWith(`${String(number)}-`));
  if (page === undefined) throw new Error(`pattern ${String(number)} has no page`);
  return page;
}

describe('the pages of the patterns', () => {
  it('are listed with their numbers and titles, one for each walk-through', () => {
    const { rows } = tableIn(readDocument('docs/patterns/README.md'));

    const listed = rows.map(([number, link]) => [number, link]);
    const made = PATTERNS.map(({ number, title }) => [
      String(number),
      `[${title}](${path.basename(pageOf(number).name)})`,
    ]);

    expect(listed).toEqual(made);
    expect(pages).toHaveLength(PATTERNS.length);
  });

  it.each(PATTERNS)('say the same of $number in heading and command', ({ number, title }) => {
    const { text } = pageOf(number);

    expect(text).toMatch(new RegExp(`^# ${String(number)} ${title}\n`));
    expect(text).toContain(`\n\`npm run -s onlyonce -- pattern ${String(number)}\` shows it`);
    for (const section of ['The problem', 'What to use', 'What it costs', 'When not to use it']) {
      expect(sectionOf(text, `## ${section}`).trim()).not.toBe('');
    }
  });
});

describe('the programs of the patterns', () => {
  let folder: string;

  beforeAll(() => {
    folder = mkdtempSync(path.join(tmpdir(), 'onlyonce-patterns-'));
    // Tells Node that these files are modules, as the package of whoever copies them would.
    writeFileSync(path.join(folder, 'package.json'), '{ "type": "module" }');
  });
  afterAll(() => {
    rmSync(folder, { recursive: true, force: true });
  });

  const run = (file: string): ReturnType<typeof runProgram> =>
    runProgram(file, { cwd: folder, dynamodbEndpoint: bench.backendEndpoint });

  it.each(pages)('print what $name says', async (page) => {
    const [program, printed] = ['ts', 'text'].map((language) => {
      const [block, ...more] = blocksOf(page).filter((each) => each.language === language);
      expect(more).toEqual([]);
      return block?.text ?? '';
    });
    const library = JSON.stringify(path.join(REPOSITORY, 'src/index.ts'));
    const file = path.join(folder, `${path.basename(page.name, '.md')}.ts`);
    writeFileSync(file, program?.replaceAll("'onlyonce'", library) ?? '');

    const ended = await run(file);

    expect(program).toContain("from 'onlyonce'");
    expect(ended).toEqual({ code: 0, output: printed?.trimEnd().split('\n') });
  });
});

/** One row of a page's table of costs: what is prepared, and then what is measured. */
type Row = (store: Store, key: Key) => Promise<() => Promise<unknown>>;

interface Key {
  readonly PK: string;
  readonly SK: string;
}

/** Nothing to prepare. */
function just(call: (store: Store, key: Key) => Promise<unknown>): Row {
  return (store, key) => Promise.resolve(() => call(store, key));
}

async function versioned(store: Store, key: Key): Promise<SeenVersion> {
  const { item } = await store.versioned.create({ ...key, n: 1 });
  return item;
}

async function locked(store: Store, { PK }: Key): Promise<Lock> {
  const locks = store.locks();
  const attempt = await locks.tryAcquire(PK);
  onTestFinished(async () => void (await locks.close({ graceMs: 0 })));
  if (attempt.kind !== 'acquired') throw new Error('the lock is not free');
  return attempt.lock;
}

const putOf = (key: Key, part: string): TransactionAction => {
  return { kind: 'put', label: part, item: { ...key, SK: part }, condition: conditions.absent() };
};
const three = (key: Key): TransactionAction[] => ['a', 'b', 'c'].map((part) => putOf(key, part));
const emails = (store: Store) => store.unique({ scope: 'cost', attribute: 'email' });
const once = (store: Store) => createOnlyonceEffect(store, { scope: 'cost' });
const indexed = ({ PK, SK }: Key) => ({ PK, SK, GSI1PK: `INDEX#${PK}`, GSI1SK: 'a' });

const COSTS: Readonly<Record<number, Readonly<Record<string, Row>>>> = {
  22: {
    'create an item': just((store, key) => store.items.create({ ...key, n: 1 })),
    'update under a rule': async (store, key) => {
      await store.items.create({ ...key, credits: 10 });
      const { change, condition } = spend('credits', 7);
      return () => store.items.update(key, change, { condition });
    },
    'refused, with the stored item': async (store, key) => {
      await store.items.create({ ...key, n: 1 });
      return () => store.items.create({ ...key, n: 1 });
    },
  },
  23: {
    'save, from a version that was seen': async (store, key) => {
      const seen = await versioned(store, key);
      return () => store.versioned.save(key, { set: { n: 2 } }, seen);
    },
    'update: read, change, write': async (store, key) => {
      await versioned(store, key);
      return () => store.versioned.update(key, () => ({ n: 2 }));
    },
    'save, refused, with the current item': async (store, key) => {
      const seen = await versioned(store, key);
      await store.versioned.save(key, { set: { n: 2 } }, seen);
      return () => store.versioned.save(key, { set: { n: 3 } }, seen);
    },
  },
  24: {
    add: just((store, { PK }) => store.counters.add(PK, 1)),
    'add within a floor': async (store, { PK }) => {
      await store.counters.create(PK, 1);
      return () => store.counters.add(PK, -1, { floor: 0 });
    },
    'add, refused by its floor': async (store, { PK }) => {
      await store.counters.create(PK, 0);
      return () => store.counters.add(PK, -1, { floor: 0 });
    },
    addOnce: just((store, { PK }) => store.counters.addOnce(PK, 1, { key: 'a' })),
    'addOnce, the same key again': async (store, { PK }) => {
      await store.counters.addOnce(PK, 1, { key: 'a' });
      return () => store.counters.addOnce(PK, 1, { key: 'a' });
    },
    next: just((store, { PK }) => store.counters.next(PK)),
    read: just((store, { PK }) => store.counters.read(PK)),
  },
  25: {
    'write three items': just((store, key) => store.transactions.write(three(key))),
    'refused, with the stored item': async (store, key) => {
      await store.transactions.write([putOf(key, 'b')]);
      return () => store.transactions.write(three(key)).catch(() => undefined);
    },
    'snapshot of three items': async (store, key) => {
      await store.transactions.write(three(key));
      return () => store.snapshot(['a', 'b', 'c'].map((SK) => ({ PK: key.PK, SK })));
    },
  },
  26: {
    create: just((store, key) => emails(store).create({ ...key, email: key.PK })),
    'create, the value is taken': async (store, key) => {
      await emails(store).create({ ...key, email: key.PK });
      return () => emails(store).create({ PK: `${key.PK}-2`, SK: 'X', email: key.PK });
    },
    change: async (store, key) => {
      await emails(store).create({ ...key, email: key.PK });
      return () => emails(store).change(key, `${key.PK}-new`);
    },
    owner: just((store, { PK }) => emails(store).owner(PK)),
  },
  27: {
    'the first call': just((store, { PK }) => once(store)(PK, () => 'done')),
    'the first call, with one write': just((store, key) =>
      once(store)(key.PK, (context) => {
        context.commitWith(putOf(key, 'effect'));
        return 'done';
      }),
    ),
    'the same key again': async (store, { PK }) => {
      await once(store)(PK, () => 'done');
      return () => once(store)(PK, () => 'never');
    },
    'the same key, another payload': async (store, { PK }) => {
      await once(store)(PK, () => 'done', { payload: 1 });
      return () => once(store)(PK, () => 'never', { payload: 2 });
    },
  },
  28: {
    'query, one hit': async (store, key) => {
      await store.items.create(indexed(key));
      return async () => {
        for await (const hit of store.index.query({ partition: indexed(key).GSI1PK })) expect(hit.PK).toBe(key.PK);
      };
    },
    'queryIndexUntilFound, found at once': async (store, key) => {
      await store.items.create(indexed(key));
      return () => store.index.queryIndexUntilFound({ partition: indexed(key).GSI1PK });
    },
    recheck: async (store, key) => {
      await store.items.create(indexed(key));
      return () => store.index.recheck(key, () => true);
    },
  },
  29: {
    'tryAcquire, free': just(locked),
    'tryAcquire, held by another': async (store, key) => {
      await locked(store, key);
      return () => store.locks().tryAcquire(key.PK);
    },
    renew: async (store, key) => {
      const lock = await locked(store, key);
      return () => lock.renew();
    },
    'write, one item': async (store, key) => {
      const lock = await locked(store, key);
      const change = { set: { n: plus(1, 0) } };
      return () => lock.write([{ kind: 'update', label: 'work', key, change }]);
    },
    'finish, one item, and the release': async (store, key) => {
      const lock = await locked(store, key);
      return async () => {
        await lock.finish([putOf(key, 'work')]);
        // Nothing is left to be released.
        await lock.release();
      };
    },
    release: async (store, key) => {
      const lock = await locked(store, key);
      return () => lock.release();
    },
  },
};

describe('the costs of the patterns', () => {
  interface Cost {
    readonly requests: number;
    /** As DynamoDB reports them. */
    readonly units: number;
  }

  async function measured(row: Row): Promise<Cost> {
    const meter = createRequestMeter();
    const options = { ...LOCAL_ACCESS, endpoint: bench.backendEndpoint, meter };
    const store = createStore(options);
    onTestFinished(() => {
      store.close();
    });
    const call = await row(store, { PK: bench.unique('cost'), SK: 'X' });
    const before = { requests: total(meter.requests), units: meter.capacityUnits };
    await call();
    return { requests: total(meter.requests) - before.requests, units: meter.capacityUnits - before.units };
  }

  /** `3`, or `3, 1 not reported` for what is charged and not told. */
  function reportedUnits(cell: string): number {
    const [, charged, hidden = '0'] = /^([\d.]+)(?:, ([\d.]+) not reported)?$/.exec(cell) ?? [];
    if (charged === undefined) throw new Error(`"${cell}" is no cost`);
    return Number(charged) - Number(hidden);
  }

  it.each(PATTERNS)('of $number are what is measured', async ({ number }) => {
    const { rows } = tableIn(sectionOf(pageOf(number).text, '## What it costs'));
    const documented: Record<string, Cost> = {};
    for (const [call = '', requests, units = ''] of rows) {
      documented[call] = { requests: Number(requests), units: reportedUnits(units) };
    }

    const found: Record<string, Cost> = {};
    for (const [call, row] of Object.entries(COSTS[number] ?? {})) found[call] = await measured(row);

    expect(rows.length).toBeGreaterThan(0);
    expect(found).toEqual(documented);
  });
});

function total(requests: ReadonlyMap<string, number>): number {
  return [...requests.values()].reduce((sum, count) => sum + count, 0);
}
