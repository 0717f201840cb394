import { createOnlyonceEffect, createStore } from '../../src/index.ts';

const store = createStore();
await store.bootstrap();
const once = createOnlyonceEffect(store, { scope: 'checkout' });

async function checkout(idempotencyKey: string, payload: { cart: string; amount: number }) {
  const answer = await once(
    idempotencyKey,
    (context) => {
      // Written in the same transaction that marks the key as done.
      const item = { PK: `CART#${payload.cart}`, SK: 'PAYMENT', amount: payload.amount };
      context.commitWith({ kind: 'put', label: 'payment', item });
      return { paid: payload.amount };
    },
    { payload },
  );
  return 'response' in answer ? `${answer.kind} ${JSON.stringify(answer.response)}` : answer.kind;
}

console.log(await checkout('key-1', { cart: 'c-1', amount: 50 }));
console.log(await checkout('key-1', { cart: 'c-1', amount: 50 }));
console.log(await checkout('key-1', { cart: 'c-1', amount: 70 }));
store.close();
