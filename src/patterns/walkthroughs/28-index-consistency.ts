/** The index follows the table at a distance: it finds candidates and decides nothing. */
import { QueryCommand } from '@aws-sdk/lib-dynamodb';
import { faultName } from '../../aws-fault.ts';
import { sleep } from '../../clock.ts';
import { TABLE, type Item, type ItemKey } from '../../store/table.ts';
import { Rule } from '../expected.ts';
import type { Pattern, Scene } from '../pattern.ts';

const { index } = TABLE;
const ADDRESS = 'EMAIL#a@x.com';
const user = (id: string): ItemKey & Item => ({
  PK: `USER#${id}`,
  SK: 'PROFILE',
  [index.partitionKey]: ADDRESS,
  [index.sortKey]: `USER#${id}`,
});
/** Long enough for an index that lags by seconds. */
const MAX_LOOKS = 20;
const PAUSE_MS = 250;

export const indexConsistency: Pattern = {
  number: 28,
  title: 'Reads by an index',
  summary: 'what an index read can miss, what to do about it, and what it must never decide',
  expected: {
    consistentIndexRead: 'ValidationException',
    indexReadRightAfterWrite: new Rule('1, or 0 where the index lags', (hits) => hits === 1 || hits === 0),
    tableRead: { ...user('1') } as Record<string, string>,
    foundByRepeating: ['USER#1'],
    usersOfOneAddress: ['USER#1', 'USER#2'],
  },
  run,
};

async function run(scene: Scene): Promise<void> {
  const { store } = scene;
  await scene.step({ heading: 'A consistent read of the index is refused', result: 'consistentIndexRead' }, () =>
    consistentIndexRead(scene),
  );
  await scene.step(
    { heading: 'Hits in the index right after a write: it may not be there yet', result: 'indexReadRightAfterWrite' },
    async () => {
      await store.items.create(user('1'));
      return (await hits(scene)).length;
    },
  );
  await scene.step({ heading: 'Read what you wrote from the table', result: 'tableRead' }, () =>
    store.items.get({ PK: 'USER#1', SK: 'PROFILE' }),
  );
  await scene.step({ heading: 'Or ask the index until it knows', result: 'foundByRepeating' }, async () => {
    const answer = await store.index.queryIndexUntilFound({ partition: ADDRESS }, { signal: scene.signal });
    return answer.kind === 'found' ? answer.items.map(({ PK }) => PK) : [];
  });
  await scene.step(
    { heading: 'Nothing stops a second user with the same address', result: 'usersOfOneAddress' },
    async () => {
      await store.items.create(user('2'));
      let users = await hits(scene);
      for (let look = 1; look < MAX_LOOKS && users.length < 2; look += 1) {
        await sleep(scene.clock, PAUSE_MS, scene.signal);
        users = await hits(scene);
      }
      return users;
    },
  );
}

/** The partition keys of what the index knows now. */
async function hits(scene: Scene): Promise<string[]> {
  const found: string[] = [];
  for await (const { PK } of scene.store.index.query({ partition: ADDRESS })) found.push(PK);
  return found;
}

async function consistentIndexRead({ bare, tableName }: Scene): Promise<string> {
  const query = new QueryCommand({
    TableName: tableName,
    IndexName: index.name,
    KeyConditionExpression: '#partition = :address',
    ExpressionAttributeNames: { '#partition': index.partitionKey },
    ExpressionAttributeValues: { ':address': ADDRESS },
    ConsistentRead: true,
  });
  try {
    await bare.send(query);
    return 'answered';
  } catch (error) {
    return faultName(error);
  }
}
