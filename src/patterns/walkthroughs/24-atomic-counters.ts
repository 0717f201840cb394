/** DynamoDB adds, or the program does: only one of them loses nothing. And numbers that are never given out twice. */
import { GetCommand, PutCommand } from '@aws-sdk/lib-dynamodb';
import { Rule } from '../expected.ts';
import type { Pattern, Scene } from '../pattern.ts';

const VIEWS = 50;
const WRITERS = 10;
/** By chance a round may lose nothing; that all of them do happens to nobody. */
const MAX_ROUNDS = 5;

export const atomicCounters: Pattern = {
  number: 24,
  title: 'Atomic counters',
  summary: 'let DynamoDB do the arithmetic; bounds and sequences',
  expected: {
    added: VIEWS,
    readThenWritten: new Rule(`from 1 to ${String(VIEWS - 1)}`, (value) => Number(value) >= 1 && Number(value) < VIEWS),
    nextInvoiceNumber: 1,
    firstSale: 'sold',
    secondSale: 'sold out',
  },
  run,
};

async function run(scene: Scene): Promise<void> {
  const { counters } = scene.store;
  await scene.step({ heading: '50 additions by 10 writers at once', result: 'added' }, async () => {
    await concurrently(() => counters.add('views', 1));
    return counters.read('views');
  });
  await scene.step(
    { heading: 'The same by reading, adding and writing: each write may undo others', result: 'readThenWritten' },
    () => untilSomeAreLost(scene),
  );
  await scene.step({ heading: 'The next invoice number', result: 'nextInvoiceNumber' }, () => counters.next('invoice'));

  const sell = async (): Promise<string> => {
    const answer = await counters.add('tickets', -1, { floor: 0 });
    return answer.kind === 'added' ? 'sold' : 'sold out';
  };
  await scene.step({ heading: 'The last ticket', result: 'firstSale' }, async () => {
    await counters.create('tickets', 1);
    return sell();
  });
  await scene.step({ heading: 'One more ticket', result: 'secondSale' }, sell);
}

async function concurrently(addOne: () => Promise<unknown>): Promise<void> {
  const writer = async (): Promise<void> => {
    for (let turn = 0; turn < VIEWS / WRITERS; turn += 1) await addOne();
  };
  await Promise.all(Array.from({ length: WRITERS }, writer));
}

/** @returns the count of the first round that lost an addition. */
async function untilSomeAreLost(scene: Scene): Promise<number> {
  let views = VIEWS;
  for (let round = 1; round <= MAX_ROUNDS && views >= VIEWS; round += 1) {
    scene.signal.throwIfAborted();
    const key = { PK: `POST#hello-${String(round)}`, SK: 'STATS' };
    await concurrently(async () => write(scene, key, (await read(scene, key)) + 1));
    views = await read(scene, key);
  }
  return views;
}

async function read({ bare, tableName }: Scene, key: { PK: string; SK: string }): Promise<number> {
  const { Item } = await bare.send(new GetCommand({ TableName: tableName, Key: key, ConsistentRead: true }));
  return Number(Item?.['views'] ?? 0);
}

async function write({ bare, tableName }: Scene, key: { PK: string; SK: string }, views: number): Promise<void> {
  await bare.send(new PutCommand({ TableName: tableName, Item: { ...key, views } }));
}
