import { once } from 'node:events';
import { createServer, type AddressInfo, type Socket } from 'node:net';
import type { Message, SQSClient } from '@aws-sdk/client-sqs';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { CHARGE_REQUESTED, type Charge } from '../../src/messages/charge.ts';
import { decodeMessage } from '../../src/messages/envelope.ts';
import type { OutgoingMessage } from '../../src/producers/outgoing-entry.ts';
import { createProducer, type Producer } from '../../src/producers/producer.ts';
import type { ProducerOptions } from '../../src/producers/producer-options.ts';
import type { SendResult } from '../../src/producers/send-result.ts';
import { charge } from '../messages/charges.ts';
import { localQueueClient, startLocalSqs, type LocalSqs } from '../support/local-sqs.ts';
import { answerError, interceptSends, withFailed } from './intercepted-sends.ts';
import { createSkippingClock, type SkippingClock } from './skipping-clock.ts';

let sqs: LocalSqs;

beforeAll(async () => {
  sqs = await startLocalSqs();
});

afterAll(async () => {
  await sqs[Symbol.asyncDispose]();
});

interface Rig {
  readonly queueUrl: string;
  readonly client: SQSClient;
  readonly clock: SkippingClock;
  readonly producer: Producer;
}

/** One request at a time, so that the faults of a test strike the request they are meant for. */
async function rigWith(options: Partial<ProducerOptions> = {}): Promise<Rig> {
  const queueUrl = await sqs.createQueue();
  const client = options.client ?? sqs.client();
  const clock = createSkippingClock();
  const producer = createProducer({ queueUrl, client, clock, random: () => 0.5, maxConcurrentRequests: 1, ...options });
  return { queueUrl, client, clock, producer };
}

function charges(count: number): OutgoingMessage<Charge>[] {
  return Array.from({ length: count }, (_, at) => {
    return { contract: CHARGE_REQUESTED, payload: charge({ requestId: `req_${String(at)}` }) };
  });
}

function keysOf(messages: readonly Message[]): string[] {
  return messages.map(({ Body }) => {
    const decoded = decodeMessage(Body ?? '', [CHARGE_REQUESTED]);
    return decoded.kind === 'valid' ? decoded.message.key : decoded.reason;
  });
}

function indexesOf(results: readonly SendResult[], kind: SendResult['kind']): number[] {
  return results.filter((result) => result.kind === kind).map(({ index }) => index);
}

function range(from: number, to: number): number[] {
  return Array.from({ length: to - from + 1 }, (_, at) => from + at);
}

test('M23: a call of 30 sends whose third request is refused is resumed with exactly the missing ten', async () => {
  const { queueUrl, client, producer } = await rigWith();
  const calls = interceptSends(client, (call) => {
    if (call.number === 3) throw answerError('AccessDenied', 403);
    return call.pass();
  });

  const first = await producer.sendBatch(charges(30));
  const resumed = await producer.sendBatch(charges(30), { resumeFrom: first });

  expect(indexesOf(first, 'sent')).toEqual(range(0, 19));
  expect(first[20]).toMatchObject({ kind: 'failed', key: 'req_20', code: 'denied', retryable: false });
  expect(calls.map((entries) => entries.length)).toEqual([10, 10, 10, 10]);
  expect(calls[3]?.map(({ Id }) => Number(Id))).toEqual(range(20, 29));
  expect(indexesOf(resumed, 'sent')).toEqual(range(0, 29));
  expect(resumed.slice(0, 20)).toEqual(first.slice(0, 20));
  expect(keysOf(await sqs.drain(queueUrl))).toEqual(charges(30).map(({ payload }) => payload.requestId));
});

test('M23: one failed entry out of 30 is the only one that a resumed call sends', async () => {
  const { queueUrl, client, producer } = await rigWith();
  const calls = interceptSends(client, async (call) => {
    if (call.number !== 2) return call.pass();
    const struck = call.entries.filter(({ Id }) => Id === '13');
    const answer = await call.pass(call.entries.filter(({ Id }) => Id !== '13'));
    return withFailed(answer, struck, { Code: 'InvalidParameterValue', SenderFault: true });
  });

  const first = await producer.sendBatch(charges(30));
  const resumed = await producer.sendBatch(charges(30), { resumeFrom: first });

  expect(indexesOf(first, 'failed')).toEqual([13]);
  expect(calls.slice(3).map((entries) => entries.map(({ Id }) => Id))).toEqual([['13']]);
  expect(indexesOf(resumed, 'sent')).toEqual(range(0, 29));
  expect(keysOf(await sqs.drain(queueUrl)).sort()).toEqual(
    charges(30)
      .map(({ payload }) => payload.requestId)
      .sort(),
  );
});

