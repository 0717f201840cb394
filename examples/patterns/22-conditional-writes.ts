import { conditions, createStore, spend } from '../../src/index.ts';

const store = createStore();
await store.bootstrap();
const wallet = { PK: 'WALLET#w-1', SK: 'META' };

await store.items.create({ ...wallet, credits: 10, status: 'active' });

const purchase = spend('credits', 7);
const condition = conditions.all(purchase.condition, conditions.equals('status', 'active'));
for (const name of ['first', 'second']) {
  const answer = await store.items.update(wallet, purchase.change, { condition });
  // A refusal brings the stored item along: there is nothing to be read.
  console.log(name, answer.kind, answer.item?.['credits']);
}
store.close();
