import { SendMessageCommand } from '@aws-sdk/client-sqs';
import { expect, test } from 'vitest';
import { NOTICE_ATTRIBUTE } from '../../src/queues/dead-letter-notice.ts';
import { processLab, type Scene } from '../support/process-bench.ts';

const lab = processLab();

interface Letter {
  readonly messageId: string;
  readonly originalMessageId?: string;
  readonly reason: string;
  readonly detail: string;
  readonly bodyBytes: number;
  readonly body?: string;
}

test('dlq ls counts dead letters by reason', async () => {
  // Arrange
  const scene = await lab.open();
  await deadLetterThree(scene);

  // Act
  const asJson = await scene.run(['dlq', 'ls', 'charges', '--json']);
  const asText = await scene.run(['dlq', 'ls', 'charges']);

  // Assert
  expect([asJson.code, asText.code]).toEqual([0, 0]);
  const time = expect.stringMatching(/^\d{4}-\d\d-\d\dT/) as string;
  expect(asJson.json().toSorted(byReason)).toEqual([
    { reason: 'conflict', count: 1, oldest: time, newest: time },
    { reason: 'invalid', count: 2, oldest: time, newest: time },
  ]);
  const [{ oldest = '', newest = '' } = {}] = asJson.json<Record<string, string>>().filter(isInvalid);
  expect(oldest <= newest).toBe(true);
  expect(asText.stdout).toMatch(/^reason +count +oldest +newest$/m);
  expect(asText.stdout).toMatch(/^invalid +2 +\d{4}-\S+ +\d{4}-\S+$/m);
});

test('dlq ls and dlq redrive count the copies of one message once, and dlq show tells all that its notice does', async () => {
  // Arrange
  const scene = await lab.open();
  const notice = {
    reason: 'conflict',
    detail: 'payload hash aa, recorded bb',
    sourceQueue: scene.queues.queue.name,
    messageId: 'm1',
    receiveCount: 2,
    deadLetteredAtMs: 3_000,
  };
  const added = { attempts: 4, payloadHash: 'aa', recordedHash: 'bb', sentAtMs: 1_000, firstReceivedAtMs: 2_000 };
  await deadLetter(scene, { ...notice, ...added, worker: 'w1', traceId: 't1' });
  await deadLetter(scene, notice);

  // Act
  const listed = await scene.run(['dlq', 'ls', 'charges', '--json']);
  const shown = await scene.run(['dlq', 'show', 'charges', '--json']);
  const planned = await scene.run(['dlq', 'redrive', 'charges', '--dry-run', '--json']);
  const moved = await scene.run(['dlq', 'redrive', 'charges', '--yes', '--json']);

  // Assert
  const old = {
    originalMessageId: 'm1',
    reason: 'conflict',
    receiveCount: 2,
    deadLetteredAt: '1970-01-01T00:00:03.000Z',
  };
  const times = { sentAt: '1970-01-01T00:00:01.000Z', firstReceivedAt: '1970-01-01T00:00:02.000Z' };
  const told = { attempts: 4, ...times, worker: 'w1', payloadHash: 'aa', recordedHash: 'bb', traceId: 't1' };
  expect(listed).toMatchObject({ stderr: expect.stringContaining('1 further copies of messages') as string });
  expect(listed.json()).toMatchObject([{ reason: 'conflict', count: 1 }]);
  const letters = shown.json<Letter>();
  expect(letters.find((letter) => 'attempts' in letter)).toMatchObject({ ...old, ...told });
  const before = letters.find((letter) => !('attempts' in letter));
  expect(before).toMatchObject(old);
  for (const name of Object.keys(told)) expect(before).not.toHaveProperty(name);
  expect([planned.json(), moved.json()]).toMatchObject([[{ wouldMove: 1 }], [{ moved: 1 }]]);
  expect([await scene.deadLetterDepth(), await scene.depth()]).toEqual([0, 1]);
});

test('dlq show tells why each message is there and keeps its body to itself unless it is asked for', async () => {
  // Arrange
  const scene = await lab.open();
  const { conflictId } = await deadLetterThree(scene);

  // Act
  const all = await scene.run(['dlq', 'show', 'charges', '--json']);
  const one = await scene.run(['dlq', 'show', 'charges', conflictId, '--json', '--body']);
  const none = await scene.run(['dlq', 'show', 'charges', 'no-such-id']);

  // Assert
  expect(
    all
      .json<Letter>()
      .map(({ reason }) => reason)
      .toSorted(),
  ).toEqual(['conflict', 'invalid', 'invalid']);
  expect(all.stdout).not.toContain('secret');
  expect(one.json<Letter>()).toMatchObject([
    {
      originalMessageId: conflictId,
      reason: 'conflict',
      detail: expect.stringMatching(/^payload hash [0-9a-f]{64}, recorded [0-9a-f]{64}$/) as string,
      body: expect.stringContaining('"amountMinor":2') as string,
    },
  ]);
  expect(none).toMatchObject({ code: 3, stdout: '' });
  expect(none.stderr).toContain('no dead letter no-such-id');
});

