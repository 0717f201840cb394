import { SendMessageCommand } from '@aws-sdk/client-sqs';
import { expect, test } from 'vitest';
import { judgeLetter } from '../../src/cli/dlq/verdict.ts';
import { FLOW_CONTRACTS } from '../../src/cli/flow-contracts.ts';
import { CHARGE_REQUESTED, type Charge } from '../../src/messages/charge.ts';
import { encodeMessage, type EncodedMessage } from '../../src/messages/envelope.ts';
import type { Claim, ClaimedEffect } from '../../src/store/effects/effect-record.ts';
import type { Item } from '../../src/store/table.ts';
import { ManualClock } from '../payments/manual-clock.ts';
import { processLab, type Scene } from '../support/process-bench.ts';

const lab = processLab();

function encoded(charge: Charge): EncodedMessage {
  return encodeMessage(CHARGE_REQUESTED, charge);
}

/** As the queue's own redrive policy puts a message there: without a notice. */
async function addLetter(scene: Scene, body: string): Promise<string> {
  const input = { QueueUrl: scene.queues.deadLetterQueue.url, MessageBody: body };
  return (await scene.connection.queues.send(new SendMessageCommand(input))).MessageId ?? '';
}

/** Claims the key of a message as a worker does. Its lease is far longer than this test. */
async function claim(scene: Scene, { key, payloadHash }: EncodedMessage): Promise<ClaimedEffect> {
  const effects = scene.connection.store.effectRecords({ leaseMs: 600_000 });
  const answer: Claim = await effects.claim({ queue: scene.queues.queue.name, key, payloadHash, holder: 'test' });
  if (answer.kind !== 'claimed') throw new Error(answer.kind);
  return answer.effect;
}

/** One dead letter for each verdict, by its message id. */
async function oneOfEach(scene: Scene): Promise<ReadonlyMap<string, string>> {
  const effects = scene.connection.store.effectRecords();
  const [applied, rejected, running, other, failed, never] = Array.from({ length: 6 }, () => encoded(scene.charge()));
  if (!applied || !rejected || !running || !other || !failed || !never) throw new Error('six were made');
  await effects.commit(await claim(scene, applied), { status: 'COMPLETED', response: {}, effects: [] });
  await effects.commit(await claim(scene, rejected), { status: 'REJECTED', reason: 'no' });
  await claim(scene, running);
  await claim(scene, { ...other, payloadHash: 'of another payload' });
  await effects.release(await claim(scene, failed), { error: 'down', inDoubt: false, startAfresh: false });
  const bodies = {
    applied,
    rejected,
    running,
    conflict: other,
    failed,
    neverRan: never,
    unreadable: { body: '{"a":1}' },
  };
  const verdicts = new Map<string, string>();
  for (const [verdict, { body }] of Object.entries(bodies)) verdicts.set(await addLetter(scene, body), verdict);
  return verdicts;
}

test('dlq show tells of each letter what became of its effect, and changes nothing', async () => {
  // Arrange
  const scene = await lab.open();
  const verdicts = await oneOfEach(scene);
  const before = await allItems(scene);

  // Act
  const shown = await scene.run(['dlq', 'show', 'charges', '--json']);
  const asText = await scene.run(['dlq', 'show', 'charges']);

  // Assert
  const told = shown.json<{ messageId: string; verdict: string; key?: string }>();
  expect(new Map(told.map(({ messageId, verdict }) => [messageId, verdict]))).toEqual(verdicts);
  expect(told.filter(({ key }) => key === undefined).map(({ verdict }) => verdict)).toEqual(['unreadable']);
  expect(asText.stdout).toMatch(/^verdict +neverRan$/m);
  expect(await allItems(scene)).toEqual(before);
  expect(await scene.deadLetterDepth()).toBe(7);
});

test('dlq ls --verdict counts what became of the effects of each reason', async () => {
  // Arrange
  const scene = await lab.open();
  const verdicts = await oneOfEach(scene);

  // Act
  const asJson = await scene.run(['dlq', 'ls', 'charges', '--verdict', '--json']);
  const asText = await scene.run(['dlq', 'ls', 'charges', '--verdict']);

  // Assert
  const each = Object.fromEntries([...verdicts.values()].map((verdict) => [verdict, 1]));
  expect(asJson.json()).toMatchObject([
    { reason: 'maxReceiveCount (moved by the queue itself)', count: 7, verdicts: each },
  ]);
  expect(asText.stdout).toMatch(/newest +applied +rejected +running +conflict +failed +neverRan +unreadable$/m);
});

const message = encoded({
  requestId: 'r1',
  accountId: 'a1',
  amountMinor: 1,
  currency: 'EUR',
  description: '',
});
const { payloadHash } = message;

const RECORDS: readonly (readonly [name: string, record: Item | undefined, verdict: string])[] = [
  ['no record', undefined, 'neverRan'],
  ['a completed one', { status: 'COMPLETED', payloadHash }, 'applied'],
  ['a rejected one', { status: 'REJECTED', payloadHash }, 'rejected'],
  ['one with a lease', { status: 'IN_PROGRESS', payloadHash, owner: 'o', expiresAtMs: 1_001 }, 'running'],
  ['one whose lease is over', { status: 'IN_PROGRESS', payloadHash, owner: 'o', expiresAtMs: 1_000 }, 'failed'],
  ['one that was given back', { status: 'FAILED', payloadHash, expiresAtMs: 0 }, 'failed'],
  ['a completed one of another payload', { status: 'COMPLETED', payloadHash: 'x' }, 'conflict'],
  [
    'one at work on another payload',
    { status: 'IN_PROGRESS', payloadHash: 'x', owner: 'o', expiresAtMs: 9_999 },
    'conflict',
  ],
];

test.each(RECORDS)('the verdict on a letter with %s', async (_case, record, verdict) => {
  const store = { clock: new ManualClock(1_000), get: () => Promise.resolve(record) };

  const judged = await judgeLetter(message.body, { ...FLOW_CONTRACTS.charges, queue: 'q', store });

  expect(judged).toEqual({ verdict, key: 'r1', payloadHash });
});

async function allItems(scene: Scene): Promise<Item[]> {
  const items: Item[] = [];
  for await (const item of scene.connection.store.scan()) items.push(item);
  return items.toSorted((left, right) => String(left['PK']).localeCompare(String(right['PK'])));
}
