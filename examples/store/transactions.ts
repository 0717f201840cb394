import { createStore, TransactionCancelledError } from '../../src/index.ts';

const store = createStore();
await store.bootstrap();
const { counters, transactions, versioned } = store;
const article = { PK: 'ARTICLE#s-1', SK: 'META' };

await counters.create('free-slots', 1);
const { item: seen } = await versioned.create({ ...article, state: 'draft' });

async function publish(): Promise<string> {
  try {
    await transactions.write([
      // What the parts of the store do alone they also do as actions of one transaction.
      versioned.saveAction({ label: 'article', key: article, change: { set: { state: 'public' } }, seen }),
      counters.addAction('free-slots', -1, { floor: 0 }),
    ]);
    return 'published';
  } catch (error) {
    if (!(error instanceof TransactionCancelledError)) throw error;
    return `refused by ${error.failedConditions.map(({ label }) => label).join(' and ')}`;
  }
}

console.log(await publish());
console.log(await publish());
store.close();