test('M23: ten messages of 200 KB go in two requests, and a refused second one is resumed with its five', async () => {
  const { queueUrl, client, producer } = await rigWith();
  const calls = interceptSends(client, (call) => {
    if (call.number === 2) throw answerError('AccessDenied', 403);
    return call.pass();
  });
  const entries = range(0, 9).map((at) => ({
    key: `large-${String(at)}`,
    body: `${String(at)}${'x'.repeat(199_999)}`,
  }));

  const first = await producer.sendBatch(entries);
  const resumed = await producer.sendBatch(entries, { resumeFrom: first });

  expect(calls.map((call) => call.map(({ Id }) => Number(Id)))).toEqual([range(0, 4), range(5, 9), range(5, 9)]);
  expect(indexesOf(resumed, 'sent')).toEqual(range(0, 9));
  expect((await sqs.drain(queueUrl)).map(({ Body }) => Body?.[0])).toEqual(range(0, 9).map(String));
});

test('sends only the entry again that SQS failed to take', async () => {
  const { queueUrl, client, producer } = await rigWith();
  const calls = interceptSends(client, async (call) => {
    if (call.number > 1) return call.pass();
    const answer = await call.pass(call.entries.filter(({ Id }) => Id !== '4'));
    return withFailed(answer, call.entries.slice(4, 5), { Code: 'InternalError', SenderFault: false });
  });

  const results = await producer.sendBatch(charges(10));

  expect(calls.map((entries) => entries.length)).toEqual([10, 1]);
  expect(indexesOf(results, 'sent')).toEqual(range(0, 9));
  expect(new Set(keysOf(await sqs.drain(queueUrl))).size).toBe(10);
});

test('does not send an entry again whose sender is at fault', async () => {
  const { client, clock, producer } = await rigWith();
  const calls = interceptSends(client, async (call) => {
    const answer = await call.pass(call.entries.slice(1));
    return withFailed(answer, call.entries.slice(0, 1), { Code: 'InvalidMessageContents', SenderFault: true });
  });

  const results = await producer.sendBatch(charges(2));

  expect(calls).toHaveLength(1);
  expect(clock.waitsMs).toEqual([]);
  expect(results[0]).toEqual({
    kind: 'failed',
    index: 0,
    key: 'req_0',
    code: 'InvalidMessageContents',
    retryable: false,
    reason: 'injected InvalidMessageContents',
  });
  expect(results[1]).toMatchObject({ kind: 'sent' });
});

test('gives up a request after five answers of 503 and goes on with the next', async () => {
  const { queueUrl, client, clock, producer } = await rigWith();
  const calls = interceptSends(client, (call) => {
    if (call.entries[0]?.Id === '0') throw answerError('ServiceUnavailable', 503);
    return call.pass();
  });

  const results = await producer.sendBatch(charges(15));

  expect(calls).toHaveLength(6);
  expect(clock.waitsMs).toEqual([50, 100, 200, 400]);
  expect(results[0]).toMatchObject({ kind: 'failed', code: 'ambiguous', retryable: true });
  expect(indexesOf(results, 'failed')).toEqual(range(0, 9));
  expect(indexesOf(results, 'sent')).toEqual(range(10, 14));
  expect(await sqs.drain(queueUrl)).toHaveLength(5);
});

test('no wait between two tries is longer than the longest wait', async () => {
  const { client, clock, producer } = await rigWith({ maxAttempts: 20, backoffCapMs: 1_000, random: () => 0.999_999 });
  interceptSends(client, () => {
    throw answerError('ThrottlingException', 400);
  });

  await producer.sendBatch(charges(1));

  expect(clock.waitsMs.slice(0, 6)).toEqual([100, 200, 400, 800, 1_000, 1_000]);
  expect(Math.max(...clock.waitsMs)).toBe(1_000);
});

