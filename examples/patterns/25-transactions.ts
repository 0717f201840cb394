import { conditions, createStore, plus, spend, TransactionCancelledError } from '../../src/index.ts';

const store = createStore();
await store.bootstrap();
const stock = { PK: 'PRODUCT#teapot', SK: 'STOCK' };
const customer = { PK: 'CUSTOMER#c-1', SK: 'PROFILE' };
const orderKey = (id: string) => ({ PK: customer.PK, SK: `ORDER#${id}` });

await store.items.create({ ...stock, stock: 3 });

async function order(id: string, quantity: number): Promise<string> {
  try {
    await store.transactions.write([
      { kind: 'put', label: 'order', item: { ...orderKey(id), quantity }, condition: conditions.absent() },
      { kind: 'update', label: 'stock', key: stock, ...spend('stock', quantity) },
      { kind: 'update', label: 'customer', key: customer, change: { set: { orderCount: plus(1, 0) } } },
    ]);
    return 'placed';
  } catch (error) {
    if (!(error instanceof TransactionCancelledError)) throw error;
    const shortage = error.conditionFailure('stock');
    return shortage === undefined ? error.message : `only ${String(shortage.item?.['stock'])} left`;
  }
}

console.log(await order('o-1', 2));
console.log(await order('o-2', 5));
const [left, orders, second] = await store.snapshot([stock, customer, orderKey('o-2')]);
console.log(left?.['stock'], orders?.['orderCount'], second);
store.close();
