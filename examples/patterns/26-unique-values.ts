import { createStore, normaliseEmail } from '../../src/index.ts';

const store = createStore();
await store.bootstrap();
const emails = store.unique({ scope: 'member-email', attribute: 'email', normalise: normaliseEmail });
const ada = { PK: 'MEMBER#ada', SK: 'PROFILE' };
const grace = { PK: 'MEMBER#grace', SK: 'PROFILE' };

await emails.create({ ...ada, email: 'ada@example.com' });
const same = await emails.create({ ...grace, email: 'Ada@Example.com' });
console.log(same.kind, same.kind === 'taken' ? same.owner.PK : '');

await emails.change(ada, 'ada@example.org');
// The old address is free as soon as the new one is hers.
const free = await emails.create({ ...grace, email: 'ada@example.com' });
console.log(free.kind, (await emails.owner('ada@example.com'))?.PK);
store.close();
