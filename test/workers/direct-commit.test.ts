import { expect, onTestFinished, test } from 'vitest';
import type { Condition } from '../../src/store/expressions.ts';
import { plus } from '../../src/store/expressions.ts';
import type { Item } from '../../src/store/table.ts';
import type { TransactionAction } from '../../src/store/transactions/transaction.ts';
import type { Handler, HandlerContext, HandlerResult } from '../../src/workers/handler.ts';
import { RetryLater } from '../../src/workers/retry.ts';
import { counterKey, countEffect, noteBody, noteHandler, type Note } from '../support/worker-contract.ts';
import { StoreProxy, storeError, type StoreFault } from '../support/worker-faults.ts';
import { workerLab, type Bench } from '../support/worker-fixture.ts';

const lab = workerLab();

type Handle = (note: Note, context: HandlerContext) => Promise<HandlerResult> | HandlerResult;

function directly(handle: Handle): Handler<Note> {
  return { ...noteHandler(async ({ payload }, context) => handle(payload, context)), commit: 'direct' };
}

/** A handler whose effect would be seen if it happened twice. */
function counting(name: string, response: unknown = 'ok'): Handler<Note> {
  return directly((_note, { transaction }) => {
    transaction.add(countEffect(name));
    return { kind: 'completed', response };
  });
}

async function counted(bench: Bench, name: string): Promise<unknown> {
  return (await bench.store.get(counterKey(name)))?.['value'];
}

async function proxied(fault: StoreFault): Promise<{ readonly dynamodbEndpoint: string; readonly sent: string[] }> {
  const sent: string[] = [];
  const proxy = await StoreProxy.start(lab.dynamodbEndpoint);
  proxy.fault = (request, forward) => {
    sent.push(request.operation);
    return fault(request, forward);
  };
  onTestFinished(() => proxy.stop());
  return { dynamodbEndpoint: proxy.endpoint, sent };
}

function record(bench: Bench, key = 'n1'): Promise<Item | undefined> {
  return bench.record(key);
}

test('sends one request to DynamoDB for a new message, and one for its duplicate', async () => {
  const bench = await lab.open();
  const { dynamodbEndpoint, sent } = await proxied((_request, forward) => forward());
  const run = bench.run({ handlers: [counting(bench.accountId)], dynamodbEndpoint });
  await bench.send(noteBody({ id: 'n1', text: '' }));
  await run.when('completed');

  await bench.send(noteBody({ id: 'n1', text: '' }));
  const [replayed] = await run.when('replayed');

  expect(sent).toEqual(['TransactWriteItems', 'TransactWriteItems']);
  expect(replayed?.outcome).toMatchObject({ answer: { status: 'COMPLETED', response: 'ok' } });
  expect(await counted(bench, bench.accountId)).toBe(1);
});

test('gives 20 concurrent duplicates one effect and one answer', async () => {
  const bench = await lab.open();
  const name = bench.accountId;
  let runs = 0;
  const handler = directly((_note, { transaction }) => {
    transaction.add(countEffect(name));
    runs += 1;
    return { kind: 'completed', response: { run: runs } };
  });
  await bench.sendAll(Array.from({ length: 20 }, () => noteBody({ id: 'n1', text: '' })));
  const run = bench.run({ handlers: [handler], concurrency: 20 });
  const [completed] = await run.when('completed');
  const replays = await run.when('replayed', 19);

  expect(await counted(bench, name)).toBe(1);
  const response: unknown = completed?.outcome.kind === 'completed' && completed.outcome.response;
  for (const { outcome } of replays) expect(outcome).toMatchObject({ answer: { response } });
});

test('takes another payload under the same key for a conflict, and applies nothing of it', async () => {
  const bench = await lab.open();
  const run = bench.run({ handlers: [counting(bench.accountId)] });
  await bench.send(noteBody({ id: 'n1', text: 'first' }));
  await run.when('completed');

  await bench.send(noteBody({ id: 'n1', text: 'second' }));
  await run.when('conflict');

  expect(await counted(bench, bench.accountId)).toBe(1);
  expect((await bench.deadLetters()).map(({ notice }) => notice?.reason)).toEqual(['conflict']);
});

test('M3 knows its own commit again when the answer is lost and the token forgotten', async () => {
  const bench = await lab.open();
  let commits = 0;
  const { dynamodbEndpoint } = await proxied(async ({ body }, forward) => {
    commits += 1;
    // Applied, and the answer lost; the repeat then arrives as if DynamoDB had forgotten the first one's token.
    if (commits === 1) return forward().then(() => 'cut' as const);
    const fresh = { ...(JSON.parse(body) as object), ClientRequestToken: `other-${String(commits)}` };
    return forward(JSON.stringify(fresh));
  });
  const run = bench.run({ handlers: [counting(bench.accountId)], dynamodbEndpoint });
  await bench.send(noteBody({ id: 'n1', text: '' }));

  await run.when('completed');

  expect(commits).toBeGreaterThan(1);
  expect(await counted(bench, bench.accountId)).toBe(1);
});

