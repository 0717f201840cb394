/** Two workers that want the same two locks in opposite order, round after round, on the clock of the system. */
import { systemClock } from '../../src/clock.ts';
import { createStore } from '../../src/store/store.ts';
import { lockKey } from '../../src/store/table.ts';
import { LOCAL_ACCESS, type StoreBench } from './store-bench.ts';
import { lockScene } from './store-locks.ts';

export interface Swaps {
  /** By worker. */
  readonly rounds: readonly number[];
  /** How often the two were inside at once, or one of them without both locks. */
  readonly together: number;
  readonly effects: number;
}

export async function swapLocks(bench: StoreBench, rounds: number): Promise<Swaps> {
  const scene = lockScene(bench);
  const names = [`${scene.name}-é`, `${scene.name}-\u{1f512}`];
  const done = [0, 0];
  let inside = 0;
  let together = 0;

  const worker = async (index: number): Promise<void> => {
    const store = createStore({
      ...LOCAL_ACCESS,
      endpoint: bench.backendEndpoint,
      clock: systemClock,
      random: () => 0,
    });
    const locks = store.locks({ pollMinMs: 10, pollMaxMs: 20, holder: `w${String(index)}` });
    const wanted = index === 0 ? names : names.toReversed();
    for (let round = 0; round < rounds; round += 1) {
      const set = await locks.acquireAll(wanted, { maxWaitMs: 30_000 });
      inside += 1;
      if (inside > 1) together += 1;
      const items = await Promise.all(names.map((name) => store.get(lockKey(name))));
      if (items.some((item) => item?.['holder'] !== `w${String(index)}` || item['owner'] === undefined)) together += 1;
      inside -= 1;
      await set.finish([scene.effect()]);
      done[index] = round + 1;
    }
    await locks.close();
    store.close();
  };

  await Promise.all([worker(0), worker(1)]);
  return { rounds: done, together, effects: await scene.effects() };
}
