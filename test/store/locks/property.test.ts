/** Whatever becomes of requests on their way: grants are in order, and what is written under them is written once. */
import fc from 'fast-check';
import { expect, test } from 'vitest';
import type { Lock } from '../../../src/store/locks/lock.ts';
import { useStoreBench } from '../../support/store-bench.ts';
import { LOCK_LEASE, lockScene, START_MS, type LockScene } from '../../support/store-locks.ts';
import { StoreClock } from '../../support/store-clock.ts';
import type { Fault, Rule } from '../../support/store-transport.ts';

const bench = useStoreBench();

const FAULTS: readonly Fault[] = [
  { kind: 'lose the answer' },
  { kind: 'lose the request' },
  { kind: 'deliver late' },
  { kind: 'send twice' },
  { kind: 'refuse', name: 'InternalServerError', status: 500 },
  { kind: 'refuse', name: 'ProvisionedThroughputExceededException' },
  { kind: 'refuse', name: 'AccessDeniedException' },
];

interface Round {
  readonly worker: number;
  readonly onGrant: readonly number[];
  readonly onFinish: readonly number[];
  /** Sleeps beyond its lease, and goes on when all is over. */
  readonly crashes: boolean;
  /** What was on its way until now arrives at the end of this round. */
  readonly lateArrive: boolean;
}

const faultIndexes = fc.array(fc.nat({ max: FAULTS.length - 1 }), { maxLength: 3 });
const round: fc.Arbitrary<Round> = fc.record({
  worker: fc.nat({ max: 2 }),
  onGrant: faultIndexes,
  onFinish: faultIndexes,
  crashes: fc.boolean(),
  lateArrive: fc.boolean(),
});

interface Tally {
  readonly tokens: number[];
  written: number;
  unknown: number;
}

function setFaults(operation: string, indexes: readonly number[]): Rule[] {
  return indexes.flatMap((index) => {
    const fault = FAULTS[index];
    return fault === undefined ? [] : [bench.transport.fault(operation, fault)];
  });
}

async function orUndefined<Result>(promise: Promise<Result>): Promise<Result | undefined> {
  return promise.catch(() => undefined);
}

/** Calls it again while there is no answer, as the contract allows for the same actions. */
async function finish(lock: Lock, scene: LockScene, tally: Tally): Promise<void> {
  const action = scene.effect();
  let mayHaveLanded = false;
  for (let call = 0; call < 3; call += 1) {
    const failure = await lock.finish([action]).then(
      () => undefined,
      (error: unknown) => error,
    );
    if (failure === undefined) {
      tally.written += 1;
      return;
    }
    mayHaveLanded ||= !(failure instanceof Error && 'reason' in failure && failure.reason === 'stolen');
  }
  if (mayHaveLanded) tally.unknown += 1;
}

async function play(rounds: readonly Round[]): Promise<{ tally: Tally; effects: number }> {
  const scene = lockScene(bench);
  const workers = [0, 700, -700].map((aheadMs) => {
    const clock = new StoreClock({ startMs: START_MS + aheadMs, waits: 'jump' });
    const polls = { pollMinMs: 2_000, pollMaxMs: 2_000 };
    return { clock, locks: bench.store({ clock }).locks({ ...LOCK_LEASE, ...polls, beats: 'manual' }) };
  });
  const zombies: Lock[] = [];
  const tally: Tally = { tokens: [], written: 0, unknown: 0 };
  let late: Rule[] = [];
  for (const { worker, onGrant, onFinish, crashes, lateArrive } of rounds) {
    late.push(...setFaults('UpdateItem', onGrant));
    const own = workers[worker];
    const lock = own && (await orUndefined(own.locks.acquire(scene.name, { maxWaitMs: Infinity })));
    if (lock !== undefined) {
      tally.tokens.push(lock.fencingToken);
      late.push(...setFaults('TransactWriteItems', onFinish));
      if (!crashes) await finish(lock, scene, tally);
      else zombies.push(lock);
      // Nobody else moves the clock of this process while its next work waits for the one that hangs.
      if (crashes) own?.clock.advance(LOCK_LEASE.leaseMs);
    }
    bench.transport.heal();
    if (!lateArrive) continue;
    for (const rule of late) await rule.release();
    late = [];
  }
  for (const zombie of zombies) await finish(zombie, scene, tally);
  return { tally, effects: await scene.effects() };
}

test('tokens only grow, and each last write is applied once or not at all, whatever is lost, late or repeated', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(round, { minLength: 1, maxLength: 8 }), async (rounds) => {
      const { tally, effects } = await play(rounds);

      expect(tally.tokens).toEqual([...new Set(tally.tokens)].toSorted((left, right) => left - right));
      expect(effects).toBeGreaterThanOrEqual(tally.written);
      expect(effects).toBeLessThanOrEqual(tally.written + tally.unknown);
    }),
    { numRuns: 20 },
  );
});
