import { createStore, plus } from '../../src/index.ts';

const store = createStore();
await store.bootstrap();
const morning = store.locks({ holder: 'worker-1' });
const evening = store.locks({ holder: 'worker-2' });
const report = { PK: 'REPORT#2026-11', SK: 'STATE' };

await morning.using('report-2026-11', async (lock) => {
  const rival = await evening.tryAcquire('report-2026-11');
  console.log('meanwhile:', rival.kind, rival.kind === 'busy' ? rival.holder : '');

  // `lock.signal` aborts when the lock is lost: hand it to whatever takes long.
  const change = { set: { runs: plus(1, 0), fencingToken: lock.fencingToken } };
  // The last write and the release are one transaction; it is refused when the lock is no longer ours.
  await lock.finish([{ kind: 'update', label: 'report', key: report, change }]);
});

const next = await evening.tryAcquire('report-2026-11');
console.log('afterwards:', next.kind, (await store.get(report))?.['runs']);
await Promise.all([morning.close(), evening.close()]);
store.close();
