import { expect, test } from 'vitest';
import { z } from 'zod';
import { messageOf } from '../../src/errors.ts';
import { defineMessage } from '../../src/messages/contract.ts';
import { encodeMessage } from '../../src/messages/envelope.ts';
import { createEventHub } from '../../src/workers/events.ts';
import type { Handler, HandlerResult } from '../../src/workers/handler.ts';
import { StepRefused } from '../../src/workers/steps.ts';
import { noteBody, noteHandler, type Note } from '../support/worker-contract.ts';
import { workerLab } from '../support/worker-fixture.ts';

const lab = workerLab();
const done = (): Promise<HandlerResult> => Promise.resolve({ kind: 'completed' });

/** What nobody expects to be thrown: it has no text at all. */
function throwNothing(): never {
  throw Object.create(null);
}

test.each<[what: string, value: unknown]>([
  ['an object without a prototype', Object.create(null)],
  ['an error whose message is an object', Object.assign(new Error('x'), { message: { a: 1 } })],
  ['an error whose message throws', Object.defineProperty(new Error('x'), 'message', { get: throwNothing })],
  ['a symbol', Symbol('s')],
])('has a text for %s', (_what, value) => {
  expect(messageOf(value)).toEqual(expect.any(String));
});

test.each(['claimed', 'direct'] as const)(
  'gives a value without text that a %s handler throws an outcome',
  async (commit) => {
    const bench = await lab.open();
    let runs = 0;
    const handler: Handler<Note> = {
      ...noteHandler(() => {
        runs += 1;
        return runs === 1 ? throwNothing() : done();
      }),
      commit,
    };
    const run = bench.run({ handlers: [handler] });
    await bench.send(noteBody({ id: 'n1', text: '' }));

    await run.when('completed');

    expect(run.tally()).toEqual({ retry: 1, completed: 1 });
  },
);

test('counts the failures of a direct handler whose errors hold half an emoji at the cut', async () => {
  const bench = await lab.open();
  const text = `${'x'.repeat(499)}\u{1f600}`;
  const handler: Handler<Note> = { ...noteHandler(() => Promise.reject(new Error(text))), commit: 'direct' };
  const run = bench.run({ handlers: [handler], maxAttempts: 2 });
  await bench.send(noteBody({ id: 'n1', text: '' }));

  await run.when('exhausted');

  expect(run.tally()).toEqual({ retry: 1, exhausted: 1 });
});

test('counts the failures of a direct handler on a key that a dead worker had claimed', async () => {
  const bench = await lab.open();
  const body = noteBody({ id: 'n1', text: '' });
  const hung = bench.run({
    handlers: [noteHandler(() => new Promise<never>(() => undefined))],
    lease: { leaseMs: 500, heartbeatMs: 100, safetyMarginMs: 50, maxClockSkewMs: 0 },
    handlerTimeoutMs: 100,
  });
  await bench.send(body);
  await hung.when('lost');
  // It would take the next message too, and hang on it.
  await hung.worker.stop({ deadlineMs: 0 });
  const handler: Handler<Note> = { ...noteHandler(() => Promise.reject(new Error('no luck'))), commit: 'direct' };
  const run = bench.run({ handlers: [handler], maxAttempts: 2 });
  await bench.send(body);

  const [exhausted] = await run.when('exhausted');

  expect(exhausted?.outcome).toMatchObject({ error: 'no luck', attempts: 2 });
});

test('hands each version of a message to the handler of that version', async () => {
  const bench = await lab.open();
  const seen: string[] = [];
  const first = noteHandler(({ version }) => {
    seen.push(`first ${String(version)}`);
    return done();
  });
  const second: Handler<Note> = {
    ...noteHandler(({ version }) => {
      seen.push(`second ${String(version)}`);
      return done();
    }),
    contract: { ...first.contract, version: 2 },
  };
  const run = bench.run({ handlers: [first, second] });
  await bench.send(JSON.stringify({ type: 'note.written', version: 2, key: 'n2', payload: { id: 'n2', text: '' } }));
  await bench.send(noteBody({ id: 'n1', text: '' }));

  await run.when('completed', 2);

  expect(seen.toSorted()).toEqual(['first 1', 'second 2']);
});

test('is resumed while all its slots are taken, and receives when one is free', async () => {
  const bench = await lab.open();
  const over = Promise.withResolvers<void>();
  const handler = noteHandler(async () => {
    await over.promise;
    return { kind: 'completed' };
  });
  const run = bench.run({ handlers: [handler], concurrency: 1 });
  await bench.send(noteBody({ id: 'n1', text: '' }));
  await run.deliveries.when(1);
  await bench.send(noteBody({ id: 'n2', text: '' }));
  const quiet = run.worker.quiet();
  run.worker.resume();
  over.resolve();
  await quiet;

  await run.when('completed', 2);
});

test('a stop after quiet waits for the receive that is still open', async () => {
  const bench = await lab.open();
  const run = bench.run({ handlers: [noteHandler(done)], waitTimeSeconds: 2 });
  await bench.send(noteBody({ id: 'n1', text: '' }));
  await run.when('completed');

  void run.worker.quiet();
  await run.worker.stop();
  await bench.send(noteBody({ id: 'n2', text: '' }));
  const [left] = await bench.whenGivenBack(1);

  expect(left?.Attributes).toMatchObject({ ApproximateReceiveCount: '1' });
});

test('a listener that takes itself off and on again is called once for an event', () => {
  const hub = createEventHub({});
  let calls = 0;
  const listen = (): void => {
    const off = hub.on('stalled', () => {
      calls += 1;
      off();
      listen();
    });
  };
  listen();

  hub.tell('stalled', { silentForMs: 1 });

  expect(calls).toBe(1);
});

test('refuses to send what a schema would change a second time', () => {
  const contract = defineMessage({
    type: 'price.set',
    version: 1,
    schema: z.object({ id: z.string(), cents: z.number().transform((euros) => euros * 100) }),
    keyOf: ({ id }) => id,
  });
  const withDefault = defineMessage({
    type: 'price.set',
    version: 1,
    schema: z.object({ id: z.string(), currency: z.string().default('EUR') }),
    keyOf: ({ id }) => id,
  });

  expect(() => encodeMessage(contract, { id: 'p1', cents: 5 })).toThrow(/a transform may run only once/);
  expect(encodeMessage(withDefault, { id: 'p1' } as never).body).toContain('EUR');
});

test('a refused step may be tried again by the same attempt', async () => {
  const bench = await lab.open();
  let calls = 0;
  const handler = noteHandler(async (_message, { step }) => {
    const call = (): Promise<string> => {
      calls += 1;
      return calls === 1 ? Promise.reject(new StepRefused('busy')) : Promise.resolve('booked');
    };
    const response = await step('book', call).catch(() => step('book', call));
    return { kind: 'completed', response };
  });
  const run = bench.run({ handlers: [handler] });
  await bench.send(noteBody({ id: 'n1', text: '' }));

  const [completed] = await run.when('completed');

  expect(completed?.outcome).toMatchObject({ attempt: 1, response: 'booked' });
});