test('dlq redrive --dry-run says how many would move and moves none', async () => {
  // Arrange
  const scene = await lab.open();
  await deadLetterThree(scene);

  // Act
  const all = await scene.run(['dlq', 'redrive', 'charges', '--dry-run', '--json']);
  const some = await scene.run(['dlq', 'redrive', 'charges', '--dry-run', '--json', '--reason', 'conflict']);

  // Assert
  expect(all.json()).toMatchObject([{ wouldMove: 3, wouldDelete: 0, wouldLeave: 0 }]);
  expect(some.json()).toMatchObject([{ wouldMove: 1, wouldDelete: 0, wouldLeave: 2 }]);
  expect(await scene.deadLetterDepth()).toBe(3);
  expect(await scene.depth()).toBe(0);
});

test.each([{}, { ONLYONCE_YES: 'false' }, { ONLYONCE_YES: '' }])(
  'dlq redrive moves nothing and exits with 2 when nobody can be asked, with the environment %j',
  async (env) => {
    // Arrange
    const scene = await lab.open();
    await deadLetterThree(scene);

    // Act
    const end = await scene.run(['dlq', 'redrive', 'charges'], { env });

    // Assert
    expect(end).toMatchObject({ code: 2, stdout: '' });
    expect(end.stderr).toContain('add --yes');
    expect(await scene.deadLetterDepth()).toBe(3);
    expect(await scene.depth()).toBe(0);
  },
);

test('dlq redrive --reason moves those letters alone, and a redriven conflict is a conflict again', async () => {
  // Arrange
  const scene = await lab.open();
  const { requestId } = await deadLetterThree(scene);

  // Act
  const end = await scene.run(['dlq', 'redrive', 'charges', '--reason', 'conflict', '--yes', '--json']);
  const left = await scene.run(['dlq', 'ls', 'charges', '--json']);
  const worker = scene.work();
  const outcome = await worker.event({ event: 'outcome', key: requestId });

  // Assert
  expect(end.json()).toMatchObject([{ moved: 1, left: 2 }]);
  expect(left.json()).toMatchObject([{ reason: 'invalid', count: 2 }]);
  expect(outcome).toMatchObject({ outcome: 'conflict' });
  expect(await scene.ledger(requestId)).toHaveLength(1);
});

test('dlq redrive moves what it said it would, also letters whose reason is kept in the table', async () => {
  // Arrange
  const scene = await lab.open();
  await settle(scene, ['x'.repeat(1_048_576)]);
  const flags = ['--reason', 'invalid', '--json'];

  // Act
  const listed = await scene.run(['dlq', 'ls', 'charges', '--json']);
  const planned = await scene.run(['dlq', 'redrive', 'charges', '--dry-run', ...flags]);
  const done = await scene.run(['dlq', 'redrive', 'charges', '--yes', ...flags]);

  // Assert
  expect(listed.json()).toMatchObject([{ reason: 'invalid', count: 1 }]);
  expect(planned.json()).toMatchObject([{ wouldMove: 1 }]);
  expect(done.json()).toMatchObject([{ moved: 1 }]);
});

test('dlq redrive brings an exhausted charge back with a fresh count of attempts', async () => {
  // Arrange
  const scene = await lab.open();
  const charge = scene.charge();
  await scene.sendCharge(charge);
  const broken = scene.work(['--max-attempts', '1', '--provider-url', 'http://127.0.0.1:1']);
  await broken.event({ event: 'outcome', outcome: 'exhausted' });
  await broken.kill();
  const shown = await scene.run(['dlq', 'show', 'charges', '--json']);

  // Act
  await scene.run(['dlq', 'redrive', 'charges', '--reason', 'exhausted', '--yes']);
  const worker = scene.work();
  const outcome = await worker.event({ event: 'outcome', key: charge.requestId });

  // Assert
  expect(shown.json()).toMatchObject([
    { reason: 'exhausted', detail: expect.stringContaining('the connection to the payment provider failed') as string },
  ]);
  expect(outcome).toMatchObject({ outcome: 'completed', attempt: 1 });
  expect(await scene.deadLetterDepth()).toBe(0);
});

