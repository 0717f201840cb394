/** Several items as they were at one moment. */
import { TransactGetCommand } from '@aws-sdk/lib-dynamodb';
import { classifyFault } from '../../aws-fault.ts';
import { BackendError, ConfigurationError, type OptionFault } from '../../errors.ts';
import { toBackendError } from '../backend-error.ts';
import type { StoreContext } from '../context.ts';
import { repeated } from '../repeated.ts';
import { faultsOfKey } from '../storable.ts';
import { keyText, type Item, type ItemKey } from '../table.ts';
import { cancellationCodes, isPassing } from './transaction-failures.ts';

/** @see AWS: TransactGetItems */
const MAX_SNAPSHOT_KEYS = 100;

/** A transaction on one of the items is over in milliseconds; with full jitter these tries span about 3 s. */
const MAX_ATTEMPTS = 10;

/**
 * One TransactGetItems: all items as of one point in time, undefined where there is none. Reads one by one may see one
 * item before a transaction and the next one after it. Costs twice what consistent reads cost.
 * @param keys 1-100, each once; together at most 4 MB of items.
 * @throws {ConfigurationError} over a limit.
 * @throws {BackendError} with reason `conflict` when writes to the items outlasted every try.
 */
export async function readSnapshot(context: StoreContext, keys: readonly ItemKey[]): Promise<(Item | undefined)[]> {
  checkKeys(keys);
  const { client, tableName } = context.target;
  const gets = keys.map(({ PK, SK }) => ({ Get: { TableName: tableName, Key: { PK, SK } } }));
  return repeated(context, { mayApplyTwice: true, maxAttempts: MAX_ATTEMPTS }, async () => {
    const result = await client.send(new TransactGetCommand({ TransactItems: gets })).catch((error: unknown) => {
      throw faultOfSnapshot(error);
    });
    // By place: the answer holds an entry for each key, empty where there is no item.
    return keys.map((_, index) => result.Responses?.[index]?.Item);
  });
}

function checkKeys(keys: readonly ItemKey[]): void {
  const faults: OptionFault[] = [];
  if (keys.length === 0 || keys.length > MAX_SNAPSHOT_KEYS) {
    faults.push({ name: 'keys', rule: `from 1 to ${String(MAX_SNAPSHOT_KEYS)}`, value: keys.length });
  }
  const seen = new Set<string>();
  keys.forEach((key, index) => {
    const name = `keys[${String(index)}]`;
    faults.push(...faultsOfKey(key).map((fault) => ({ ...fault, name: `${name}.${fault.name}` })));
    if (seen.has(keyText(key))) faults.push({ name, rule: 'each key once', value: keyText(key) });
    seen.add(keyText(key));
  });
  if (faults.length > 0) throw new ConfigurationError('snapshot', faults);
}

/** A read that was cancelled because of writes to its items, or of throttling, may be repeated at once. */
function faultOfSnapshot(error: unknown): BackendError {
  const fault = toBackendError(error);
  if (classifyFault(error) !== 'transactionCancelled') return fault;
  const codes = cancellationCodes(error);
  if (codes.length === 0 || !codes.every(isPassing)) return fault;
  const reason = codes.includes('TransactionConflict') ? 'conflict' : 'throttled';
  return new BackendError(fault.message, { reason, retryable: true, cause: error });
}
