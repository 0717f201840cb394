/** An order touches three items: all of it happens or nothing, and a refusal says which action refused. */
import { absent } from '../../store/conditions.ts';
import { plus } from '../../store/expressions.ts';
import { spend } from '../../store/guarded-change.ts';
import { TransactionCancelledError } from '../../store/transactions/transaction-writer.ts';
import type { TransactionAction } from '../../store/transactions/transaction.ts';
import type { Pattern, Scene } from '../pattern.ts';

const STOCK = { PK: 'PRODUCT#widget', SK: 'STOCK' };
const PROFILE = { PK: 'CUSTOMER#alice', SK: 'PROFILE' };
const orderKey = (id: string): { PK: string; SK: string } => ({ PK: PROFILE.PK, SK: `ORDER#${id}` });

export const transactions: Pattern = {
  number: 25,
  title: 'Transactions',
  summary: 'several writes, all or none; the reasons of a refusal; several items as of one moment',
  expected: {
    firstOrder: 'OK',
    secondOrder: ['None', 'ConditionalCheckFailed', 'None'],
    snapshot: [{ ...STOCK, stock: 1 }, { ...PROFILE, orderCount: 1 }, null],
  },
  run,
};

async function run(scene: Scene): Promise<void> {
  const { store } = scene;
  const placeOrder = async (id: string, quantity: number): Promise<'OK' | string[]> => {
    const actions = orderActions(id, quantity);
    try {
      await store.transactions.write(actions, { signal: scene.signal });
      return 'OK';
    } catch (error) {
      if (!(error instanceof TransactionCancelledError)) throw error;
      const { failures } = error;
      return actions.map((_, index) => failures.find((failure) => failure.index === index)?.code ?? 'None');
    }
  };

  await scene.step({ heading: 'Three widgets in stock, no orders yet' }, () =>
    store.transactions.write([
      { kind: 'put', label: 'stock', item: { ...STOCK, stock: 3 } },
      { kind: 'put', label: 'customer', item: { ...PROFILE, orderCount: 0 } },
    ]),
  );
  await scene.step({ heading: 'An order of 2', result: 'firstOrder' }, () => placeOrder('o1', 2));
  await scene.step({ heading: 'An order of 5: why each action was refused', result: 'secondOrder' }, () =>
    placeOrder('o2', 5),
  );
  await scene.step(
    { heading: 'Stock, customer and second order as of one moment: nothing of it is there', result: 'snapshot' },
    () => store.snapshot([STOCK, PROFILE, orderKey('o2')]),
  );
}

function orderActions(id: string, quantity: number): TransactionAction[] {
  const take = spend('stock', quantity);
  return [
    { kind: 'put', label: 'order', item: { ...orderKey(id), quantity }, condition: absent() },
    { kind: 'update', label: 'stock', key: STOCK, ...take },
    { kind: 'update', label: 'order count', key: PROFILE, change: { set: { orderCount: plus(1, 0) } } },
  ];
}
