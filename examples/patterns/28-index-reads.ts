import { createStore, transition } from '../../src/index.ts';

const store = createStore();
await store.bootstrap();
const parcel = { PK: 'PARCEL#p-1', SK: 'META' };

await store.items.create({ ...parcel, status: 'READY', GSI1PK: 'PARCELS#READY', GSI1SK: 'PARCEL#p-1' });

const search = await store.index.queryIndexUntilFound({ partition: 'PARCELS#READY' });
for (const hit of search.kind === 'found' ? search.items : []) {
  // The index may be behind: the item itself says whether the parcel is still waiting, and the condition decides.
  const looked = await store.index.recheck(hit, (item) => item['status'] === 'READY');
  if (looked.kind === 'stale') continue;
  const { change, condition } = transition('status', { from: 'READY', to: 'SENT' });
  const sent = await store.items.update(hit, { ...change, remove: ['GSI1PK', 'GSI1SK'] }, { condition });
  console.log(hit.PK, sent.kind, sent.item?.['status']);
}
store.close();
