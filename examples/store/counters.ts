import { createStore } from '../../src/index.ts';

const store = createStore();
await store.bootstrap();
const { counters } = store;

// A message that comes three times counts once, always on the same shard.
for (let delivery = 1; delivery <= 3; delivery += 1) {
  const answer = await counters.addOnce('orders', 1, { key: 'message-7', shards: 16 });
  console.log(delivery, answer.kind);
}
console.log('orders:', await counters.sharded('orders', 16).read());

// The number is taken in the transaction that writes the invoice: none is left out, none is given twice.
const number = await counters.numbered('invoice', (next) => [
  { kind: 'put', label: 'invoice', item: { PK: 'INVOICES', SK: String(next), amount: 50 } },
]);
console.log('invoice:', number);
store.close();
