/** Faults that a test asks for: each is for the next requests of one operation. */
import { ConfigurationError } from '../../errors.ts';
import { ServiceError } from './service-error.ts';
import { cancelled } from './transactions.ts';

const OPERATIONS = [
  'GetItem',
  'PutItem',
  'UpdateItem',
  'DeleteItem',
  'BatchGetItem',
  'Query',
  'Scan',
  'TransactGetItems',
  'TransactWriteItems',
  'CreateTable',
  'DescribeTable',
  'DescribeTimeToLive',
  'UpdateTimeToLive',
] as const;

/** The operations that the in-memory DynamoDB knows, by the names that AWS gives them. It refuses all others. */
export type MemoryOperation = (typeof OPERATIONS)[number];

/** What is to go wrong with a request, and whether it is applied all the same. */
export type MemoryFault =
  /** Refused for too many requests; not applied. */
  | 'throttle'
  /** Refused because a transaction is under way on the item; not applied. A read of a single item never conflicts. */
  | 'conflict'
  /** Refused with a 500; not applied, which the caller cannot know. */
  | 'internal error'
  /** The connection breaks before the request arrives; not applied. */
  | 'lose the request'
  /** Applied; then the connection breaks. */
  | 'lose the answer';

const MAX_TIMES = 1_000;

export class PlannedFaults {
  readonly #planned = new Map<MemoryOperation, MemoryFault[]>();

  plan(operation: MemoryOperation, fault: MemoryFault, times: number): void {
    if (!Number.isInteger(times) || times < 1 || times > MAX_TIMES) {
      const rule = `a whole number from 1 to ${String(MAX_TIMES)}`;
      throw new ConfigurationError('fault of the memory backend', [{ name: 'times', rule, value: times }]);
    }
    const planned = this.#planned.get(operation) ?? [];
    planned.push(...Array.from({ length: times }, () => fault));
    this.#planned.set(operation, planned);
  }

  /** The fault that is due for this request. */
  take(operation: string): MemoryFault | undefined {
    const known = OPERATIONS.find((each) => each === operation);
    return known === undefined ? undefined : this.#planned.get(known)?.shift();
  }

  clear(): void {
    this.#planned.clear();
  }
}

/** How DynamoDB refuses a request that it does not apply. @param actions of a transaction, 0 for other requests. */
export function refusalOf(fault: 'throttle' | 'conflict' | 'internal error', actions: number): ServiceError {
  switch (fault) {
    case 'internal error':
      return new ServiceError('InternalServerError', 'Internal server error', { status: 500 });
    case 'throttle':
      return new ServiceError('ProvisionedThroughputExceededException', 'The level of throughput was exceeded');
    case 'conflict': {
      const Message = 'Transaction is ongoing for the item';
      const reasons = Array.from({ length: actions }, () => ({ Code: 'TransactionConflict', Message }));
      return reasons.length > 0 ? cancelled(reasons) : new ServiceError('TransactionConflictException', Message);
    }
  }
}

/** What Node's HTTP client and the SDK's handler make of a connection that broke. */
export function brokenConnection(): Error {
  return Object.assign(new Error('the in-memory DynamoDB broke the connection'), {
    name: 'TimeoutError',
    code: 'ECONNRESET',
  });
}
