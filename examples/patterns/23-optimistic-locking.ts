import { createStore } from '../../src/index.ts';

const store = createStore();
await store.bootstrap();
const page = { PK: 'PAGE#home', SK: 'META' };

const { item: seenByEditor } = await store.versioned.create({ ...page, title: 'Home', visits: 0 });

// A program repeats its change on fresh data.
const counted = await store.versioned.update(page, (current) => ({ visits: Number(current['visits']) + 1 }));
console.log('program:', counted.kind);

// A person is shown what became of the page in the meantime.
const saved = await store.versioned.save(page, { set: { title: 'Welcome' } }, seenByEditor);
console.log('editor:', saved.kind, saved.kind === 'conflict' ? saved.current?.version : saved.item.version);
store.close();
