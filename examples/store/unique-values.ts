import {
  conditions,
  createStore,
  normaliseEmail,
  normaliseUserName,
  TransactionCancelledError,
} from '../../src/index.ts';

const store = createStore();
await store.bootstrap();
const emails = store.unique({ scope: 's-email', attribute: 'email', normalise: normaliseEmail });
const names = store.unique({ scope: 's-name', attribute: 'name', normalise: normaliseUserName });

/** Two unique values of one item: their claims go into one transaction with it. */
async function signUp(id: string, name: string, email: string): Promise<string> {
  const member = { PK: `MEMBER#${id}`, SK: 'PROFILE' };
  try {
    await store.transactions.write([
      { kind: 'put', label: 'member', item: { ...member, name, email }, condition: conditions.absent() },
      names.claimAction(name, member),
      emails.claimAction(email, member),
    ]);
    return 'welcome';
  } catch (error) {
    if (!(error instanceof TransactionCancelledError) || !error.isUniqueViolation) throw error;
    return error.failedConditions.map(({ label }) => label).join(', ');
  }
}

console.log(await signUp('1', 'Ada', 'ada@example.com'));
console.log(await signUp('2', 'ADA', 'grace@example.com'));
// Nothing of the refused sign-up is left: its address is free.
console.log(await emails.owner('grace@example.com'));
store.close();
