import { expect, test } from 'vitest';
import { workEventSchema } from '../../src/cli/work-events.ts';
import { processLab, type Scene } from '../support/process-bench.ts';
import { until } from '../support/until.ts';

const lab = processLab();

test('work that is told to stop by SIGTERM finishes the charge under way and exits with 0', async () => {
  // Arrange
  const scene = await lab.open();
  const charge = scene.charge();
  // Longer than the long poll that is open too: it must be the charge that is waited for.
  await addFault(scene, { match: { reference: charge.requestId }, effect: 'late', delayMs: 2_500 });
  const worker = scene.work();
  await scene.sendCharge(charge);
  await worker.event({ event: 'delivery' });

  // Act
  worker.signal('SIGTERM');
  const end = await worker.ended;

  // Assert
  expect(end.code).toBe(0);
  expect(end.json().at(-1)).toMatchObject({ event: 'outcome', outcome: 'completed', key: charge.requestId });
  expect(end.stderr).not.toContain('not finished');
  expect(await scene.depth()).toBe(0);
});

test('work leaves a charge that outlasts the stop deadline to the next worker and names its message', async () => {
  // Arrange
  const scene = await lab.open();
  const charge = scene.charge();
  const answer = await holdAnswerOf(scene, charge.requestId);
  const worker = scene.work(['--stop-deadline-ms', '50']);
  const messageId = await scene.sendCharge(charge);
  await answer.whenHeld();

  // Act
  worker.signal('SIGTERM');
  const end = await worker.ended;
  const next = scene.work();
  const outcome = await next.event({ event: 'outcome', key: charge.requestId });

  // Assert
  expect(end.code).toBe(0);
  expect(end.stderr).toContain(`not finished, will be delivered again: ${messageId}`);
  expect(outcome).toMatchObject({ outcome: 'completed', takenOver: true });
  expect(await scene.providerCharges(charge.requestId)).toHaveLength(1);
});

test('work that is ended from the keyboard exits with 130', async () => {
  // Arrange
  const scene = await lab.open();
  const worker = scene.work();
  await worker.event({ event: 'ready' });

  // Act
  worker.signal('SIGINT');
  const end = await worker.ended;

  // Assert
  expect(end.code).toBe(130);
});

test('work does not wait any longer at the second signal', async () => {
  // Arrange
  const scene = await lab.open();
  const charge = scene.charge();
  const answer = await holdAnswerOf(scene, charge.requestId);
  const worker = scene.work(['--stop-deadline-ms', '600000', '--provider-timeout-ms', '300000']);
  await scene.sendCharge(charge);
  await answer.whenHeld();
  worker.signal('SIGINT');
  await worker.stderr.when(1, (line) => line.includes('stopping'));

  // Act
  worker.signal('SIGINT');
  const end = await worker.ended;

  // Assert
  expect(end.code).toBe(130);
  expect(await scene.depth()).toBe(1);
});

test('work --json prints nothing but events, the log and the talk go to stderr', async () => {
  // Arrange
  const scene = await lab.open();
  const worker = scene.work(['--name', 'w1', '--log-level', 'debug']);
  const charge = scene.charge();
  await scene.sendCharge(charge);
  await worker.event({ event: 'outcome', outcome: 'completed' });
  await scene.sendCharge({ ...charge, amountMinor: 2 });
  await scene.sendBody('not JSON');
  await worker.event({ event: 'outcome', outcome: 'conflict' });
  await worker.event({ event: 'outcome', outcome: 'invalid' });

  // Act
  worker.signal('SIGTERM');
  const end = await worker.ended;

  // Assert
  const events = end.json<unknown>().map((line) => workEventSchema.parse(line));
  expect(events.map(({ event }) => event).toSorted()).toEqual([
    'delivery',
    'delivery',
    'delivery',
    'outcome',
    'outcome',
    'outcome',
    'ready',
  ]);
  expect(new Set(events.map(({ worker: name }) => name))).toEqual(new Set(['w1']));
  expect(end.stderr).toContain('delivery settled');
  expect(end.stderr).toContain('w1: stopping');
});

test('work without --json prints one line of text for each outcome', async () => {
  // Arrange
  const scene = await lab.open();
  const worker = scene.start(['work', 'charges', '--name', 'w1', '--wait-seconds', '1']);
  const charge = scene.charge();
  await scene.sendCharge(charge);

  // Act
  const [line] = await worker.stdout.when(1, (text) => text.includes(charge.requestId));

  // Assert
  expect(line).toMatch(/^completed {2}req-[\w-]+ {2}attempt 1, \d+ ms$/);
});

test('work on queues that do not exist exits with 3 and says what to run', async () => {
  // Arrange
  const scene = lab.openEmpty();

  // Act
  const end = await scene.run(['work', 'charges', '--json']);

  // Assert
  expect(end).toMatchObject({ code: 3, stdout: '' });
  expect(end.stderr).toContain('run "onlyonce bootstrap" first');
});

test('work refuses timings that do not fit together before it receives anything', async () => {
  // Arrange
  const scene = await lab.open();
  await scene.sendCharge(scene.charge());

  // Act
  const end = await scene.run(['work', 'charges', '--lease-ms', '20000', '--visibility-seconds', '5']);

  // Assert
  expect(end).toMatchObject({ code: 2, stdout: '' });
  expect(end.stderr).toContain('visibilityTimeoutSeconds: at least leaseMs + maxClockSkewMs (22000 ms)');
  expect(await scene.depth()).toBe(1);
});

test('work goes on when the payment provider is away, and completes the charge with one that is there', async () => {
  // Arrange
  const scene = await lab.open();
  const charge = scene.charge();
  await scene.sendCharge(charge);
  const nowhere = scene.work(['--provider-url', 'http://127.0.0.1:1']);
  const failed = await nowhere.event({ event: 'outcome', key: charge.requestId });
  nowhere.signal('SIGTERM');
  const end = await nowhere.ended;

  // Act
  const worker = scene.work();
  const outcome = await worker.event({ event: 'outcome', key: charge.requestId });

  // Assert
  expect(failed).toMatchObject({ outcome: 'retry', attempt: 1 });
  expect(end.code).toBe(0);
  expect(outcome).toMatchObject({ outcome: 'completed', attempt: 2, takenOver: false });
});

/** Lets the provider charge and keep its answer. @returns what resolves once it has. */
async function holdAnswerOf(scene: Scene, reference: string): Promise<{ whenHeld(): Promise<void> }> {
  await addFault(scene, { id: reference, match: { reference }, effect: 'hold' });
  return {
    async whenHeld() {
      await until(async () => {
        const answer = await fetch(new URL('/_faults/held?wait=1000', scene.endpoints.provider));
        const { held } = (await answer.json()) as { held: { ruleId: string }[] };
        return held.some(({ ruleId }) => ruleId === reference);
      });
    },
  };
}

async function addFault(scene: Scene, rule: object): Promise<void> {
  await fetch(new URL('/_faults', scene.endpoints.provider), {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(rule),
  });
}
