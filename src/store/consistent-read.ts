/** Reads one item as the last write left it. */
import { GetCommand } from '@aws-sdk/lib-dynamodb';
import { toBackendError } from './backend-error.ts';
import type { UpdateTarget } from './conditional-update.ts';
import type { StoreContext } from './context.ts';
import { repeated } from './repeated.ts';
import type { Item, ItemKey } from './table.ts';

/** Repeated on passing faults: a read changes nothing. @throws {BackendError} */
export function readConsistently(context: StoreContext, key: ItemKey): Promise<Item | undefined> {
  return repeated(context, { mayApplyTwice: true }, () => readOnce(context.target, key));
}

/** With no more tries than the client's own. @throws {BackendError} */
export async function readOnce(target: UpdateTarget, key: ItemKey, signal?: AbortSignal): Promise<Item | undefined> {
  const read = new GetCommand({ TableName: target.tableName, Key: key, ConsistentRead: true });
  const options = signal === undefined ? {} : { abortSignal: signal };
  const { Item } = await target.client.send(read, options).catch((error: unknown) => {
    throw toBackendError(error);
  });
  return Item;
}
