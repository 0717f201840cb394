import { createOnlyonceEffect, createStore, plus } from '../../src/index.ts';

const store = createStore();
await store.bootstrap();
const once = createOnlyonceEffect(store, { scope: 'interest' });
const account = { PK: 'SAVINGS#s-1', SK: 'META' };

/** Started by cron on two machines: the month is the key. */
async function payInterest(month: string): Promise<string> {
  const answer = await once(month, ({ commitWith }) => {
    commitWith({ kind: 'update', label: 'balance', key: account, change: { set: { balance: plus(3, 0) } } });
  });
  return answer.kind;
}

console.log(await payInterest('2026-11'), await payInterest('2026-11'), await payInterest('2026-12'));
console.log((await store.get(account))?.['balance']);
store.close();
