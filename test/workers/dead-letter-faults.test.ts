import { expect, test } from 'vitest';
import { firstOfCopies, readDeadLetters } from '../../src/queues/dead-letters.ts';
import { redrive, type RedriveDecision } from '../../src/queues/redrive.ts';
import { createDeadLetters } from '../../src/workers/dead-letter.ts';
import type { Delivery } from '../../src/workers/delivery.ts';
import { scriptedClient } from '../support/scripted-sqs.ts';
import { noteBody, noteHandler } from '../support/worker-contract.ts';
import { interceptCommand, refusedConnection, serviceError } from '../support/worker-faults.ts';
import { workerLab, type Bench } from '../support/worker-fixture.ts';

const lab = workerLab();

/** A worker whose first sends to the dead-letter queue fail; counts the deletes at the time of each. */
function runWithFailingSends(bench: Bench, failures: readonly Error[]) {
  let [sends, deletes] = [0, 0];
  const deletesBeforeSend: number[] = [];
  const run = bench.run({
    prepare: ({ client }) => {
      interceptCommand(client, 'SendMessageCommand', (_input, send) => {
        deletesBeforeSend.push(deletes);
        const failure = failures[sends];
        sends += 1;
        return failure === undefined ? send() : Promise.reject(failure);
      });
      interceptCommand(client, 'DeleteMessageBatchCommand', (_input, send) => {
        deletes += 1;
        return send();
      });
    },
  });
  return { run, deletesBeforeSend, sends: () => sends };
}

test('repeats the send to the dead-letter queue, and deletes the message only after it was taken', async () => {
  const bench = await lab.open();
  const faults = [refusedConnection(), serviceError('ServiceUnavailable', 503)];
  const { run, deletesBeforeSend } = runWithFailingSends(bench, faults);
  await bench.send('no JSON');

  await run.when('invalid');

  expect(deletesBeforeSend).toEqual([0, 0, 0]);
  expect([(await bench.deadLetters()).length, await bench.depth()]).toEqual([1, 0]);
});

test('leaves a message on its queue while the dead-letter queue does not take it', async () => {
  const bench = await lab.open({ visibilityTimeoutSeconds: 2 });
  const denied = serviceError('AccessDenied', 403);
  const { run, sends } = runWithFailingSends(bench, [denied]);
  await bench.send('no JSON');
  await run.when('invalid');
  const depthAfterFailure = await bench.depth();

  await run.when('invalid', 2);

  expect([depthAfterFailure, sends()]).toEqual([1, 2]);
  expect([(await bench.deadLetters()).length, await bench.depth()]).toEqual([1, 0]);
});

test('a copy that was sent twice, because the answer to the first was lost, is told and redriven as one', async () => {
  // Arrange
  const bench = await lab.open();
  let sends = 0;
  const run = bench.run({
    prepare: ({ client }) => {
      interceptCommand(client, 'SendMessageCommand', async (_input, send) => {
        const answer = await send();
        sends += 1;
        if (sends === 1) throw serviceError('InternalFailure', 500);
        return answer;
      });
    },
  });
  await bench.sendAll(['no JSON', 'no JSON']);
  await run.when('invalid', 2);
  await run.worker.stop();

  // Act
  const letters = await readDeadLetters(bench.client, bench.deadLetterQueueUrl, { limit: 10 });
  const urls = { from: bench.deadLetterQueueUrl, to: bench.queueUrl };
  const decide = (): Promise<RedriveDecision> => Promise.resolve({ action: 'move' });
  const { moved } = await redrive(bench.client, urls, { limit: 10, decide });

  // Assert
  expect([letters.length, letters.filter(firstOfCopies()).length, moved]).toEqual([3, 2, 2]);
  expect([await bench.depth(bench.deadLetterQueueUrl), await bench.depth()]).toEqual([0, 2]);
});

