import { createStore } from '../../src/index.ts';

const store = createStore();
await store.bootstrap();
const { counters } = store;

await Promise.all(Array.from({ length: 20 }, () => counters.add('page-views', 1)));
console.log('views:', await counters.read('page-views'));

await counters.create('seats', 1);
for (const guest of ['Ada', 'Grace']) {
  const answer = await counters.add('seats', -1, { floor: 0 });
  console.log(guest, answer.kind === 'added' ? 'has a seat' : 'comes too late');
}

// The same key counts once, however often it comes.
const first = await counters.addOnce('downloads', 1, { key: 'request-1' });
const again = await counters.addOnce('downloads', 1, { key: 'request-1' });
console.log('downloads:', first.kind, again.kind, await counters.read('downloads'));

console.log('invoices:', await counters.next('invoices'), await counters.next('invoices'));
store.close();
