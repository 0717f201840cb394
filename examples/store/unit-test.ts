import assert from 'node:assert/strict';
import { test } from 'node:test';
import { BackendError, createMemoryStore, spend, type Store } from '../../src/index.ts';

const WALLET = { PK: 'WALLET#s-1', SK: 'META' };

/** The code that is tested. It takes its store; whether DynamoDB is a server or a map is not its business. */
async function buy(store: Pick<Store, 'items'>, price: number): Promise<'bought' | 'too expensive' | 'unknown'> {
  const { change, condition } = spend('credits', price);
  try {
    const answer = await store.items.update(WALLET, change, { condition });
    return answer.kind === 'written' ? 'bought' : 'too expensive';
  } catch (error) {
    if (error instanceof BackendError && error.reason === 'ambiguous') return 'unknown';
    throw error;
  }
}

await test('buys what there are credits for', async () => {
  const store = createMemoryStore();
  await store.items.create({ ...WALLET, credits: 10 });

  assert.deepEqual([await buy(store, 7), await buy(store, 7)], ['bought', 'too expensive']);
  assert.deepEqual(store.backend.items(), [{ ...WALLET, credits: 3 }]);
});

await test('outlasts throttling, and says when nobody knows whether it has bought', async () => {
  // Waits between tries take a random time: none.
  const store = createMemoryStore({ random: () => 0 });
  await store.items.create({ ...WALLET, credits: 10 });
  store.backend.failNext('UpdateItem', 'throttle', 2);
  assert.equal(await buy(store, 1), 'bought');

  store.backend.failNext('UpdateItem', 'lose the answer');
  assert.equal(await buy(store, 7), 'unknown');
  assert.deepEqual(store.backend.items(), [{ ...WALLET, credits: 2 }]);
});
