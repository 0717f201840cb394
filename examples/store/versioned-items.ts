import { createStore } from '../../src/index.ts';

const store = createStore();
await store.bootstrap();
const { versioned } = store;
const page = { PK: 'PAGE#s-1', SK: 'META' };

const { item: seen } = await versioned.create({ ...page, title: 'Home' });
await versioned.remove(page, seen);
await versioned.create({ ...page, title: 'Another page' });

// Both have version 1. The edit of the first page never fits the second one: its generation is another.
const late = await versioned.save(page, { set: { title: 'Welcome' } }, seen);
console.log(late.kind, late.kind === 'conflict' ? late.current?.['title'] : '');
store.close();
