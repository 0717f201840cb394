/** What docs/guarantees.md says of handlers that do not keep to the rules, one test for each line of its table. */
import { spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { expect, onTestFinished, test } from 'vitest';
import type { Handler, HandlerResult } from '../../src/workers/handler.ts';
import type { StormInput } from '../support/worker-storm-process.ts';
import { counterKey, countEffect, noteBody, noteHandler, type Note } from '../support/worker-contract.ts';
import { workerLab, type Bench } from '../support/worker-fixture.ts';

const lab = workerLab();
const OTHER_WORKER = fileURLToPath(new URL('../support/worker-storm-process.ts', import.meta.url));

const LEASE = { leaseMs: 600, heartbeatMs: 100, maxClockSkewMs: 0 };
const EITHER_COMMIT = [['claimed'], ['direct']] as const;
const NOTE = noteBody({ id: 'n1', text: '' });

/** Rejections that nobody looks after end a process of Node. */
function watchRejections(): unknown[] {
  const unhandled: unknown[] = [];
  const listener = (reason: unknown): void => void unhandled.push(reason);
  process.on('unhandledRejection', listener);
  onTestFinished(() => void process.off('unhandledRejection', listener));
  return unhandled;
}

/** No timer fires and no answer is read meanwhile. */
function blockFor(ms: number): void {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms);
}

function done(counter: string, response: unknown = null): HandlerResult {
  return { kind: 'completed', response, effects: [countEffect(counter)] };
}

async function countOf(bench: Bench): Promise<unknown> {
  return (await bench.store.get(counterKey(bench.accountId)))?.['value'];
}

test.each(EITHER_COMMIT)('a %s handler that hangs is given up at its time, and keeps its slot', async (commit) => {
  // Arrange
  const bench = await lab.open({ visibilityTimeoutSeconds: 2 });
  const forever = new Promise<never>(() => undefined);
  const handler: Handler<Note> = {
    ...noteHandler((_message, { attempt }) => (attempt === 1 ? forever : Promise.resolve(done(bench.accountId)))),
    commit,
  };
  const settings = { handlers: [handler], handlerTimeoutMs: 200, lease: LEASE };
  const hung = bench.run({ ...settings, concurrency: 1, name: 'hung' });
  await bench.send(NOTE);
  const [first] = await hung.outcomes.when(1);

  // Act
  const next = bench.run({ ...settings, name: 'next' });
  const [completed] = await next.when('completed');
  const { leftovers } = await hung.worker.stop({ deadlineMs: 50 });

  // Assert
  const givenUp = commit === 'claimed' ? { kind: 'lost', reason: 'timeout' } : { kind: 'retry' };
  expect(first?.outcome).toMatchObject(givenUp);
  expect(completed?.outcome).toMatchObject({ kind: 'completed', attempt: 2 });
  expect([leftovers.length, await countOf(bench), await bench.depth()]).toEqual([1, 1, 0]);
});

test.each(EITHER_COMMIT)('a %s handler that throws before its first await is tried again', async (commit) => {
  const bench = await lab.open();
  let tries = 0;
  const handler: Handler<Note> = {
    ...noteHandler(() => {
      tries += 1;
      if (tries === 1) throw new Error('no promise at all');
      return Promise.resolve(done(bench.accountId));
    }),
    commit,
  };
  const run = bench.run({ handlers: [handler] });
  await bench.send(NOTE);

  await run.when('completed');

  expect(run.outcomes.entries[0]?.outcome).toMatchObject({ kind: 'retry', error: 'no promise at all', attempt: 1 });
  expect([run.tally(), await countOf(bench)]).toEqual([{ retry: 1, completed: 1 }, 1]);
});

test.each(EITHER_COMMIT)(
  'what a %s handler throws after its outcome changes nothing and ends nobody',
  async (commit) => {
    // Arrange
    const bench = await lab.open({ visibilityTimeoutSeconds: 2 });
    const unhandled = watchRejections();
    const isOver = Promise.withResolvers<HandlerResult>();
    const handler: Handler<Note> = {
      ...noteHandler((_message, { attempt }) =>
        attempt === 1 ? isOver.promise : Promise.resolve(done(bench.accountId)),
      ),
      commit,
    };
    const run = bench.run({ handlers: [handler], handlerTimeoutMs: 200, lease: LEASE });
    await bench.send(NOTE);
    await run.when('completed');
    const before = run.tally();

    // Act
    isOver.reject(new Error('far too late'));
    const { leftovers } = await run.worker.stop();

    // Assert
    expect([leftovers, run.tally(), unhandled]).toEqual([[], before, []]);
    expect([await countOf(bench), await bench.deadLetters()]).toEqual([1, []]);
  },
);

test('a step that a handler forgot to await is not made once the outcome is there', async () => {
  // Arrange
  const bench = await lab.open();
  const isOver = Promise.withResolvers<void>();
  const calls: string[] = [];
  let forgotten: Promise<unknown> = Promise.resolve();
  const handler = noteHandler((_message, { step }) => {
    const call = (): Promise<null> => {
      calls.push('made');
      return Promise.resolve(null);
    };
    forgotten = isOver.promise.then(() => step('late', call, { idempotentForMs: 86_400_000 }));
    return Promise.resolve(done(bench.accountId));
  });
  const run = bench.run({ handlers: [handler] });
  await bench.send(NOTE);
  await run.when('completed');

  // Act
  isOver.resolve();
  const refused = await forgotten.catch((error: unknown) => error);

  // Assert
  expect(refused).toMatchObject({ code: 'LEASE_LOST' });
  expect([calls, await countOf(bench)]).toEqual([[], 1]);
});

