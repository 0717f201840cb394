/** What a message costs when all goes well, counted in requests that really left the process. */
import type { SQSClient } from '@aws-sdk/client-sqs';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { Handler, HandlerContext } from '../../src/workers/handler.ts';
import { countEffect, noteBody, noteHandler, type Note } from '../support/worker-contract.ts';
import { StoreProxy } from '../support/worker-faults.ts';
import { workerLab } from '../support/worker-fixture.ts';

const lab = workerLab();
let proxy: StoreProxy;

beforeAll(async () => {
  proxy = await StoreProxy.start(lab.dynamodbEndpoint);
});
afterAll(async () => {
  await proxy.stop();
});

const MESSAGES = 200;
const REMEMBERED = { idempotentForMs: 86_400_000 };

type Counts = Record<string, number>;

function count(counts: Counts, name: string): void {
  counts[name] = (counts[name] ?? 0) + 1;
}

/** Each try of the SDK is a request: it is counted after those were multiplied. */
function countTries(client: SQSClient, counts: Counts): void {
  client.middlewareStack.add(
    (next, context) => (args) => {
      count(counts, String(context.commandName));
      return next(args);
    },
    { step: 'finalizeRequest', priority: 'low' },
  );
}

/** @returns requests per message, by the name of the operation. */
async function costOf(handler: Handler<Note>, concurrency: number): Promise<{ dynamodb: Counts; sqs: Counts }> {
  const bench = await lab.open();
  const counts = { dynamodb: {} as Counts, sqs: {} as Counts };
  proxy.fault = ({ operation }, forward) => {
    count(counts.dynamodb, operation);
    return forward();
  };
  await bench.sendAll(Array.from({ length: MESSAGES }, (_, index) => noteBody({ id: `n${String(index)}`, text: '' })));
  const run = bench.run({
    handlers: [handler],
    concurrency,
    dynamodbEndpoint: proxy.endpoint,
    // Long enough for a busy machine: what is counted is the sharing, not the speed.
    deleteBatchWindowMs: 500,
    lease: {},
    prepare: ({ client, pollingClient }) => {
      countTries(client, counts.sqs);
      countTries(pollingClient, counts.sqs);
    },
  });
  await run.when('completed', MESSAGES);
  return { dynamodb: perMessage(counts.dynamodb), sqs: perMessage(counts.sqs) };
}

function perMessage(counts: Counts): Counts {
  return Object.fromEntries(Object.entries(counts).map(([name, requests]) => [name, requests / MESSAGES]));
}

function total(counts: Counts): number {
  return Object.values(counts).reduce((sum, requests) => sum + requests, 0);
}

function handlerOf(commit: 'direct' | 'claimed', work: (context: HandlerContext) => Promise<unknown>): Handler<Note> {
  const handler = noteHandler(async ({ key }, context) => {
    await work(context);
    return { kind: 'completed', response: null, effects: [countEffect(`cost/${key}`)] };
  });
  return { ...handler, commit };
}

const call = (): Promise<string> => Promise.resolve('called');

test.each<[string, Handler<Note>, Counts]>([
  ['with direct commit', handlerOf('direct', () => Promise.resolve()), { TransactWriteItems: 1 }],
  ['with claimed commit', handlerOf('claimed', () => Promise.resolve()), { UpdateItem: 1, TransactWriteItems: 1 }],
  [
    'with two steps whose calls may be repeated',
    handlerOf('claimed', async ({ step }) => {
      await step('one', call, REMEMBERED);
      await step('two', call, REMEMBERED);
    }),
    { UpdateItem: 3, TransactWriteItems: 1 },
  ],
  [
    'with a step whose call may not be repeated',
    handlerOf('claimed', ({ step }) => step('only', call)),
    { UpdateItem: 3, TransactWriteItems: 1 },
  ],
])('a message %s costs as many requests to DynamoDB as the documents say', async (name, handler, expected) => {
  const { dynamodb, sqs } = await costOf(handler, 10);

  process.stdout.write(`${name}, per message: DynamoDB ${JSON.stringify(dynamodb)}, SQS ${String(total(sqs))}\n`);
  expect(dynamodb).toEqual(expected);
});

test.each([
  ['direct', 10],
  ['direct', 100],
  ['claimed', 10],
  ['claimed', 100],
] as const)(
  'a message with %s commit costs at most 0.3 requests to SQS at a concurrency of %i',
  async (commit, concurrency) => {
    const { sqs } = await costOf(
      handlerOf(commit, () => Promise.resolve()),
      concurrency,
    );

    process.stdout.write(`${commit}, concurrency ${String(concurrency)}, per message: SQS ${JSON.stringify(sqs)}\n`);
    expect(Object.keys(sqs).toSorted()).toEqual(['DeleteMessageBatchCommand', 'ReceiveMessageCommand']);
    expect(total(sqs)).toBeLessThanOrEqual(0.3);
  },
);
