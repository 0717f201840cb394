import { SendMessageCommand } from '@aws-sdk/client-sqs';
import { expect, test } from 'vitest';
import { CHARGE_REQUESTED, type Charge } from '../../src/messages/charge.ts';
import { encodeMessage } from '../../src/messages/envelope.ts';
import { processLab, type Scene } from '../support/process-bench.ts';
import { startProxies } from '../support/process-proxy.ts';
import { until } from '../support/until.ts';

const lab = processLab();

/** Several processes one after the other, each of which takes a second to load on a busy machine. */
const PROCESSES_MS = 60_000;

interface Summary {
  readonly moved: number;
  readonly deleted: number;
  readonly left: number;
}

/** Puts charges on the dead-letter queue, as its own redrive policy would. */
async function deadLetter(scene: Scene, charges: readonly Charge[]): Promise<void> {
  for (const charge of charges) {
    const { body } = encodeMessage(CHARGE_REQUESTED, charge);
    const input = { QueueUrl: scene.queues.deadLetterQueue.url, MessageBody: body };
    await scene.connection.queues.send(new SendMessageCommand(input));
  }
}

/** Two dead letters whose charge is made, one whose charge is rejected, and two that never ran. */
async function mixedLetters(scene: Scene): Promise<readonly Charge[]> {
  const [made, ...others] = Array.from({ length: 3 }, () => scene.charge());
  if (made === undefined) throw new Error('three were made');
  const rejected = scene.charge({ accountId: made.accountId, currency: 'USD' });
  await work(scene, [made]);
  await work(scene, [rejected]);
  await deadLetter(scene, [made, made, rejected, ...others]);
  return [made, rejected, ...others];
}

/** Lets a worker bring each charge to an outcome. */
async function work(scene: Scene, charges: readonly Charge[]): Promise<void> {
  const worker = scene.work();
  for (const charge of charges) await scene.sendCharge(charge);
  for (const { requestId } of charges) await worker.event({ event: 'outcome', key: requestId });
  await until(async () => (await scene.depth()) === 0);
  await worker.kill();
}

/** A worker for what is on the queue, until nothing is. */
async function drain(scene: Scene): Promise<void> {
  const worker = scene.work();
  await until(async () => (await scene.depth()) === 0, { withinMs: 15_000 });
  await worker.kill();
}

async function expectEachOnce(scene: Scene, charges: readonly Charge[]): Promise<void> {
  for (const { requestId, accountId, amountMinor } of charges) {
    expect(await scene.ledger(requestId)).toHaveLength(1);
    expect(await scene.providerCharges(requestId)).toHaveLength(1);
    expect(await scene.balance(accountId)).toBe(amountMinor);
  }
}

test(
  'dlq redrive leaves what has its answer already, moves the rest, and says so by verdict',
  async () => {
    // Arrange
    const scene = await lab.open();
    const [made, , ...others] = await mixedLetters(scene);

    // Act
    const planned = await scene.run(['dlq', 'redrive', 'charges', '--dry-run', '--json']);
    const done = await scene.run(['dlq', 'redrive', 'charges', '--yes', '--json']);
    const again = await scene.run(['dlq', 'redrive', 'charges', '--yes']);
    await drain(scene);

    // Assert
    const left = { moved: 0, deleted: 0 };
    const verdicts = {
      applied: { ...left, left: 2 },
      rejected: { ...left, left: 1 },
      neverRan: { moved: 2, deleted: 0, left: 0 },
    };
    expect(planned.json()).toEqual([{ wouldMove: 2, wouldDelete: 0, wouldLeave: 3, verdicts }]);
    expect(done.json()).toEqual([{ moved: 2, deleted: 0, left: 3, verdicts }]);
    expect(done.stderr).toContain('3 have their answer already and were left: --delete-applied deletes such letters');
    expect(again.stdout).toMatch(/^applied +0 +0 +2$/m);
    expect(again.stdout).toMatch(/^moved 0 to /m);
    expect(await scene.deadLetterDepth()).toBe(3);
    await expectEachOnce(scene, made === undefined ? [] : [made, ...others]);
  },
  PROCESSES_MS,
);

test(
  'dlq redrive --delete-applied deletes what has its answer already, and only that is not moved',
  async () => {
    // Arrange
    const scene = await lab.open();
    await mixedLetters(scene);

    // Act
    const done = await scene.run(['dlq', 'redrive', 'charges', '--delete-applied', '--yes', '--json']);

    // Assert
    expect(done.json()).toMatchObject([{ moved: 2, deleted: 3, left: 0 }]);
    expect([await scene.deadLetterDepth(), await scene.depth()]).toEqual([0, 2]);
  },
  PROCESSES_MS,
);

test(
  'dlq redrive --include-applied moves that too, and a worker replays it',
  async () => {
    // Arrange
    const scene = await lab.open();
    const [made] = await mixedLetters(scene);
    if (made === undefined) throw new Error('there is one');
    const flags = ['--include-applied', '--filter', 'applied', '--limit', '1'];

    // Act
    const done = await scene.run(['dlq', 'redrive', 'charges', ...flags, '--yes', '--json']);
    const worker = scene.work();
    const outcome = await worker.event({ event: 'outcome', key: made.requestId });

    // Assert
    expect(done.json()).toMatchObject([{ moved: 1, deleted: 0 }]);
    expect(outcome).toMatchObject({ outcome: 'replayed' });
    await expectEachOnce(scene, [made]);
  },
  PROCESSES_MS,
);