test.each(EITHER_COMMIT)(
  'a %s handler that blocks the event loop for two leases completes once when nobody took over',
  async (commit) => {
    const bench = await lab.open();
    // Over by more than a second at its end, which tells a pause from beats that failed.
    const lease = { leaseMs: 1_400, heartbeatMs: 300 };
    const handler: Handler<Note> = {
      ...noteHandler(() => {
        blockFor(2 * lease.leaseMs);
        return Promise.resolve(done(bench.accountId));
      }),
      commit,
    };
    const run = bench.run({ handlers: [handler], lease });
    await bench.send(NOTE);

    const [report] = await run.outcomes.when(1);

    expect(report?.outcome).toMatchObject({ kind: 'completed', attempt: 1 });
    expect([await countOf(bench), await bench.depth()]).toEqual([1, 0]);
  },
);

test.each([
  ['claimed', { kind: 'lost', reason: 'stolen' }],
  ['direct', { kind: 'replayed' }],
] as const)(
  'a %s handler that blocks the event loop until another worker is done applies nothing',
  async (commit, expected) => {
    // Arrange: the process is blocked by waiting for the other worker, from its start to its end.
    const bench = await lab.open({ visibilityTimeoutSeconds: 1 });
    const input: StormInput = {
      sqsEndpoint: lab.sqsEndpoint,
      dynamodbEndpoint: lab.dynamodbEndpoint,
      queue: bench.queue,
      queueUrl: bench.queueUrl,
      deadLetterQueueUrl: bench.deadLetterQueueUrl,
      name: 'other',
      commit,
      concurrency: 1,
      visibilityTimeoutSeconds: 1,
      lease: LEASE,
      stopAfter: 1,
    };
    const ended: unknown[] = [];
    const handler: Handler<Note> = {
      ...noteHandler(({ key }, { attempt }) => {
        if (attempt === 1) ended.push(spawnSync(process.execPath, [OTHER_WORKER, JSON.stringify(input)]).status);
        return Promise.resolve({ kind: 'completed', response: null, effects: [countEffect(`${bench.queue}/${key}`)] });
      }),
      commit,
    };
    const run = bench.run({ handlers: [handler], lease: LEASE, visibilityTimeoutSeconds: 1 });

    // Act
    await bench.send(NOTE);
    const [report] = await run.outcomes.when(1);

    // Assert
    expect([ended, report?.outcome]).toMatchObject([[0], expected]);
    expect(await bench.store.get(counterKey(`${bench.queue}/n1`))).toMatchObject({ value: 1 });
  },
);

test.each(EITHER_COMMIT)(
  'a %s handler that changes its message changes neither the next attempt nor what duplicates are compared with',
  async (commit) => {
    // Arrange
    const bench = await lab.open();
    const seen: unknown[] = [];
    const handler: Handler<Note> = {
      ...noteHandler((message) => {
        seen.push(structuredClone(message));
        Object.assign(message.payload, { id: 'other', text: 'changed' });
        Object.assign(message, { key: 'other', payloadHash: 'other', type: 'other' });
        if (seen.length === 1) throw new Error('once more');
        return Promise.resolve(done(bench.accountId));
      }),
      commit,
    };
    const run = bench.run({ handlers: [handler] });
    await bench.send(NOTE);
    const [completed] = await run.when('completed');

    // Act
    await bench.send(NOTE);
    await run.when('replayed');
    await bench.send(noteBody({ id: 'n1', text: 'changed' }));
    const [conflict] = await run.when('conflict');

    // Assert
    expect(seen[1]).toEqual(seen[0]);
    expect([completed?.key, conflict?.key, await countOf(bench)]).toEqual(['n1', 'n1', 1]);
    expect([await bench.record('n1'), await bench.record('other')]).toMatchObject([{ status: 'COMPLETED' }, undefined]);
  },
);

test.each(EITHER_COMMIT)('a response of 500 KB of a %s handler is kept and told by its digest', async (commit) => {
  const bench = await lab.open();
  const handler: Handler<Note> = {
    ...noteHandler(() => Promise.resolve(done(bench.accountId, 'x'.repeat(500_000)))),
    commit,
  };
  const run = bench.run({ handlers: [handler] });
  await bench.send(NOTE);
  const [completed] = await run.when('completed');
  await bench.send(NOTE);

  const [replayed] = await run.when('replayed');

  const response = { digest: 'sha256', sha256: expect.stringMatching(/^[0-9a-f]{64}$/) as string, bytes: 500_002 };
  expect(completed?.outcome).toMatchObject({ response });
  expect(replayed?.outcome).toMatchObject({ answer: { status: 'COMPLETED', response } });
  expect([await countOf(bench), await bench.depth()]).toEqual([1, 0]);
});

test.each(EITHER_COMMIT)(
  'an effect of 500 KB of a %s handler is dead-lettered, and nothing is applied',
  async (commit) => {
    const bench = await lab.open();
    const item = { PK: `LARGE#${bench.queue}`, SK: 'X', text: 'x'.repeat(500_000) };
    const handler: Handler<Note> = {
      ...noteHandler((_message, { transaction }) => {
        transaction.add({ kind: 'put', label: 'large', item });
        return Promise.resolve(done(bench.accountId));
      }),
      commit,
    };
    const run = bench.run({ handlers: [handler] });
    await bench.send(NOTE);

    const [report] = await run.outcomes.when(1);

    expect(report?.outcome).toMatchObject({ kind: 'exhausted', attempts: 1 });
    expect(await bench.deadLetters()).toMatchObject([{ body: NOTE, notice: { reason: 'exhausted' } }]);
    expect([await countOf(bench), await bench.store.get({ PK: item.PK, SK: item.SK })]).toEqual([undefined, undefined]);
  },
);
