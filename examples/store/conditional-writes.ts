import { randomUUID } from 'node:crypto';
import { createStore, transition } from '../../src/index.ts';

const store = createStore();
await store.bootstrap();
const parcel = { PK: 'PARCEL#s-1', SK: 'META' };

// May be repeated after a lost answer. The nonce makes sure that the item which refuses the repeat is ours.
const item = { ...parcel, status: 'PACKED', madeBy: randomUUID() };
console.log((await store.items.create(item, { whenUnanswered: 'repeat' })).kind);

const { change, condition } = transition('status', { from: 'PACKED', to: 'SENT', set: { carrier: 'north' } });
for (const name of ['first', 'second']) {
  const answer = await store.items.update(parcel, change, { condition });
  console.log(name, answer.kind, answer.item?.['status']);
}
store.close();
