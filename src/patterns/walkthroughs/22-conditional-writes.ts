/** Create-only, update-only-what-exists, and rules of the business: a condition decides, inside the write. */
import { all, equals } from '../../store/conditions.ts';
import { spend } from '../../store/guarded-change.ts';
import type { WriteAnswer } from '../../store/items.ts';
import type { Pattern, Scene } from '../pattern.ts';

const KEY = { PK: 'USER#alice', SK: 'PROFILE' };
const ALICE = { ...KEY, name: 'Alice', credits: 10, status: 'active' };
const PRICE = 7;

export const conditionalWrites: Pattern = {
  number: 22,
  title: 'Conditional writes',
  summary: 'create only, update only what exists, and spend only what is there',
  expected: {
    create: 'OK',
    createAgain: 'ConditionalCheckFailedException',
    updateMissing: 'ConditionalCheckFailedException',
    spend: 'OK',
    spendAgain: 'ConditionalCheckFailedException',
    itemAtFailure: { ...ALICE, credits: ALICE.credits - PRICE },
  },
  run,
};

async function run(scene: Scene): Promise<void> {
  const { items } = scene.store;
  const purchase = spend('credits', PRICE);
  const whileActive = all(purchase.condition, equals('status', 'active'));
  const buy = (): Promise<WriteAnswer> => items.update(KEY, purchase.change, { condition: whileActive });

  await scene.step({ heading: 'Create alice', result: 'create' }, async () => wordFor(await items.create(ALICE)));
  await scene.step({ heading: 'Create alice once more: nothing is overwritten', result: 'createAgain' }, async () =>
    wordFor(await items.create(ALICE)),
  );
  await scene.step({ heading: 'Update bob, who is not there: no half of a bob', result: 'updateMissing' }, async () =>
    wordFor(await items.update({ PK: 'USER#bob', SK: 'PROFILE' }, { set: { name: 'Bob' } })),
  );
  await scene.step({ heading: 'Spend 7 of 10 credits', result: 'spend' }, async () => wordFor(await buy()));
  await scene.step({ heading: 'Spend 7 again, with 3 left', result: 'spendAgain' }, async () => wordFor(await buy()));
  await scene.step(
    { heading: 'The refusal brings the item along: no second read', result: 'itemAtFailure' },
    async () => {
      const answer = await items.update(KEY, purchase.change, { condition: purchase.condition });
      return answer.kind === 'refused' ? answer.item : 'was written';
    },
  );
}

/** As DynamoDB says it. */
function wordFor(answer: WriteAnswer): string {
  return answer.kind === 'written' ? 'OK' : 'ConditionalCheckFailedException';
}