test('dlq redrive --filter moves letters of those verdicts alone', async () => {
  // Arrange
  const scene = await lab.open();
  await deadLetter(scene, [scene.charge()]);
  const input = { QueueUrl: scene.queues.deadLetterQueue.url, MessageBody: 'no JSON' };
  await scene.connection.queues.send(new SendMessageCommand(input));

  // Act
  const done = await scene.run(['dlq', 'redrive', 'charges', '--filter', 'failed,unreadable', '--yes', '--json']);

  // Assert
  expect(done.json()).toMatchObject([
    { moved: 1, left: 1, verdicts: { unreadable: { moved: 1 }, neverRan: { left: 1 } } },
  ]);
});

test('dlq redrive --reason maxReceiveCount moves what the queue itself dead-lettered', async () => {
  const scene = await lab.open();
  await deadLetter(scene, [scene.charge()]);

  const none = await scene.run(['dlq', 'redrive', 'charges', '--reason', 'exhausted', '--dry-run', '--json']);
  const one = await scene.run(['dlq', 'redrive', 'charges', '--reason', 'maxReceiveCount', '--dry-run', '--json']);

  expect([none.json()[0]?.['wouldMove'], one.json()[0]?.['wouldMove']]).toEqual([0, 1]);
});

test.each([
  [['--filter', 'applied'], 'letters that are applied are left where they are: add --delete-applied'],
  [['--include-applied', '--delete-applied'], 'either --include-applied or --delete-applied'],
  [['--filter', 'lost'], 'must be one or more of: applied, rejected, running'],
  [['--rate', '0'], 'must be a number from 0.01 to 1000.'],
  [['--rate', ''], 'must be a number from 0.01 to 1000.'],
])('dlq redrive %j exits with 2 and says what is wrong', async (flags, sentence) => {
  const scene = await lab.open();

  const end = await scene.run(['dlq', 'redrive', 'charges', ...flags, '--yes']);

  expect(end).toMatchObject({ code: 2, stdout: '' });
  expect(end.stderr).toContain(sentence);
});

test(
  'Ctrl-C ends a slow dlq redrive between two letters, with a summary, and shows the rest at once',
  async () => {
    // Arrange
    const scene = await lab.open();
    await deadLetter(scene, [scene.charge(), scene.charge(), scene.charge()]);

    // Act
    const running = scene.start(['dlq', 'redrive', 'charges', '--rate', '0.01', '--yes', '--json']);
    await until(async () => (await scene.depth()) === 1);
    running.signal('SIGINT');
    const end = await running.ended;
    const rest = await scene.run(['dlq', 'redrive', 'charges', '--yes', '--json']);

    // Assert
    expect(end.code).toBe(130);
    expect(end.json<Summary>()).toMatchObject([{ moved: 1, left: 0 }]);
    expect(end.stderr).toContain('interrupted: run it again for the rest');
    expect(rest.json<Summary>()).toMatchObject([{ moved: 2 }]);
    expect([await scene.deadLetterDepth(), await scene.depth()]).toEqual([0, 3]);
  },
  PROCESSES_MS,
);

test('dlq redrive that is killed between send and delete is run again: no charge is lost or made twice', async () => {
  // Arrange
  const scene = await lab.open();
  const charges = Array.from({ length: 12 }, () => scene.charge());
  await deadLetter(scene, charges);

  // Act
  await using proxies = await startProxies(scene.endpoints, {
    point: 'delete',
    phase: 'before',
    kill: () => {
      running.signal('SIGKILL');
    },
  });
  const running = scene.start(['dlq', 'redrive', 'charges', '--yes'], { endpoints: proxies.endpoints });
  const killed = await running.ended;
  const sentByThen = await scene.depth();
  const atOnce = await scene.run(['dlq', 'redrive', 'charges', '--yes', '--json']);
  // What the dead process looked at shows itself after half a minute, and until then nobody may think that all is done.
  const moved: number[] = [];
  const rest = await until(
    async () => {
      const run = await scene.run(['dlq', 'redrive', 'charges', '--yes', '--json']);
      moved.push(run.json<Summary>()[0]?.moved ?? 0);
      return (await scene.deadLetterDepth()) === 0 ? run : undefined;
    },
    { withinMs: 45_000 },
  );
  await drain(scene);

  // Assert
  expect(killed.signal).toBe('SIGKILL');
  expect(sentByThen).toBe(1);
  expect(atOnce.json<Summary>()).toMatchObject([{ moved: 2 }]);
  expect(atOnce.stderr).toContain('10 are hidden, by another look or one that died: run it again in 30 s');
  expect(moved.reduce((sum, count) => sum + count, 0)).toBe(10);
  expect(rest.stderr).not.toContain('are hidden');
  await expectEachOnce(scene, charges);
  expect(await scene.deadLetterDepth()).toBe(0);
}, 90_000);
