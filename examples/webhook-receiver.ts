import {
  createPollingClient,
  createProducer,
  createQueueClient,
  createQueuePair,
  createStore,
  createWorker,
} from '../src/index.ts';
import { addPoints, createWebhookServer } from './webhook-server.ts';

const secret = process.env['WEBHOOK_SECRET'] ?? '';
if (secret === '') throw new Error('set WEBHOOK_SECRET to what the sender signs with');

const store = createStore();
const client = createQueueClient();
await store.bootstrap();
const { queue, deadLetterQueue } = await createQueuePair(client, 'webhooks');

const worker = createWorker({
  queue: queue.name,
  queueUrl: queue.url,
  deadLetterQueueUrl: deadLetterQueue.url,
  client,
  pollingClient: createPollingClient(),
  store,
  handlers: [addPoints],
  events: { onOutcome: ({ key, outcome }) => console.log(key, outcome.kind) },
});
await worker.start();

const server = createWebhookServer(createProducer({ client, queueUrl: queue.url }), secret);
const port = Number(process.env['PORT'] ?? 8080);
// Reached from this machine only: what ends TLS stands in front of it.
server.listen(port, '127.0.0.1', () => {
  console.log('listening on', server.address());
});

process.once('SIGTERM', () => {
  server.close();
  void worker.stop();
});
