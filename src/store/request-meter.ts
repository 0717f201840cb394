/** Counts what the store costs: requests by operation and capacity units, as DynamoDB reports them. */
import type { DynamoDBClient } from '@aws-sdk/client-dynamodb';

/** Running totals; read them before and after what is to be measured. */
export interface RequestMeter {
  /** Requests that were sent, by operation, each try of the SDK counted. */
  readonly requests: Map<string, number>;
  /** Capacity units as DynamoDB charged them. */
  capacityUnits: number;
}

/** A meter that starts at 0, for `createStore({ meter })`. One meter may serve several stores. */
export function createRequestMeter(): RequestMeter {
  return { requests: new Map(), capacityUnits: 0 };
}

/** The operations that can be asked for the capacity they consumed. */
const METERED = /^(Get|Put|Update|Delete)ItemCommand$|^Transact|^Batch|^QueryCommand$|^ScanCommand$/;

export function attachMeter(client: DynamoDBClient, meter: RequestMeter): void {
  client.middlewareStack.add(
    (next, context) => async (args) => {
      const asked = METERED.test(context.commandName ?? '')
        ? { ...args, input: { ReturnConsumedCapacity: 'TOTAL', ...args.input } }
        : args;
      const result = await next(asked);
      meter.capacityUnits += capacityOf(result.output);
      return result;
    },
    { step: 'initialize', name: 'onlyonceCapacity' },
  );
  client.middlewareStack.add(
    (next, context) => (args) => {
      const operation = (context.commandName ?? 'Unknown').replace(/Command$/, '');
      meter.requests.set(operation, (meter.requests.get(operation) ?? 0) + 1);
      return next(args);
    },
    // The last step before the wire, so that each retry of the SDK is counted.
    { step: 'finalizeRequest', priority: 'low', name: 'onlyonceRequests' },
  );
}

function capacityOf(output: object): number {
  if (!('ConsumedCapacity' in output)) return 0;
  const consumed: unknown = output.ConsumedCapacity;
  const entries: unknown[] = Array.isArray(consumed) ? consumed : [consumed];
  return entries.reduce<number>((sum, entry) => sum + unitsOf(entry), 0);
}

function unitsOf(entry: unknown): number {
  if (typeof entry !== 'object' || entry === null || !('CapacityUnits' in entry)) return 0;
  return typeof entry.CapacityUnits === 'number' ? entry.CapacityUnits : 0;
}
