import { expect, test } from 'vitest';
import { processLab, type Scene } from '../support/process-bench.ts';

const lab = processLab();

/** A record whose step "book" is in doubt, as a worker leaves it. */
async function leaveInDoubt(scene: Scene, key: string): Promise<void> {
  const effects = scene.connection.store.effectRecords({ leaseMs: 600_000 });
  const queue = scene.queues.queue.name;
  const claim = await effects.claim({ queue, key, payloadHash: 'aa', holder: 'test' });
  if (claim.kind !== 'claimed') throw new Error(claim.kind);
  await effects.startStep(claim.effect, 'book');
  const failure = { error: 'STEP_UNKNOWN: in doubt', inDoubt: true, startAfresh: true, unknownStep: 'book' };
  await effects.release(claim.effect, failure);
}

async function hold(scene: Scene, key: string): Promise<void> {
  const effects = scene.connection.store.effectRecords({ leaseMs: 600_000 });
  await effects.claim({ queue: scene.queues.queue.name, key, payloadHash: 'aa', holder: 'somebody' });
}

test('effects ls finds the keys that wait for an operator, and no others', async () => {
  const scene = await lab.open();
  await leaveInDoubt(scene, 'k1');
  await hold(scene, 'k2');

  const unknown = await scene.run(['effects', 'ls', 'charges', '--status', 'UNKNOWN', '--json']);
  const all = await scene.run(['effects', 'ls', 'charges']);
  const first = await scene.run(['effects', 'ls', 'charges', '--limit', '1', '--json']);

  expect(unknown.json()).toMatchObject([{ key: 'k1', status: 'FAILED', unknownStep: 'book' }]);
  expect(all.stdout).toMatch(/^k1 +FAILED +STEP_UNKNOWN/m);
  expect(all.stdout).toMatch(/^k2 +IN_PROGRESS/m);
  expect(first.json()).toHaveLength(1);
  expect(first.stderr).toContain('more than 1');
});

test('effects resolve stores the result that the operator knows', async () => {
  const scene = await lab.open();
  await leaveInDoubt(scene, 'k1');

  const said = await scene.run([
    'effects',
    'resolve',
    'charges',
    'k1',
    '--step',
    'book',
    '--result',
    '{"receipt":7}',
    '--yes',
    '--json',
  ]);
  const left = await scene.run(['effects', 'ls', 'charges', '--status', 'UNKNOWN', '--json']);

  expect(said).toMatchObject({ code: 0 });
  expect(said.json()).toMatchObject([{ key: 'k1', steps: ['book'] }]);
  expect(said.stderr).toContain('onlyonce dlq redrive charges');
  expect(left.json()).toEqual([]);
});

test('effects resolve --not-done takes the doubt away', async () => {
  const scene = await lab.open();
  await leaveInDoubt(scene, 'k1');

  const said = await scene.run([
    'effects',
    'resolve',
    'charges',
    'k1',
    '--step',
    'book',
    '--not-done',
    '--yes',
    '--json',
  ]);

  expect(said.json()).toMatchObject([{ key: 'k1', steps: [] }]);
  expect(said.json()[0]).not.toHaveProperty('unknownStep');
});

test.each<[what: string, flags: readonly string[], code: number, says: string]>([
  ['a key that nobody used', ['nobody', '--step', 'book', '--not-done', '--yes'], 3, 'no effect record'],
  ['a key that somebody works on', ['held', '--step', 'book', '--not-done', '--yes'], 5, 'held by somebody'],
  ['no word on what became of it', ['k1', '--step', 'book', '--yes'], 2, '--result <json> or --not-done'],
  ['a result that is no JSON', ['k1', '--step', 'book', '--result', 'seven', '--yes'], 2, 'must be JSON'],
  ['both words', ['k1', '--step', 'book', '--result', '1', '--not-done', '--yes'], 2, 'cannot be used with'],
  ['nobody to ask', ['k1', '--step', 'book', '--not-done'], 2, 'add --yes'],
])('effects resolve refuses %s', async (_what, flags, ...refusal) => {
  const [code, says] = refusal;
  const scene = await lab.open();
  await leaveInDoubt(scene, 'k1');
  await hold(scene, 'held');

  const refused = await scene.run(['effects', 'resolve', 'charges', ...flags]);

  expect(refused).toMatchObject({ code, stdout: '' });
  expect(refused.stderr).toContain(says);
});
