/** Two people change the same item: the version tells the slower one, and a repeat on fresh data loses nothing. */
import type { Json } from '../expected.ts';
import type { Pattern, Scene } from '../pattern.ts';
import type { VersionedItem } from '../../store/versioned.ts';

const KEY = { PK: 'ACCOUNT#a1', SK: 'META' };

export const optimisticLocking: Pattern = {
  number: 23,
  title: 'Optimistic locking',
  summary: 'a version that every write checks, and a repeat on fresh data',
  expected: {
    afterDeposit: { balance: 150, version: 2 },
    staleWithdrawal: 'rejected',
    afterRetry: { balance: 120, version: 3 },
  },
  run,
};

async function run(scene: Scene): Promise<void> {
  const { versioned } = scene.store;
  const seen = await scene.step({ heading: 'A and B both read the account: balance 100, version 1' }, async () => {
    await versioned.create({ ...KEY, balance: 100 });
    const [byA, byB] = await Promise.all([versioned.read(KEY), versioned.read(KEY)]);
    return { byA: existing(byA), byB: existing(byB) };
  });

  await scene.step({ heading: 'A deposits 50', result: 'afterDeposit' }, async () => {
    const answer = await versioned.save(KEY, { set: { balance: balanceOf(seen.byA) + 50 } }, seen.byA);
    return answer.kind === 'saved' ? stateOf(answer.item) : 'rejected';
  });
  await scene.step(
    { heading: 'B withdraws 30 from the balance it has read, which is no longer true', result: 'staleWithdrawal' },
    async () => {
      const answer = await versioned.save(KEY, { set: { balance: balanceOf(seen.byB) - 30 } }, seen.byB);
      return answer.kind === 'saved' ? stateOf(answer.item) : 'rejected';
    },
  );
  await scene.step({ heading: 'B withdraws 30 from the balance as it is', result: 'afterRetry' }, async () => {
    const answer = await versioned.update(KEY, (current) => ({ balance: balanceOf(current) - 30 }), {
      signal: scene.signal,
    });
    return answer.kind === 'updated' ? stateOf(answer.item) : answer.kind;
  });
}

function existing(item: VersionedItem | undefined): VersionedItem {
  if (item === undefined) throw new Error('the account that was just created is not there');
  return item;
}

function balanceOf(item: VersionedItem): number {
  return Number(item['balance']);
}

function stateOf(item: VersionedItem): Json {
  return { balance: balanceOf(item), version: item.version };
}