test('an empty dead-letter queue is a remark of dlq ls and nothing found for dlq show', async () => {
  // Arrange
  const scene = await lab.open();

  // Act
  const listed = await scene.run(['dlq', 'ls', 'charges']);
  const shown = await scene.run(['dlq', 'show', 'charges']);

  // Assert
  expect(listed).toMatchObject({ code: 0, stdout: '', stderr: 'no dead letters\n' });
  expect(shown).toMatchObject({ code: 3, stdout: '' });
});

test('effects get shows what became of a key, and exits with 3 for one that nobody used', async () => {
  // Arrange
  const scene = await lab.open();
  const { requestId } = await deadLetterThree(scene);
  const [providerCharge] = await scene.providerCharges(requestId);

  // Act
  const found = await scene.run(['effects', 'get', 'charges', requestId, '--json']);
  const asText = await scene.run(['effects', 'get', 'charges', requestId]);
  const missing = await scene.run(['effects', 'get', 'charges', 'nobody', '--json']);

  // Assert
  expect(found.code).toBe(0);
  expect(found.json()).toMatchObject([
    {
      key: requestId,
      status: 'COMPLETED',
      response: { requestId, providerChargeId: providerCharge?.chargeId },
      attempts: 1,
      isHeld: false,
      steps: ['provider-charge'],
      payloadHash: expect.stringMatching(/^[0-9a-f]{64}$/) as string,
    },
  ]);
  expect(asText.stdout).toMatch(/^status +COMPLETED$/m);
  expect(missing).toMatchObject({ code: 3, stdout: '' });
  expect(missing.stderr).toBe('onlyonce: no effect record for "nobody" in charges\n');
});

test('queues ls counts what is visible, in flight and delayed', async () => {
  // Arrange
  const scene = await lab.open();
  await scene.sendCharge(scene.charge());

  // Act
  const asJson = await scene.run(['queues', 'ls', '--json']);
  const asText = await scene.run(['queues', 'ls']);

  // Assert
  const { queue, deadLetterQueue } = scene.queues;
  expect(asJson.json()).toEqual([
    { name: queue.name, visible: 1, inFlight: 0, delayed: 0 },
    { name: deadLetterQueue.name, visible: 0, inFlight: 0, delayed: 0 },
  ]);
  expect(asText.stdout).toMatch(/^queue +visible +in flight +delayed$/m);
  expect(asText.stdout).toContain(queue.name);
  expect(asText.stderr).toContain('counts are approximate');
});

/** A completed charge, a message that contradicts it, and two that nobody can read. */
async function deadLetterThree(scene: Scene): Promise<{ requestId: string; conflictId: string }> {
  const charge = scene.charge({ description: 'secret' });
  await settle(scene, [bodyOf(charge)]);
  const [conflictId = ''] = await settle(scene, [bodyOf({ ...charge, amountMinor: 2 }), 'secret', '{"note":"secret"}']);
  return { requestId: charge.requestId, conflictId };
}

/** Puts a copy with this notice on the dead-letter queue, as a worker does. */
async function deadLetter(scene: Scene, notice: Record<string, unknown>): Promise<void> {
  const attributes = { [NOTICE_ATTRIBUTE]: { DataType: 'String', StringValue: JSON.stringify(notice) } };
  const input = { QueueUrl: scene.queues.deadLetterQueue.url, MessageBody: 'body', MessageAttributes: attributes };
  await scene.connection.queues.send(new SendMessageCommand(input));
}

/** Sends the bodies and lets a worker bring each to its outcome. */
async function settle(scene: Scene, bodies: readonly string[]): Promise<string[]> {
  const messageIds: string[] = [];
  for (const body of bodies) messageIds.push(await scene.sendBody(body));
  const worker = scene.work();
  for (const messageId of messageIds) await worker.event({ event: 'outcome', messageId });
  await worker.kill();
  return messageIds;
}

function bodyOf(charge: ReturnType<Scene['charge']>): string {
  return JSON.stringify({ type: 'charge.requested', version: 1, key: charge.requestId, payload: charge });
}

function isInvalid({ reason }: Record<string, unknown>): boolean {
  return reason === 'invalid';
}

function byReason(left: Record<string, unknown>, right: Record<string, unknown>): number {
  return String(left['reason']).localeCompare(String(right['reason']));
}