test('tells of an exhausted message how often and since when it was tried, and what belongs to it', async () => {
  // Arrange
  const bench = await lab.open();
  const fails = noteHandler(() => Promise.reject(new Error('down')));
  const run = bench.run({ handlers: [fails], maxAttempts: 2 });
  const traceparent = '00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01';

  // Act
  await bench.send(noteBody({ id: 'n1', text: '' }), { traceparent: { DataType: 'String', StringValue: traceparent } });
  const [report] = await run.when('exhausted');

  // Assert
  const [letter] = await bench.deadLetters();
  const { sentAtMs = 0, firstReceivedAtMs = 0, deadLetteredAtMs = 0 } = letter?.notice ?? {};
  expect(letter?.notice).toMatchObject({
    reason: 'exhausted',
    detail: 'down',
    attempts: 2,
    messageId: report?.delivery.messageId,
    receiveCount: 2,
    traceId: '4bf92f3577b34da6a3ce929d0e0e4736',
  });
  expect(sentAtMs).toBeGreaterThan(0);
  expect(firstReceivedAtMs).toBeGreaterThanOrEqual(sentAtMs);
  expect(deadLetteredAtMs).toBeGreaterThanOrEqual(firstReceivedAtMs);
});

test('tells of a conflict both hashes', async () => {
  const bench = await lab.open();
  const run = bench.run();
  await bench.send(bench.chargeBody());
  await run.when('completed');
  await bench.send(bench.chargeBody({ amountMinor: 1 }));

  const [report] = await run.when('conflict');

  const [letter] = await bench.deadLetters();
  const hashes = report?.outcome.kind === 'conflict' ? report.outcome : undefined;
  expect(letter?.notice).toMatchObject({
    reason: 'conflict',
    payloadHash: hashes?.payloadHash,
    recordedHash: hashes?.recordedHash,
  });
  expect(hashes?.payloadHash).not.toBe(hashes?.recordedHash);
});

const delivery: Delivery = {
  messageId: 'm1',
  receiptHandle: 'h1',
  body: 'no JSON',
  receiveCount: 3,
  sentAtMs: 1_000,
  firstReceivedAtMs: 2_000,
  traceHeader: 'Root=1-5759e988-bd862e3fe1be46a994272793;Parent=53995c3f42cd8ad8;Sampled=1',
  groupId: 'g1',
  attributes: {},
};

/** Sends one dead letter to an SQS that takes everything; tells what it was sent. */
async function sendOne(url: string, changes: Partial<Delivery> = {}): Promise<Record<string, unknown>> {
  let sent: Record<string, unknown> = {};
  const client = scriptedClient();
  interceptCommand(client, 'SendMessageCommand', (input) => {
    sent = { ...input };
    return Promise.resolve({ $metadata: {} });
  });
  const { store } = await lab.open();
  const deadLetters = createDeadLetters({
    client,
    deadLetterQueueUrl: url,
    queue: 'q',
    store,
    clock: store.clock,
    random: () => 0.5,
    worker: 'worker \u0000 7',
  });
  await deadLetters.send({ ...delivery, ...changes }, { reason: 'invalid', detail: 'NOT_JSON' });
  return sent;
}

function noticeIn(sent: Record<string, unknown>): unknown {
  const attributes = sent['MessageAttributes'] as Record<string, { StringValue: string }>;
  return JSON.parse(attributes['onlyonce.deadLetter']?.StringValue ?? '');
}

test('tells the worker, the times and the trace of the sender, in what SQS takes as text', async () => {
  const sent = await sendOne('https://queue.invalid/000000000000/q-dlq');

  expect(noticeIn(sent)).toMatchObject({
    worker: 'worker ? 7',
    sentAtMs: 1_000,
    firstReceivedAtMs: 2_000,
    traceId: '1-5759e988-bd862e3fe1be46a994272793',
  });
  expect(sent).not.toHaveProperty('MessageGroupId');
});

test.each([
  ['nothing', {}],
  ['something else', { traceparent: { DataType: 'String', StringValue: '00-xyz' } }],
])('tells no trace when the original carries %s', async (_case, attributes) => {
  const sent = await sendOne('https://queue.invalid/000000000000/q-dlq', { attributes, traceHeader: 'Self=1' });

  expect(noticeIn(sent)).not.toHaveProperty('traceId');
});

test('keeps the group on a FIFO dead-letter queue, where a copy that is sent twice is kept once', async () => {
  const url = 'https://queue.invalid/000000000000/q-dlq.fifo';

  expect(await sendOne(url)).toMatchObject({ MessageGroupId: 'g1', MessageDeduplicationId: 'm1' });
});
