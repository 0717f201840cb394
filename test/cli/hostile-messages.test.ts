import { expect, test } from 'vitest';
import { MAX_MESSAGE_BYTES } from '../../src/messages/limits.ts';
import { post } from '../local/fronts.ts';
import { processLab, type Scene } from '../support/process-bench.ts';

const lab = processLab();

/** Raw bodies, each with what the worker must say of it. */
const INVALID: readonly (readonly [name: string, body: string, code: string])[] = [
  ['1 MiB of one letter', 'x'.repeat(MAX_MESSAGE_BYTES), 'NOT_JSON'],
  ['1 MiB of an envelope', envelope({ payload: 'x'.repeat(MAX_MESSAGE_BYTES - 69) }), 'SCHEMA'],
  ['100,000 levels of JSON', `${'['.repeat(100_000)}${']'.repeat(100_000)}`, 'NOT_JSON'],
  [
    'a payload in 1,000 levels',
    envelope({ payload: JSON.parse(`${'['.repeat(1_000)}${']'.repeat(1_000)}`) }),
    'NOT_JSON',
  ],
  [
    '__proto__ in the envelope',
    '{"__proto__":{"type":"charge.requested"},"version":1,"key":"r1","payload":{}}',
    'NOT_JSON',
  ],
  [
    '__proto__ in the payload',
    '{"type":"charge.requested","version":1,"key":"r1","payload":{"__proto__":{"amountMinor":1}}}',
    'NOT_JSON',
  ],
  ['constructor as a type', envelope({ type: 'constructor' }), 'UNKNOWN_TYPE'],
  ['a key of 2,000 characters', envelope({ key: 'k'.repeat(2_000) }), 'ENVELOPE'],
  ['an empty key', envelope({ key: '' }), 'ENVELOPE'],
  ['a key that is not its payload', envelope({ key: 'other' }), 'KEY_MISMATCH'],
  ['a number beyond all numbers', '{"type":"charge.requested","version":1e400,"key":"r1","payload":{}}', 'NOT_JSON'],
  ['half of a surrogate pair', '{"type":"charge.requested","version":1,"key":"\\ud800","payload":{}}', 'NOT_JSON'],
  ['null', 'null', 'ENVELOPE'],
  ['a space', ' ', 'NOT_JSON'],
];

test('a worker parks every hostile message with its reason and then completes a charge', async () => {
  // Arrange
  const scene = await lab.open();
  const worker = scene.work();
  const ids = new Map<string, string>();
  for (const [name, body] of INVALID) ids.set(await scene.sendBody(body), name);

  // Act
  const said: Record<string, unknown> = {};
  for (const [messageId, name] of ids) {
    const { outcome, reason } = await worker.event({ event: 'outcome', messageId });
    said[name] = { outcome, reason };
  }
  const charge = scene.charge();
  await scene.sendCharge(charge);
  const normal = await worker.event({ event: 'outcome', key: charge.requestId });

  // Assert
  expect(said).toEqual(
    Object.fromEntries(INVALID.map(([name]) => [name, { outcome: 'invalid', reason: expect.any(String) as string }])),
  );
  expect(normal).toMatchObject({ outcome: 'completed', attempt: 1 });
  expect(await scene.ledger(charge.requestId)).toHaveLength(1);
  await expectParked(scene, ids);
});

test('a body that is not UTF-8 is refused by the local SQS and never reaches the worker', async () => {
  // Arrange
  const scene = await lab.open();
  const worker = scene.work();
  const port = Number(new URL(scene.endpoints.sqs).port);
  const QueueUrl = scene.queues.queue.url;
  const request = Buffer.concat([
    Buffer.from(`{"QueueUrl":${JSON.stringify(QueueUrl)},"MessageBody":"`),
    Buffer.from([0x63, 0xff, 0xfe, 0xc3]),
    Buffer.from('"}'),
  ]);

  // Act
  const answer = await post(port, request);
  const charge = scene.charge();
  await scene.sendCharge(charge);
  const normal = await worker.event({ event: 'outcome' });

  // Assert
  expect(answer.statusCode).toBe(400);
  expect(answer.body).toMatchObject({
    __type: expect.any(String) as string,
    message: expect.stringContaining('UTF-8') as string,
  });
  expect(normal).toMatchObject({ outcome: 'completed', key: charge.requestId });
});

async function expectParked(scene: Scene, ids: ReadonlyMap<string, string>): Promise<void> {
  const shown = await scene.run(['dlq', 'show', 'charges', '--json']);
  const letters = shown.json<{ originalMessageId: string; reason: string; detail: string }>();
  const codes = letters.map(({ originalMessageId, reason, detail }) => [
    ids.get(originalMessageId),
    `${reason} ${detail.split(':')[0] ?? ''}`,
  ]);
  expect(Object.fromEntries(codes)).toEqual(
    Object.fromEntries(INVALID.map(([name, , code]) => [name, `invalid ${code}`])),
  );
}

function envelope(fields: Readonly<Record<string, unknown>>): string {
  const payload = { requestId: 'r1', accountId: 'a1', amountMinor: 1, currency: 'EUR', description: '' };
  return JSON.stringify({ type: 'charge.requested', version: 1, key: 'r1', payload, ...fields });
}
