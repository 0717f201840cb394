/** Reads one item as the last write left it. */
import { GetCommand } from '@aws-sdk/lib-dynamodb';
import { toBackendError } from './backend-error.ts';
import type { StoreContext } from './context.ts';
import { repeated } from './repeated.ts';
import type { Item, ItemKey } from './table.ts';

/** Repeated on passing faults: a read changes nothing. @throws {BackendError} */
export function readConsistently(context: StoreContext, key: ItemKey): Promise<Item | undefined> {
  const { client, tableName } = context.target;
  return repeated(context, { mayApplyTwice: true }, async () => {
    const read = new GetCommand({ TableName: tableName, Key: key, ConsistentRead: true });
    const result = await client.send(read).catch((error: unknown) => {
      throw toBackendError(error);
    });
    return result.Item;
  });
}
