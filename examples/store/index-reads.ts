import { createMemoryStore } from '../../src/index.ts';

// In memory the index can be told to lag, as a real one does on a bad day.
const store = createMemoryStore();
const task = { PK: 'TASK#s-1', SK: 'META' };

await store.items.create({ ...task, done: false, GSI1PK: 'OPEN', GSI1SK: 'TASK#s-1' });
store.backend.index.hold();
await store.items.update(task, { set: { done: true }, remove: ['GSI1PK', 'GSI1SK'] });

for await (const hit of store.index.query({ partition: 'OPEN' })) {
  const looked = await store.index.recheck(hit, (item) => item['done'] === false);
  console.log('the index says', hit['done'], '- the table says', looked.item?.['done'], '-', looked.kind);
}
store.close();