test('a commit that stays unanswered is tried again later, and found done', async () => {
  const bench = await lab.open({ visibilityTimeoutSeconds: 30 });
  let isCut = true;
  const { dynamodbEndpoint } = await proxied(async ({ operation }, forward) => {
    const answer = await forward();
    return isCut && operation === 'TransactWriteItems' ? 'cut' : answer;
  });
  const run = bench.run({
    handlers: [counting(bench.accountId)],
    dynamodbEndpoint,
    events: {
      onOutcome: () => {
        isCut = false;
      },
    },
  });
  await bench.send(noteBody({ id: 'n1', text: '' }));
  const [retried] = await run.when('retry');
  await run.when('replayed');

  expect(retried?.outcome).toMatchObject({ isStoreFault: true });
  expect(await counted(bench, bench.accountId)).toBe(1);
});

test('counts failed attempts on the failure path alone, and dead-letters after the last one', async () => {
  const bench = await lab.open();
  const { dynamodbEndpoint, sent } = await proxied((_request, forward) => forward());
  const handler = directly(() => {
    throw new Error('no luck');
  });
  const run = bench.run({ handlers: [handler], dynamodbEndpoint, maxAttempts: 3 });
  await bench.send(noteBody({ id: 'n1', text: '' }));

  const [exhausted] = await run.when('exhausted');

  expect(run.outcomes.entries.map(({ outcome }) => outcome.kind)).toEqual(['retry', 'retry', 'exhausted']);
  expect(exhausted?.outcome).toMatchObject({ attempts: 3, error: 'no luck' });
  // Three counts, and one more that lets whoever redrives it start afresh.
  expect(sent).toEqual(['UpdateItem', 'UpdateItem', 'UpdateItem', 'UpdateItem']);
  expect(await record(bench)).toMatchObject({ status: 'FAILED', lastError: 'no luck' });
  expect((await record(bench))?.['attempts']).toBeUndefined();
});

test('completes a key whose earlier attempts failed', async () => {
  const bench = await lab.open();
  const name = bench.accountId;
  const handler = directly((_note, { attempt, transaction }) => {
    if (attempt === 1) throw new Error('not yet');
    transaction.add(countEffect(name));
    return { kind: 'completed', response: 'ok' };
  });
  const run = bench.run({ handlers: [handler] });
  await bench.send(noteBody({ id: 'n1', text: '' }));

  await run.when('completed');

  expect(await counted(bench, name)).toBe(1);
  expect(await record(bench)).toMatchObject({ status: 'COMPLETED' });
  expect((await record(bench))?.['lastError']).toBeUndefined();
});

test('a store that throttles uses up no attempt', async () => {
  const bench = await lab.open();
  let refusals = 0;
  const { dynamodbEndpoint } = await proxied((_request, forward) => {
    refusals += 1;
    return refusals <= 12 ? Promise.resolve(storeError(400, 'ThrottlingException')) : forward();
  });
  const run = bench.run({ handlers: [counting(bench.accountId)], dynamodbEndpoint, maxAttempts: 1 });
  await bench.send(noteBody({ id: 'n1', text: '' }));

  await run.when('completed');

  expect(run.tally().exhausted).toBeUndefined();
  expect(await counted(bench, bench.accountId)).toBe(1);
});

test('refuses an outside step with an error that says what to do, and dead-letters the message', async () => {
  const bench = await lab.open();
  let isCalled = false;
  const handler = directly(async (_note, context) => {
    const call = (): Promise<number> => {
      isCalled = true;
      return Promise.resolve(1);
    };
    await context.step('charge', call, { idempotentForMs: 1_000 });
    return { kind: 'completed' };
  });
  const run = bench.run({ handlers: [handler] });
  await bench.send(noteBody({ id: 'n1', text: '' }));

  const [exhausted] = await run.when('exhausted');

  expect(exhausted?.outcome).toMatchObject({ attempts: 1 });
  expect(exhausted?.outcome.kind === 'exhausted' && exhausted.outcome.error).toMatch(/commit: 'claimed'/);
  expect(isCalled).toBe(false);
});

const STOCK = { PK: 'STOCK#direct', SK: 'STOCK' };

function atLeast(quantity: number): Condition {
  return (placeholders) => `${placeholders.name('left')} >= ${placeholders.value(quantity)}`;
}

function take(id: string, quantity: number): TransactionAction {
  const key = { ...STOCK, PK: `${STOCK.PK}-${id}` };
  return {
    kind: 'update',
    label: 'stock',
    key,
    change: { set: { left: plus(-quantity, 0) } },
    condition: atLeast(quantity),
  };
}

function selling(id: string): Handler<Note> {
  return directly((_note, { transaction }) => {
    transaction.add(take(id, 2));
    return {
      kind: 'completed',
      response: 'sold',
      whenRefused: (failures) => ({ kind: 'rejected', reason: `no ${failures.map(({ label }) => label).join()}` }),
    };
  });
}