test('stops before a wait that would end after the deadline', async () => {
  const { client, clock, producer } = await rigWith({ maxAttempts: 20, deadlineMs: 1_000 });
  const calls = interceptSends(client, () => {
    throw answerError('ServiceUnavailable', 503);
  });

  const results = await producer.sendBatch(charges(1));

  expect(clock.waitsMs).toEqual([50, 100, 200, 400]);
  expect(calls).toHaveLength(5);
  expect(results[0]).toMatchObject({ kind: 'failed', code: 'ambiguous', retryable: true });
});

test('sends a message again when the answer got lost: twice on the queue under one key, once in the result', async () => {
  const { queueUrl, client, producer } = await rigWith();
  interceptSends(client, async (call) => {
    const answer = await call.pass();
    if (call.number === 1) throw Object.assign(new Error('socket hang up'), { name: 'TimeoutError' });
    return answer;
  });

  const results = await producer.sendBatch(charges(1));

  const received = await sqs.drain(queueUrl);
  expect(keysOf(received)).toEqual(['req_0', 'req_0']);
  expect(results).toEqual([{ kind: 'sent', index: 0, key: 'req_0', messageId: received[1]?.MessageId }]);
});

test('does not take an entry for sent that the answer does not name', async () => {
  const { client, producer } = await rigWith({ maxAttempts: 2 });
  interceptSends(client, async (call) => {
    const answer = await call.pass();
    return { ...answer, Successful: answer.Successful?.filter(({ Id }) => Id !== '1') };
  });

  const results = await producer.sendBatch(charges(3));

  expect(indexesOf(results, 'sent')).toEqual([0, 2]);
  expect(results[1]).toMatchObject({ kind: 'failed', code: 'unanswered', retryable: true });
});

test('reports entries as failed when no server can be reached, and does not throw', async () => {
  const client = localQueueClient('http://127.0.0.1:1');
  const { producer } = await rigWith({ client, maxAttempts: 1 });

  const results = await producer.sendBatch(charges(2));

  expect(results).toMatchObject([
    { kind: 'failed', index: 0, code: 'unreachable', retryable: true },
    { kind: 'failed', index: 1, code: 'unreachable', retryable: true },
  ]);
  client.destroy();
});

test('cuts off a request at the deadline when its server has frozen', async () => {
  const sockets: Socket[] = [];
  const frozen = createServer((socket) => sockets.push(socket)).listen(0, '127.0.0.1');
  await once(frozen, 'listening');
  const client = localQueueClient(`http://127.0.0.1:${String((frozen.address() as AddressInfo).port)}`);
  const { clock, producer } = await rigWith({ client, deadlineMs: 2_000 });
  const connected = once(frozen, 'connection');

  const sending = producer.sendBatch(charges(1));
  await connected;
  clock.advance(2_000);

  expect(await sending).toMatchObject([{ kind: 'failed', code: 'deadline', retryable: true }]);
  client.destroy();
  for (const socket of sockets) socket.destroy();
  frozen.close();
});

test('resolves when the caller aborts between requests, and a resumed call sends the rest', async () => {
  const { queueUrl, client, producer } = await rigWith();
  const calls = interceptSends(client);
  const caller = new AbortController();

  const first = await producer.sendBatch(charges(25), {
    signal: caller.signal,
    onProgress() {
      caller.abort();
    },
  });
  const resumed = await producer.sendBatch(charges(25), { resumeFrom: first });

  expect(indexesOf(first, 'sent')).toEqual(range(0, 9));
  expect(first[10]).toMatchObject({ kind: 'failed', key: 'req_10', code: 'aborted', retryable: true });
  expect(calls.map((entries) => entries.length)).toEqual([10, 10, 5]);
  expect(indexesOf(resumed, 'sent')).toEqual(range(0, 24));
  expect(await sqs.drain(queueUrl)).toHaveLength(25);
});

test('does not send again after the caller aborted while SQS was failing', async () => {
  const { client, producer } = await rigWith();
  const caller = new AbortController();
  const calls = interceptSends(client, () => {
    caller.abort();
    throw answerError('ServiceUnavailable', 503);
  });

  const results = await producer.sendBatch(charges(12), { signal: caller.signal });

  expect(calls).toHaveLength(1);
  expect(indexesOf(results, 'failed')).toEqual(range(0, 11));
});
