/** What a command works with: store and queues, on the endpoints it was given or on local backends of its own. */
import { startLocalBackends, type LocalBackends } from '../local/backends.ts';
import { createPollingClient, createQueueClient, type QueueClient, type QueueClientOptions } from '../queues/client.ts';
import { createQueuePair, findQueue, type QueueAddress } from '../queues/create-queues.ts';
import { deadLetterQueueName, QUEUE_DEFAULTS, queueName, type Flow, type QueueSettings } from '../queues/topology.ts';
import type { StoreClientOptions } from '../store/client.ts';
import { createStore, type Store } from '../store/store.ts';
import type { TableReport } from '../store/create-table.ts';
import { givenDynamodb, givenEndpoints, isLocal, type Endpoints } from './endpoints.ts';
import type { ConnectionFlags } from './options.ts';
import type { Output } from './output.ts';

export interface FlowQueues {
  readonly queue: QueueAddress;
  readonly deadLetterQueue: QueueAddress;
}

export interface Connection {
  readonly endpoints: Endpoints;
  readonly store: Store;
  readonly queues: QueueClient;
  /** One more client for long polls alone. */
  pollingClient(): QueueClient;
  bootstrap(flow: Flow, settings?: QueueSettings): Promise<FlowQueues & { table: TableReport; created: boolean }>;
  /** @throws {BackendError} with reason `notFound` when a queue does not exist. */
  find(flow: Flow): Promise<FlowQueues>;
  close(): Promise<void>;
}

const LOCAL_NOTE = 'no endpoint given: local backends for this command alone ("onlyonce up" keeps some running)';

/** Opens what the flags name. Without endpoints, local backends are started, and everything they hold ends with them. */
export async function connect(flags: ConnectionFlags, output: Output): Promise<Connection> {
  const given = givenEndpoints(flags);
  if (given !== undefined) return openConnection(given, flags);
  output.note(LOCAL_NOTE);
  const backends = await startLocalBackends();
  let connection: Connection | undefined;
  const close = async (): Promise<void> => {
    await connection?.close();
    await backends.stop();
  };
  try {
    connection = openConnection(endpointsOf(backends), flags);
    // Nothing is there yet, and nobody else can create it.
    await connection.bootstrap('charges');
    return { ...connection, close };
  } catch (error) {
    // Left running, they would keep this process.
    await close();
    throw error;
  }
}

/** DynamoDB alone. */
export interface DynamodbConnection extends AsyncDisposable {
  readonly client: StoreClientOptions;
}

/** Without an endpoint, local backends are started; they end when this is disposed of. */
export async function connectDynamodb(
  flags: ConnectionFlags,
  output: Output,
  signal: AbortSignal,
): Promise<DynamodbConnection> {
  const given = givenDynamodb(flags);
  const clientOf = (endpoint: string): StoreClientOptions => ({ endpoint, ...regionAndCredentials(endpoint, flags) });
  if (given !== undefined) return { client: clientOf(given), [Symbol.asyncDispose]: () => Promise.resolve() };
  output.note(LOCAL_NOTE);
  const backends = await startLocalBackends({ signal });
  return { client: clientOf(backends.dynamodbEndpoint), [Symbol.asyncDispose]: () => backends.stop() };
}

export function endpointsOf(backends: LocalBackends): Endpoints {
  return { sqs: backends.sqsEndpoint, dynamodb: backends.dynamodbEndpoint };
}

export function openConnection(endpoints: Endpoints, flags: ConnectionFlags): Connection {
  const client = (endpoint: string): QueueClientOptions => ({ endpoint, ...regionAndCredentials(endpoint, flags) });
  const store = createStore({ ...client(endpoints.dynamodb), tableName: flags.table });
  const queues = createQueueClient(client(endpoints.sqs));
  const polling: QueueClient[] = [];

  return {
    endpoints,
    store,
    queues,
    pollingClient() {
      const pollingClient = createPollingClient(client(endpoints.sqs));
      polling.push(pollingClient);
      return pollingClient;
    },
    async bootstrap(flow, settings = QUEUE_DEFAULTS) {
      const [table, pair] = await Promise.all([
        store.bootstrap(),
        createQueuePair(queues, queueName(flow, flags.prefix), settings),
      ]);
      return { ...pair, table };
    },
    async find(flow) {
      const name = queueName(flow, flags.prefix);
      const [queue, deadLetterQueue] = await Promise.all([
        findQueue(queues, name),
        findQueue(queues, deadLetterQueueName(name)),
      ]);
      return { queue, deadLetterQueue };
    },
    close() {
      store.close();
      for (const each of [queues, ...polling]) each.destroy();
      return Promise.resolve();
    },
  };
}

/** Emulators take any credentials but want some; for AWS the SDK finds them as every AWS tool does. */
function regionAndCredentials(
  endpoint: string,
  flags: ConnectionFlags,
): Pick<QueueClientOptions, 'region' | 'credentials'> {
  const region = flags.region ?? (isLocal(endpoint) ? 'us-east-1' : undefined);
  const needsDummy = isLocal(endpoint) && process.env['AWS_ACCESS_KEY_ID'] === undefined;
  return {
    ...(region !== undefined && { region }),
    ...(needsDummy && { credentials: { accessKeyId: 'local', secretAccessKey: 'local' } }),
  };
}
