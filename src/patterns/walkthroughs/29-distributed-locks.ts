/** A lock that every machine sees: granted once, given back by its owner alone, and taken over when its holder is gone. */
import { lockKey } from '../../store/table.ts';
import type { Lock } from '../../store/locks/lock.ts';
import type { Locks } from '../../store/locks/locks.ts';
import type { Store } from '../../store/store.ts';
import { createPausableClock } from '../pausable-clock.ts';
import type { Pattern, Scene } from '../pattern.ts';

const NAME = 'invoice-run';
/** Short, so that a takeover is seen at once; `safetyMarginMs` and skew follow from it. */
const LEASE_MS = 1_500;
const MAX_WAIT_MS = 30_000;

export const distributedLocks: Pattern = {
  number: 29,
  title: 'Distributed locks',
  summary: 'a lease that renews itself, a release that only its owner can do, and a takeover',
  expected: {
    firstAcquires: true,
    secondTriesMeanwhile: false,
    firstReleases: true,
    secondAcquires: true,
    thirdTakesOver: true,
    sleeperReleases: false,
    holder: 'worker-C',
  },
  run,
};

async function run(scene: Scene): Promise<void> {
  const sleeperClock = createPausableClock(scene.clock);
  const locksOf = (store: Store, holder: string): Locks => store.locks({ holder, leaseMs: LEASE_MS });
  const workerA = locksOf(scene.store, 'worker-A');
  const workerB = locksOf(scene.openStore(sleeperClock), 'worker-B');
  const workerC = locksOf(scene.openStore(scene.clock), 'worker-C');
  const held = new Map<Locks, Lock>();
  const acquire = async (worker: Locks): Promise<boolean> => {
    const attempt = await worker.tryAcquire(NAME);
    if (attempt.kind === 'acquired') held.set(worker, attempt.lock);
    return attempt.kind === 'acquired';
  };
  const release = async (worker: Locks): Promise<boolean> => (await held.get(worker)?.release()) === 'released';

  try {
    await scene.step({ heading: 'A acquires the lock', result: 'firstAcquires' }, () => acquire(workerA));
    await scene.step({ heading: 'B tries while A holds it', result: 'secondTriesMeanwhile' }, () => acquire(workerB));
    await scene.step({ heading: 'A renews it: by itself while it works, here once by hand' }, () =>
      Promise.resolve(held.get(workerA)?.renew()),
    );
    await scene.step({ heading: 'A releases it', result: 'firstReleases' }, () => release(workerA));
    await scene.step({ heading: 'B acquires it', result: 'secondAcquires' }, () => acquire(workerB));

    sleeperClock.pause();
    scene.note(`worker-B stands still, as a paused process does; its lease of ${String(LEASE_MS)} ms runs out ...`);
    await scene.step({ heading: 'C waits and takes over', result: 'thirdTakesOver' }, async () => {
      const lock = await workerC.acquire(NAME, { maxWaitMs: MAX_WAIT_MS, signal: scene.signal });
      held.set(workerC, lock);
      // Each grant has a higher number than all before it: what B still sends under its own is refused.
      return lock.fencingToken > (held.get(workerB)?.fencingToken ?? Number.POSITIVE_INFINITY);
    });
    await scene.step(
      { heading: 'B wakes up and releases what is no longer its own', result: 'sleeperReleases' },
      () => {
        sleeperClock.resume();
        return release(workerB);
      },
    );
    await scene.step({ heading: 'Who holds it now?', result: 'holder' }, async () => {
      const item = await scene.store.get(lockKey(NAME));
      return item?.['owner'] === undefined ? 'nobody' : item['holder'];
    });
  } finally {
    sleeperClock.resume();
    await Promise.all([workerA, workerB, workerC].map((worker) => worker.close({ graceMs: 0 })));
  }
}
