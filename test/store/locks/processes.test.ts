/** Locks between real processes: stopped ones, and many that take turns. */
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, onTestFinished, test } from 'vitest';
import { startChild, type Child } from '../../../src/local/child-process.ts';
import { plus } from '../../../src/store/expressions.ts';
import { createStore } from '../../../src/store/store.ts';
import { lockKey, type Item } from '../../../src/store/table.ts';
import { effectKey, signalKey, type LockProcessInput } from '../../support/lock-process.ts';
import { LOCAL_ACCESS, useStoreBench } from '../../support/store-bench.ts';
import { until } from '../../support/until.ts';

const bench = useStoreBench();
const SCRIPT = fileURLToPath(new URL('../../support/lock-process.ts', import.meta.url));
const LEASE_MS = 1_500;
/** A timer that is later than this tells of a pause. */
const STALL_MS = 1_000;

interface Running {
  readonly child: Child;
  readonly lines: Record<string, unknown>[];
}

function start(input: LockProcessInput): Running {
  const lines: Record<string, unknown>[] = [];
  const child = startChild({
    name: 'lock process',
    command: process.execPath,
    args: [SCRIPT, JSON.stringify(input)],
    onStdoutLine: (line) => lines.push(JSON.parse(line) as Record<string, unknown>),
  });
  onTestFinished(() => child.stop());
  return { child, lines };
}

async function ended({ child }: Running): Promise<void> {
  const { code } = await child.exited;
  if (code !== 0) throw new Error(`ended with ${String(code)}: ${child.stderrTail()}`);
}

/** A process that holds the lock, stopped. */
async function stoppedHolder(name: string): Promise<{ holder: Running; token: number }> {
  const holder = start({ endpoint: bench.backendEndpoint, name, mode: 'hold', leaseMs: LEASE_MS });
  const [held] = await until(() => holder.lines.length > 0 && holder.lines);
  holder.child.signal('SIGSTOP');
  return { holder, token: Number(held?.['held']) };
}

/** The lease of `item` is over by so much that whoever slept through it must notice. */
async function untilAfter(item: Item | undefined): Promise<void> {
  const endMs = Number(item?.['expiresAtMs']) + STALL_MS + 200;
  await until(() => Date.now() > endMs);
}

async function commitNow(name: string): Promise<void> {
  await bench.truth.transactions.write([{ kind: 'put', label: 'signal', item: { ...signalKey(name) } }]);
}

async function effectsOf(name: string): Promise<unknown> {
  return (await bench.truth.get(effectKey(name)))?.['count'];
}

describe('L9: a holder that is stopped beyond its lease in the middle of its work', () => {
  test('and overtaken cannot commit when it goes on: it is told of the theft with both tokens, and the effect is one', async () => {
    // Arrange
    const name = bench.unique('lock');
    const { holder, token } = await stoppedHolder(name);
    const store = createStore({ ...LOCAL_ACCESS, endpoint: bench.backendEndpoint });
    onTestFinished(() => {
      store.close();
    });

    // Act
    const stoppedWith = await bench.truth.get(lockKey(name));
    const successor = await store.locks({ leaseMs: LEASE_MS }).acquire(name);
    await successor.finish([
      { kind: 'update', label: 'effect', key: effectKey(name), change: { set: { count: plus(1, 0) } } },
    ]);
    await commitNow(name);
    await untilAfter(stoppedWith);
    holder.child.signal('SIGCONT');
    await ended(holder);

    // Assert
    expect(successor.fencingToken).toBe(token + 1);
    const loss = { code: 'LEASE_LOST', reason: 'stolen', fencingToken: token, observedToken: token + 1 };
    expect(holder.lines.at(-1)).toMatchObject({ failure: loss, aborted: loss });
    expect(await effectsOf(name)).toBe(1);
  });

  test('while nobody wanted the lock makes sure of it with one write, and commits', async () => {
    // Arrange
    const name = bench.unique('lock');
    const { holder, token } = await stoppedHolder(name);
    const stoppedWith = await bench.truth.get(lockKey(name));
    await untilAfter(stoppedWith);

    // Act
    holder.child.signal('SIGCONT');
    await until(async () => Number((await bench.truth.get(lockKey(name)))?.['expiresAtMs']) > Date.now());
    const revalidated = await bench.truth.get(lockKey(name));
    await commitNow(name);
    await ended(holder);

    // Assert
    expect(revalidated).toMatchObject({ owner: stoppedWith?.['owner'], fencingToken: token });
    const last = holder.lines.at(-1);
    expect([last?.['failure'], last?.['aborted']]).toEqual([undefined, undefined]);
    expect(last?.['events']).toContain('stall');
    expect(last?.['events']).not.toContain('lost');
    expect(await effectsOf(name)).toBe(1);
  });
});

describe('L11: four processes that take turns', () => {
  test(
    'get 1,000 grants whose tokens only grow, although items are deleted and holders crash',
    { timeout: 60_000 },
    async () => {
      // Arrange
      const name = bench.unique('lock');
      const folder = mkdtempSync(join(tmpdir(), 'onlyonce-locks-'));
      onTestFinished(() => {
        rmSync(folder, { recursive: true });
      });
      const journal = join(folder, 'tokens');
      const common = { endpoint: bench.backendEndpoint, name, mode: 'rounds', rounds: 250, journal } as const;

      // Act
      const workers = [1, 2, 3, 4].map((seed) => start({ ...common, seed }));
      await Promise.all(workers.map(ended));

      // Assert
      const tokens = readFileSync(journal, 'utf8').trim().split('\n').map(Number);
      expect(tokens).toHaveLength(1_000);
      expect(tokens.filter((token, index) => index > 0 && token <= (tokens[index - 1] ?? 0))).toEqual([]);
    },
  );
});
