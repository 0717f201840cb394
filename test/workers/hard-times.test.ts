import { afterAll, beforeAll, expect, test } from 'vitest';
import {
  ChangeMessageVisibilityBatchCommand,
  type ReceiveMessageCommandInput,
  type ReceiveMessageCommandOutput,
} from '@aws-sdk/client-sqs';
import { absent } from '../../src/store/conditions.ts';
import { noteBody, noteHandler } from '../support/worker-contract.ts';
import { interceptCommand, StoreProxy, storeError, type StoreAnswer } from '../support/worker-faults.ts';
import { workerLab } from '../support/worker-fixture.ts';
import { Journal } from '../support/worker-journal.ts';

const lab = workerLab();
let proxy: StoreProxy;

beforeAll(async () => {
  proxy = await StoreProxy.start(lab.dynamodbEndpoint);
});
afterAll(async () => {
  await proxy.stop();
});

/** A cancellation by what passes by itself, as DynamoDB writes it. */
function cancelledBy(code: string): StoreAnswer {
  const body = {
    __type: 'com.amazonaws.dynamodb.v20120810#TransactionCanceledException',
    message: 'by the test',
    CancellationReasons: [{ Code: 'None' }, { Code: 'None' }, { Code: code, Message: 'by the test' }],
  };
  return { status: 400, body: JSON.stringify(body) };
}

const EMPTY = { kind: 'completed', response: null, effects: [] } as const;

test.each([
  ['throttled', storeError(400, 'ThrottlingException')],
  ['cancelled by throttling', cancelledBy('ThrottlingError')],
  ['cancelled by contention', cancelledBy('TransactionConflict')],
])('commits that are %s for longer than a lease use up no attempt and lose no lease', async (_case, answer) => {
  // Arrange
  const bench = await lab.open();
  const times = { left: Number.POSITIVE_INFINITY };
  proxy.fault = ({ operation }, forward) =>
    operation === 'TransactWriteItems' && times.left > 0 ? Promise.resolve(answer) : forward();
  const lease = { leaseMs: 1_000, heartbeatMs: 200, safetyMarginMs: 100 };
  const retryBackoff = { baseMs: 1, capMs: 1 };
  const run = bench.run({ dynamodbEndpoint: proxy.endpoint, maxAttempts: 2, lease, retryBackoff });
  await bench.send(bench.chargeBody());

  // Act
  await run.when('retry', 3);
  times.left = 0;
  await run.when('completed');

  // Assert
  expect(Object.keys(run.tally()).toSorted((left, right) => left.localeCompare(right))).toEqual(['completed', 'retry']);
  expect([bench.provider.charges.length, (await bench.deadLetters()).length]).toEqual([1, 0]);
});

test('a visibility call that gets no answer does not keep the lease from being renewed', async () => {
  // Arrange
  const bench = await lab.open({ visibilityTimeoutSeconds: 3 });
  proxy.fault = (_request, forward) => forward();
  const renewals = new Journal<string>();
  const storeFault = proxy;
  storeFault.fault = ({ operation, body }, forward) => {
    if (operation === 'UpdateItem' && !body.includes('takenFrom')) renewals.add(body);
    return forward();
  };
  const run = bench.run({
    dynamodbEndpoint: proxy.endpoint,
    lease: { leaseMs: 2_000, heartbeatMs: 300 },
    prepare: ({ client }) => {
      client.middlewareStack.add(
        (next, context) => (args) => {
          if (context.commandName !== ChangeMessageVisibilityBatchCommand.name) return next(args);
          // Never answered: only the worker's own limit ends it.
          return new Promise(() => undefined);
        },
        { step: 'finalizeRequest', priority: 'low' },
      );
    },
    handlers: [
      noteHandler(async () => {
        await renewals.when(10);
        return EMPTY;
      }),
    ],
  });

  // Act
  await bench.send(noteBody({ id: 'n1', text: 'long' }));
  const [report] = await run.outcomes.when(1);

  // Assert
  expect(report?.outcome.kind).toBe('completed');
});

