/** A table with a fresh name for one walk-through: nothing of the user's is touched, and nothing is left behind. */
import { randomUUID } from 'node:crypto';
import { DeleteTableCommand } from '@aws-sdk/client-dynamodb';
import { classifyFault, type FaultClass } from '../aws-fault.ts';
import { sleep, type Clock } from '../clock.ts';
import { BackendError, messageOf } from '../errors.ts';
import { createDocumentClient, type StoreClientOptions } from '../store/client.ts';
import type { RequestTrace } from '../store/request-trace.ts';
import { createStore } from '../store/store.ts';

export interface OwnTableOptions {
  readonly client: StoreClientOptions;
  /** What the name begins with. */
  readonly prefix: string;
  readonly clock: Clock;
  /** Is told when the table could not be deleted after something else had gone wrong, which is what is thrown. */
  readonly onLeftBehind: (message: string) => void;
}

/**
 * Creates the table, runs `use`, and deletes the table, whatever `use` came to.
 * @throws {BackendError} when the table could not be deleted: the message names it.
 */
export async function withOwnTable<Result>(
  options: OwnTableOptions,
  use: (tableName: string) => Promise<Result>,
): Promise<Result> {
  const tableName = `${options.prefix}-${randomUUID().slice(0, 8)}`;
  const creation = { wasSent: false };
  let result: Result;
  try {
    await createOwnTable(options, tableName, creation);
    result = await use(tableName);
  } catch (error) {
    if (creation.wasSent) {
      await deleteOwnTable(options, tableName).catch((leftover: unknown) => {
        options.onLeftBehind(messageOf(leftover));
      });
    }
    throw error;
  }
  await deleteOwnTable(options, tableName);
  return result;
}

async function createOwnTable(
  { client, clock }: OwnTableOptions,
  tableName: string,
  creation: { wasSent: boolean },
): Promise<void> {
  const trace: RequestTrace = ({ operation, failure }) => {
    if (operation !== 'CreateTable') return;
    // Where nobody was reached there is nothing to delete, and the attempt would only fail once more.
    void failure.then((fault) => {
      creation.wasSent = classifyFault(fault) !== 'unreachable';
    });
  };
  const store = createStore({ ...client, tableName, clock, trace });
  try {
    await store.bootstrap();
  } finally {
    store.close();
  }
}

/** A table that is still being created or changed can be deleted only a little later. */
const DELETE_DEADLINE_MS = 30_000;
const DELETE_PAUSE_MS = 1_000;
const PASSING: ReadonlySet<FaultClass> = new Set(['exists', 'ambiguous', 'throttled', 'unreachable']);

async function deleteOwnTable({ client, clock }: OwnTableOptions, tableName: string): Promise<void> {
  using closing = new DisposableStack();
  const documents = closing.adopt(createDocumentClient(client), (each) => {
    each.destroy();
  });
  const deadline = clock.monotonicMs() + DELETE_DEADLINE_MS;
  for (;;) {
    try {
      await documents.send(new DeleteTableCommand({ TableName: tableName }));
      return;
    } catch (error) {
      const fault = classifyFault(error);
      // Never created, or deleted by a try whose answer was lost.
      if (fault === 'notFound') return;
      if (!PASSING.has(fault) || clock.monotonicMs() >= deadline) throw notDeleted(tableName, error);
    }
    await sleep(clock, DELETE_PAUSE_MS);
  }
}

function notDeleted(tableName: string, cause: unknown): BackendError {
  const message = `table ${tableName} could not be deleted, delete it yourself: ${messageOf(cause)}`;
  return new BackendError(message, { reason: classifyFault(cause), retryable: true, cause });
}
