/** An address that may exist once although it is no key: a sentinel item per address, in the same transaction. */
import { normaliseEmail } from '../../store/unique/normalise.ts';
import type { UniqueAnswer } from '../../store/unique/unique-constraint.ts';
import type { ItemKey } from '../../store/table.ts';
import type { Json } from '../expected.ts';
import type { Pattern, Scene } from '../pattern.ts';
import { reasonsOf, type EndedRequest } from '../render-trace.ts';

const ALICE = { PK: 'USER#alice', SK: 'PROFILE' };
const BOB = { PK: 'USER#bob', SK: 'PROFILE' };

export const uniqueConstraints: Pattern = {
  number: 26,
  title: 'Unique values',
  summary: 'a sentinel per value; changing a value frees the old one in the same transaction',
  expected: {
    aliceSignsUp: 'OK',
    bobTakesHers: { answer: 'taken', owner: 'USER#alice', reasons: ['None', 'ConditionalCheckFailed'] },
    bobSignsUp: 'OK',
    bobChangesToHers: { answer: 'taken', owner: 'USER#alice', reasons: ['None', 'ConditionalCheckFailed', 'None'] },
    bobChanges: 'OK',
    ownerOfBobsAddress: 'USER#bob',
    keys: [
      'UNIQUE#email#a@x.com | UNIQUE',
      'UNIQUE#email#bob@x.com | UNIQUE',
      'USER#alice | PROFILE',
      'USER#bob | PROFILE',
    ],
  },
  run,
};

async function run(scene: Scene): Promise<void> {
  const emails = scene.store.unique({ scope: 'email', attribute: 'email', normalise: normaliseEmail });
  type Requests = () => Promise<readonly EndedRequest[]>;
  const write = async (answer: Promise<UniqueAnswer>, requests: Requests): Promise<Json> =>
    wordFor(await answer, await requests());

  await scene.step({ heading: 'Alice signs up with a@x.com', result: 'aliceSignsUp' }, (requests) =>
    write(emails.create({ ...ALICE, email: 'a@x.com' }), requests),
  );
  await scene.step({ heading: 'Bob tries A@x.com, which is the same address', result: 'bobTakesHers' }, (requests) =>
    write(emails.create({ ...BOB, email: 'A@x.com' }), requests),
  );
  await scene.step({ heading: 'Bob signs up with b@x.com', result: 'bobSignsUp' }, (requests) =>
    write(emails.create({ ...BOB, email: 'b@x.com' }), requests),
  );
  await scene.step({ heading: 'Bob changes to a@x.com, which is taken', result: 'bobChangesToHers' }, (requests) =>
    write(emails.change(BOB, 'a@x.com'), requests),
  );
  await scene.step({ heading: 'Bob changes to bob@x.com', result: 'bobChanges' }, (requests) =>
    write(emails.change(BOB, 'bob@x.com'), requests),
  );
  await scene.step({ heading: 'Whose is bob@x.com?', result: 'ownerOfBobsAddress' }, async () => {
    const owner: ItemKey | undefined = await emails.owner('bob@x.com');
    return owner?.PK;
  });
  await scene.step({ heading: 'All items: b@x.com is free again', result: 'keys' }, () => allKeys(scene));
}

function wordFor(answer: UniqueAnswer, requests: readonly EndedRequest[]): Json {
  if (answer.kind === 'written') return 'OK';
  if (answer.kind === 'conflict') return 'conflict';
  const reasons = requests.map(({ failure }) => reasonsOf(failure)).find((each) => each.length > 0);
  return { answer: answer.kind, owner: answer.owner.PK, reasons: reasons ?? [] };
}

async function allKeys(scene: Scene): Promise<string[]> {
  const keys: string[] = [];
  for await (const item of scene.store.scan()) keys.push(`${String(item['PK'])} | ${String(item['SK'])}`);
  return keys.toSorted();
}
