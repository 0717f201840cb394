import { expect, test } from 'vitest';
import { useStoreBench } from '../support/store-bench.ts';
import { swapLocks } from '../support/store-lock-swaps.ts';

const bench = useStoreBench();

test('L23: two workers that want two locks in opposite order get them 1,000 times each, without a deadlock', async () => {
  const { rounds, together, effects } = await swapLocks(bench, 1_000);

  expect([rounds, together, effects]).toEqual([[1_000, 1_000], 0, 2_000]);
});
