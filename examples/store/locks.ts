import { createStore, minus, plus, type Lock } from '../../src/index.ts';

const store = createStore();
await store.bootstrap();
const locks = store.locks({ holder: 'machine-1' });
// For logs and metrics. Nobody needs to listen: a loss reaches the work by `lock.signal`.
locks.on((event) => {
  console.log('event:', event.kind);
});

async function nightly(lock: Lock): Promise<void> {
  for (const day of [1, 2]) {
    // Asks two clocks of this machine, not the table. Throws a LeaseLostError.
    lock.assertHeld();
    const part = { PK: 'NIGHTLY#s-1', SK: `DAY#${String(day)}` };
    // Refused when the lock is another's by now. Renews it as well.
    await lock.write([{ kind: 'put', label: 'day', item: { ...part, fencingToken: lock.fencingToken } }]);
  }
  const total = { PK: 'NIGHTLY#s-1', SK: 'TOTAL' };
  // The last write and the release: one transaction.
  await lock.finish([{ kind: 'update', label: 'total', key: total, change: { set: { days: plus(2, 0) } } }]);
}

const rival = store.locks({ holder: 'machine-2' });
await locks.using('nightly', nightly, { maxWaitMs: 60_000 });
console.log('nightly:', (await rival.tryAcquire('nightly')).kind);

// Several locks are all granted or none, in one order for everybody, and all their fences are in each write.
const pair = await locks.acquireAll(['account-b', 'account-a']);
console.log(pair.locks.map(({ name }) => name).join(', '));
await pair.finish([
  { kind: 'update', label: 'from', key: { PK: 'PURSE#a', SK: 'META' }, change: { set: { amount: minus(5, 20) } } },
  { kind: 'update', label: 'to', key: { PK: 'PURSE#b', SK: 'META' }, change: { set: { amount: plus(5, 0) } } },
]);

// At the end of a process: asks the work to stop, waits for it, gives back what nobody works under any more. What was
// taken without `using` counts as worked under: it is left to the end of its lease.
const { released, stillRunning } = await rival.close({ graceMs: 100 });
console.log('released:', released.length, 'still running:', stillRunning.join());
await locks.close();
store.close();
