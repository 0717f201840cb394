/**
 * Works on what is on a queue with the process's own log, until `deliveries` of them are settled. What it was given
 * comes as JSON in its first argument; the log goes to stderr, as always.
 */
import { createPollingClient, createQueueClient } from '../../src/queues/client.ts';
import { createStore } from '../../src/store/store.ts';
import { createLogger } from '../../src/telemetry/logger.ts';
import { createChargeHandler } from '../../src/workers/handlers/charge.ts';
import { createWorker } from '../../src/workers/worker.ts';
import { CountingProvider } from './worker-provider.ts';

export interface LogProcessInput {
  readonly sqsEndpoint: string;
  readonly dynamodbEndpoint: string;
  readonly queue: string;
  readonly queueUrl: string;
  readonly deadLetterQueueUrl: string;
  readonly deliveries: number;
}

const input = JSON.parse(process.argv[2] ?? '{}') as LogProcessInput;
const credentials = { region: 'us-east-1', credentials: { accessKeyId: 'test', secretAccessKey: 'test' } };
const store = createStore({ ...credentials, endpoint: input.dynamodbEndpoint });
const client = createQueueClient({ ...credentials, endpoint: input.sqsEndpoint });
const provider = new CountingProvider();
provider.declined.add('declined');
provider.beforeCharge = ({ request }) => {
  if (request.reference === 'failing') throw new Error('the provider is down');
};
let left = input.deliveries;

const worker = createWorker({
  queue: input.queue,
  queueUrl: input.queueUrl,
  deadLetterQueueUrl: input.deadLetterQueueUrl,
  client,
  pollingClient: createPollingClient({ ...credentials, endpoint: input.sqsEndpoint }),
  store,
  handlers: [createChargeHandler(provider)],
  maxAttempts: 1,
  concurrency: 1,
  waitTimeSeconds: 1,
  log: createLogger({ level: 'debug', name: 'worker-test' }),
  events: {
    onOutcome: () => {
      left -= 1;
      if (left === 0) void worker.stop({ deadlineMs: 0 }).then(() => process.exit());
    },
  },
});
await worker.start();