test('a body that was corrupted on its way is acted on by nobody, and comes back whole', async () => {
  // Arrange
  const bench = await lab.open({ visibilityTimeoutSeconds: 2 });
  let corrupted = 0;
  const run = bench.run({
    prepare: ({ pollingClient }) => {
      interceptCommand<ReceiveMessageCommandInput, ReceiveMessageCommandOutput>(
        pollingClient,
        'ReceiveMessageCommand',
        async (_input, send) => {
          const output = await send();
          for (const message of output.Messages ?? []) {
            if (corrupted > 0) continue;
            corrupted += 1;
            message.Body = message.Body?.replace('1250', '9250');
          }
          return output;
        },
      );
    },
  });

  // Act
  await bench.send(bench.chargeBody());
  await run.when('completed');

  // Assert
  expect([corrupted, bench.provider.charges.length, await bench.balance()]).toEqual([1, 1, 1_250]);
});

test('an effect with the label of the record is not taken for it when its condition fails', async () => {
  // Arrange
  const bench = await lab.open();
  const item = { PK: `TAKEN#${bench.queue}`, SK: 'X' };
  await bench.store.transactions.write([{ kind: 'put', label: 'first', item }]);
  const effect = { kind: 'put', label: 'effect record', item, condition: absent() } as const;
  const run = bench.run({ handlers: [noteHandler(() => Promise.resolve({ ...EMPTY, effects: [effect] }))] });

  // Act
  await bench.send(noteBody({ id: 'n1', text: 'taken' }));
  const [report] = await run.outcomes.when(1);

  // Assert
  expect(report?.outcome.kind).toBe('exhausted');
});

test('a response and a step result look the same the first time and every time after', async () => {
  // Arrange
  const bench = await lab.open();
  const seen: unknown[] = [];
  const run = bench.run({
    retryBackoff: { baseMs: 1, capMs: 1 },
    handlers: [
      noteHandler(async (_message, context) => {
        seen.push(await context.step('when', () => Promise.resolve(new Date(0)), { idempotentForMs: 86_400_000 }));
        if (context.attempt === 1) throw new Error('again');
        return { ...EMPTY, response: { at: new Date(0), gone: undefined } };
      }),
    ],
  });
  const note = noteBody({ id: 'n1', text: 'dates' });

  // Act
  await bench.send(note);
  const [first] = await run.when('completed');
  await bench.send(note);
  const [again] = await run.when('replayed');

  // Assert
  const response = { at: '1970-01-01T00:00:00.000Z' };
  expect(seen).toEqual([response.at, response.at]);
  expect(first?.outcome).toMatchObject({ response });
  expect(again?.outcome).toMatchObject({ answer: { status: 'COMPLETED', response } });
});

test('a listener that rejects does no harm', async () => {
  // Arrange
  const bench = await lab.open();
  const warned = new Promise<string>((resolve) => {
    process.once('warning', (warning) => {
      resolve(warning.message);
    });
  });
  const onDelivery = (): void => Promise.reject(new Error('an async guest misbehaves')) as unknown as void;
  const run = bench.run({ events: { onDelivery } });

  // Act
  await bench.send(bench.chargeBody());
  await run.deliveries.when(0);
  const message = await warned;

  // Assert
  expect(message).toContain('an async guest misbehaves');
});

test('a handler that ignores its signal keeps its slot, so that no more run than were asked for', async () => {
  // Arrange
  const bench = await lab.open({ visibilityTimeoutSeconds: 2 });
  proxy.fault = ({ operation, body }, forward) =>
    operation === 'UpdateItem' && !body.includes('takenFrom') ? Promise.resolve('cut') : forward();
  const started = new Journal<string>();
  let end: () => void = () => undefined;
  const ended = new Promise<void>((resolve) => {
    end = resolve;
  });
  const run = bench.run({
    dynamodbEndpoint: proxy.endpoint,
    concurrency: 1,
    visibilityTimeoutSeconds: 2,
    lease: { leaseMs: 600, heartbeatMs: 100 },
    handlers: [
      noteHandler(async ({ key }) => {
        started.add(key);
        await ended;
        return EMPTY;
      }),
    ],
  });
  await bench.sendAll(['n1', 'n2'].map((id) => noteBody({ id, text: 'stubborn' })));

  // Act
  await run.when('lost');
  const report = await run.worker.stop({ deadlineMs: 100 });
  end();

  // Assert
  expect(started.entries).toHaveLength(1);
  expect(report.leftovers).toHaveLength(1);
});
