import { GetQueueAttributesCommand, type Message, type SQSClient } from '@aws-sdk/client-sqs';
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { ConfigurationError } from '../../src/errors.ts';
import { CHARGE_REQUESTED, type Charge } from '../../src/messages/charge.ts';
import { decodeMessage } from '../../src/messages/envelope.ts';
import type { OutgoingMessage } from '../../src/producers/outgoing-entry.ts';
import { createProducer, type SendProgress } from '../../src/producers/producer.ts';
import type { SendResult } from '../../src/producers/send-result.ts';
import { charge } from '../messages/charges.ts';
import { startLocalSqs, type LocalSqs } from '../support/local-sqs.ts';
import { interceptSends } from './intercepted-sends.ts';

let sqs: LocalSqs;

beforeAll(async () => {
  sqs = await startLocalSqs();
});

afterAll(async () => {
  await sqs[Symbol.asyncDispose]();
});

async function queueAndClient(): Promise<{ queueUrl: string; client: SQSClient }> {
  return { queueUrl: await sqs.createQueue(), client: sqs.client() };
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

function kindsOf(results: readonly SendResult[]): string[] {
  return results.map(({ kind }) => kind);
}

test('sends 25 messages in three requests and gives a result for each in order', async () => {
  const { queueUrl, client } = await queueAndClient();
  const calls = interceptSends(client);
  const producer = createProducer({ client, queueUrl });

  const results = await producer.sendBatch(charges(25));

  const received = await sqs.drain(queueUrl);
  expect(calls.map((entries) => entries.length)).toEqual([10, 10, 5]);
  expect(results.map(({ index }) => index)).toEqual(Array.from({ length: 25 }, (_, at) => at));
  expect(new Set(keysOf(received))).toEqual(new Set(charges(25).map(({ payload }) => payload.requestId)));
  const sentIds = results.map((result) => (result.kind === 'sent' ? result.messageId : ''));
  expect(new Set(sentIds)).toEqual(new Set(received.map(({ MessageId }) => MessageId)));
});

test('gives every entry of a request an id of its own', async () => {
  const { queueUrl, client } = await queueAndClient();
  const calls = interceptSends(client);

  await createProducer({ client, queueUrl }).sendBatch(charges(20));

  for (const entries of calls) expect(new Set(entries.map(({ Id }) => Id)).size).toBe(10);
});

test('sends one message and tells its id', async () => {
  const { queueUrl, client } = await queueAndClient();

  const result = await createProducer({ client, queueUrl }).send(CHARGE_REQUESTED, charge());

  const [received] = await sqs.drain(queueUrl);
  expect(result).toEqual({ kind: 'sent', index: 0, key: 'req_1', messageId: received?.MessageId });
});

test('brings an emoji through SQS unharmed', async () => {
  const { queueUrl, client } = await queueAndClient();

  await createProducer({ client, queueUrl }).send(CHARGE_REQUESTED, charge({ description: 'Pizza 🍕 für zwei' }));

  const [received] = await sqs.drain(queueUrl);
  const decoded = decodeMessage(received?.Body ?? '', [CHARGE_REQUESTED]);
  expect(decoded).toMatchObject({ message: { payload: { description: 'Pizza 🍕 für zwei' } } });
});

test('hands delay and attributes on to SQS', async () => {
  const { queueUrl, client } = await queueAndClient();
  const producer = createProducer({ client, queueUrl });

  await producer.send(CHARGE_REQUESTED, charge({ requestId: 'req_late' }), { delaySeconds: 900 });
  await producer.send(CHARGE_REQUESTED, charge({ requestId: 'req_now' }), { attributes: { trace: 'é-1' } });

  const received = await sqs.drain(queueUrl);
  const { Attributes } = await client.send(
    new GetQueueAttributesCommand({ QueueUrl: queueUrl, AttributeNames: ['ApproximateNumberOfMessagesDelayed'] }),
  );
  expect(keysOf(received)).toEqual(['req_now']);
  expect(received[0]?.MessageAttributes?.['trace']?.StringValue).toBe('é-1');
  expect(Attributes?.['ApproximateNumberOfMessagesDelayed']).toBe('1');
});

test('fills requests up to exactly 1 MiB of bodies and attributes, as SQS counts them', async () => {
  const { queueUrl, client } = await queueAndClient();
  const calls = interceptSends(client);
  const half = { key: 'k', attributes: { tag: 'é' }, body: 'x'.repeat(524_288 - 'tag'.length - 'String'.length - 2) };

  const exact = await createProducer({ client, queueUrl }).sendBatch([half, half]);
  const over = await createProducer({ client, queueUrl }).sendBatch([
    half,
    { ...half, body: `${half.body.slice(1)}é` },
  ]);

  expect(calls.map((entries) => entries.length)).toEqual([2, 1, 1]);
  expect(kindsOf([...exact, ...over])).toEqual(['sent', 'sent', 'sent', 'sent']);
});

test('tells what is wrong with an entry and sends all others', async () => {
  const { queueUrl, client } = await queueAndClient();
  const good = { contract: CHARGE_REQUESTED, payload: charge() };
  const entries = [
    good,
    { ...good, delaySeconds: 901 },
    { ...good, payload: charge({ amountMinor: -1 }) },
    { body: 'x'.repeat(1_048_577), key: 'too-large' },
    { body: 'x'.repeat(1_048_576), key: 'just-right' },
  ];

  const results = await createProducer({ client, queueUrl }).sendBatch(entries);

  expect(kindsOf(results)).toEqual(['sent', 'invalid', 'invalid', 'invalid', 'sent']);
  expect(results[1]).toMatchObject({ reason: 'delaySeconds: a whole number from 0 to 900 s (got 901)' });
  expect(results[2]).toMatchObject({ index: 2, reason: expect.stringContaining('payload.amountMinor') as unknown });
  expect(results[3]).toMatchObject({ reason: expect.stringContaining('(got 1048577)') as unknown });
  expect(await sqs.drain(queueUrl)).toHaveLength(2);
});

test('gives results in order when later requests are answered first', async () => {
  const { queueUrl, client } = await queueAndClient();
  const second = Promise.withResolvers<undefined>();
  interceptSends(client, async (call) => {
    if (call.number === 1) await second.promise;
    const answer = await call.pass();
    if (call.number === 2) second.resolve(undefined);
    return answer;
  });

  const results = await createProducer({ client, queueUrl, maxConcurrentRequests: 2 }).sendBatch(charges(20));

  expect(results.map(({ index }) => index)).toEqual(Array.from({ length: 20 }, (_, at) => at));
  expect(results.map((result) => (result.kind === 'sent' ? result.key : ''))).toEqual(
    charges(20).map(({ payload }) => payload.requestId),
  );
});

test('has four requests under way at once, and never five', async () => {
  const { queueUrl, client } = await queueAndClient();
  const fourth = Promise.withResolvers<undefined>();
  let underWay = 0;
  let most = 0;
  interceptSends(client, async (call) => {
    underWay += 1;
    most = Math.max(most, underWay);
    if (call.number === 4) fourth.resolve(undefined);
    await fourth.promise;
    const answer = await call.pass();
    underWay -= 1;
    return answer;
  });

  await createProducer({ client, queueUrl }).sendBatch(charges(100));

  expect(most).toBe(4);
});

test('keeps the order of entries on the queue with one request at a time', async () => {
  const { queueUrl, client } = await queueAndClient();

  await createProducer({ client, queueUrl, maxConcurrentRequests: 1 }).sendBatch(charges(35));

  expect(keysOf(await sqs.drain(queueUrl))).toEqual(charges(35).map(({ payload }) => payload.requestId));
});

test('reports progress after each request, with counts and the results that are new', async () => {
  const { queueUrl, client } = await queueAndClient();
  const reports: SendProgress[] = [];
  const entries = [...charges(12), { body: '', key: 'empty' }];

  const results = await createProducer({ client, queueUrl, maxConcurrentRequests: 1 }).sendBatch(entries, {
    onProgress: (progress) => reports.push(progress),
  });

  const counts = reports.map(({ total, sent, failed, invalid }) => ({ total, sent, failed, invalid }));
  expect(counts).toEqual([
    { total: 13, sent: 10, failed: 0, invalid: 0 },
    { total: 13, sent: 12, failed: 0, invalid: 1 },
  ]);
  const reported = reports.flatMap(({ latest }) => latest).sort((left, right) => left.index - right.index);
  expect(reported).toEqual(results);
});

test('sends on and keeps the results when the progress listener throws', async () => {
  const { queueUrl, client } = await queueAndClient();
  const broken = new Error('the progress bar broke');
  using emitWarning = vi.spyOn(process, 'emitWarning').mockImplementation(() => undefined);

  const results = await createProducer({ client, queueUrl }).sendBatch(charges(30), {
    onProgress() {
      throw broken;
    },
  });

  expect(kindsOf(results)).toEqual(Array.from({ length: 30 }, () => 'sent'));
  expect(emitWarning).toHaveBeenCalledWith(broken);
});

test('makes no request and no result of no entries', async () => {
  const { queueUrl, client } = await queueAndClient();
  const calls = interceptSends(client);

  expect(await createProducer({ client, queueUrl }).sendBatch([])).toEqual([]);
  expect(calls).toEqual([]);
});

test('refuses to resume from the result of other entries, since that would lose messages', async () => {
  const { queueUrl, client } = await queueAndClient();
  const producer = createProducer({ client, queueUrl });
  const previous = await producer.sendBatch(charges(3));
  await sqs.drain(queueUrl);
  const others = charges(3).reverse();

  await expect(producer.sendBatch(others, { resumeFrom: previous })).rejects.toThrow(ConfigurationError);
  await expect(producer.sendBatch(charges(2), { resumeFrom: previous })).rejects.toThrow(/resumeFrom/);
  await expect(producer.sendBatch(charges(2), { resumeFrom: previous.slice(1) })).rejects.toThrow(/resumeFrom\[0\]/);
  expect(await sqs.drain(queueUrl)).toEqual([]);
});

test('refuses to resume from results in another order, also when all entries share one key', async () => {
  const { queueUrl, client } = await queueAndClient();
  const producer = createProducer({ client, queueUrl });
  const entries = [1, 2].map(() => ({ contract: CHARGE_REQUESTED, payload: charge() }));
  const previous = await producer.sendBatch(entries);

  const resuming = producer.sendBatch(entries, { resumeFrom: [...previous].reverse() });

  await expect(resuming).rejects.toThrow(/resumeFrom\[0\]: the result of entry 0/);
});

test('sends an entry on resuming that was invalid before and has been put right', async () => {
  const { queueUrl, client } = await queueAndClient();
  const producer = createProducer({ client, queueUrl });
  const [first, second] = charges(2);
  if (first === undefined || second === undefined) throw new Error('two charges were asked for');
  const previous = await producer.sendBatch([first, { ...second, delaySeconds: 901 }]);
  await sqs.drain(queueUrl);

  const resumed = await producer.sendBatch([first, second], { resumeFrom: previous });

  expect(resumed[0]).toEqual(previous[0]);
  expect(kindsOf(resumed)).toEqual(['sent', 'sent']);
  expect(keysOf(await sqs.drain(queueUrl))).toEqual(['req_1']);
});
