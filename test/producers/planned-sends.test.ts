import { afterAll, beforeAll, expect, test } from 'vitest';
import { CHARGE_REQUESTED } from '../../src/messages/charge.ts';
import { decodeMessage, encodeMessage } from '../../src/messages/envelope.ts';
import { planSends } from '../../src/producers/duplicates.ts';
import { generateCharges } from '../../src/producers/generate-charges.ts';
import { createProducer } from '../../src/producers/producer.ts';
import { startLocalSqs, type LocalSqs } from '../support/local-sqs.ts';

let sqs: LocalSqs;

beforeAll(async () => {
  sqs = await startLocalSqs();
});

afterAll(async () => {
  await sqs[Symbol.asyncDispose]();
});

test('M7, M8, M9: SQS takes a whole plan, and receivers can tell its messages, duplicates and faults apart', async () => {
  const queueUrl = await sqs.createQueue();
  const messages = generateCharges({ count: 20, seed: 4 }).map((charge) => encodeMessage(CHARGE_REQUESTED, charge));
  const plan = planSends(messages, {
    seed: 4,
    duplicateRatio: 0.9,
    conflicts: 3,
    malformed: 6,
    conflictDelaySeconds: 0,
  });
  const visible = plan.filter(({ delaySeconds }) => delaySeconds === 0);

  const results = await createProducer({ client: sqs.client(), queueUrl }).sendBatch(plan);

  const received = await sqs.drain(queueUrl);
  const decoded = received.map(({ Body }) => decodeMessage(Body ?? '', [CHARGE_REQUESTED]));
  const valid = decoded.flatMap((answer) => (answer.kind === 'valid' ? [answer.message] : []));
  expect(results.every(({ kind }) => kind === 'sent')).toBe(true);
  expect(received).toHaveLength(visible.length);
  expect(new Set(received.map(({ MessageId }) => MessageId)).size).toBe(visible.length);
  expect(new Set(valid.map(({ key }) => key)).size).toBe(20);
  // One hash for each original, however often it came, and one more for each message that contradicts it.
  expect(new Set(valid.map(({ payloadHash }) => payloadHash)).size).toBe(23);
  expect(decoded.length - valid.length).toBe(6);
});