test('rejects by what the handler makes of a false condition, records it, and replays it to duplicates', async () => {
  const bench = await lab.open();
  const key = { ...STOCK, PK: `${STOCK.PK}-${bench.queue}` };
  await bench.store.update({ key, change: { set: { left: 3 } } });
  const run = bench.run({ handlers: [selling(bench.queue)] });
  await bench.send(noteBody({ id: 'o1', text: '' }));
  await run.when('completed');
  await bench.send(noteBody({ id: 'o2', text: '' }));
  await run.when('rejected');

  await bench.store.update({ key, change: { set: { left: 9 } } });
  await bench.send(noteBody({ id: 'o2', text: '' }));
  const [replayed] = await run.when('replayed');

  expect(replayed?.outcome).toMatchObject({ answer: { status: 'REJECTED', reason: 'no stock' } });
  expect(await bench.store.get(key)).toMatchObject({ left: 9 });
});

test('a duplicate whose stock is gone is a replay, not a rejection: the record speaks first', async () => {
  const bench = await lab.open();
  const key = { ...STOCK, PK: `${STOCK.PK}-${bench.queue}` };
  await bench.store.update({ key, change: { set: { left: 2 } } });
  const run = bench.run({ handlers: [selling(bench.queue)] });
  await bench.send(noteBody({ id: 'o1', text: '' }));
  await run.when('completed');

  await bench.send(noteBody({ id: 'o1', text: '' }));
  const [replayed] = await run.when('replayed');

  expect(replayed?.outcome).toMatchObject({ answer: { status: 'COMPLETED', response: 'sold' } });
  expect(await bench.store.get(key)).toMatchObject({ left: 0 });
});

test('a direct delivery waits for the live lease of a claimed one on the same key', async () => {
  const bench = await lab.open();
  const payloadOf = (note: Note): string => noteBody(note);
  const note = { id: 'n1', text: '' };
  const run = bench.run({
    handlers: [noteHandler(() => new Promise<never>(() => undefined))],
    name: 'claimer',
    concurrency: 1,
  });
  await bench.send(payloadOf(note));
  await run.deliveries.when(1);
  const direct = bench.run({ handlers: [counting(bench.accountId)], name: 'direct' });
  await bench.send(payloadOf(note));

  const [busy] = await direct.when('busy');
  await run.worker.stop({ deadlineMs: 0 });

  expect(busy?.outcome).toMatchObject({ holder: 'claimer' });
  expect(await counted(bench, bench.accountId)).toBeUndefined();
});

test.each([
  ['returned', (): HandlerResult => ({ kind: 'retry', reason: 'the order is not there yet', countsAsAttempt: false })],
  [
    'thrown',
    (): HandlerResult => {
      throw new RetryLater('the order is not there yet', { countsAsAttempt: false });
    },
  ],
])('a "not now" that is %s counts no attempt where it is nobody\'s fault', async (_how, notNow) => {
  const bench = await lab.open();
  const name = bench.accountId;
  let tries = 0;
  const handler = directly((_note, { transaction }) => {
    tries += 1;
    if (tries <= 3) return notNow();
    transaction.add(countEffect(name));
    return { kind: 'completed' };
  });
  const run = bench.run({ handlers: [handler], maxAttempts: 2 });
  await bench.send(noteBody({ id: 'n1', text: '' }));

  await run.when('completed');

  expect(run.tally()).toEqual({ retry: 3, completed: 1 });
  expect(await counted(bench, name)).toBe(1);
});

test('warns of an effect that is added after its handler has returned', async () => {
  const bench = await lab.open();
  const warned = new Promise<Error>((resolve) => process.once('warning', resolve));
  const settled = Promise.withResolvers<void>();
  const handler = directly((_note, { transaction }) => {
    void settled.promise.then(() => {
      transaction.add(countEffect(bench.accountId));
    });
    return { kind: 'completed' };
  });
  const run = bench.run({ handlers: [handler] });
  await bench.send(noteBody({ id: 'n1', text: '' }));
  await run.when('completed');

  settled.resolve();

  expect((await warned).message).toContain('an await is missing');
  expect(await counted(bench, bench.accountId)).toBeUndefined();
});

test('gives the handler a key for the effect that every delivery shares, and no lease', async () => {
  const bench = await lab.open();
  const seen: { key: string; lease: unknown; deadlineMs: number }[] = [];
  const handler = directly((_note, { idempotencyKey, lease, deadlineMs }) => {
    seen.push({ key: idempotencyKey, lease, deadlineMs });
    return { kind: 'completed' };
  });
  const run = bench.run({ handlers: [handler], handlerTimeoutMs: 60_000 });
  await bench.sendAll([
    noteBody({ id: 'n1', text: '' }),
    noteBody({ id: 'n1', text: '' }),
    noteBody({ id: 'n2', text: '' }),
  ]);
  await run.when('completed', 2);
  await run.when('replayed');

  expect(new Set(seen.map(({ key }) => key)).size).toBe(2);
  expect(seen.every(({ lease }) => lease === undefined)).toBe(true);
  expect(seen.every(({ deadlineMs }) => deadlineMs > 1_700_000_000_000)).toBe(true);
});
