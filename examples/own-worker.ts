import { z } from 'zod';
import {
  createPollingClient,
  createProducer,
  createQueueClient,
  createQueuePair,
  createStore,
  createWorker,
  defineMessage,
  plus,
  type Handler,
  type StandardSchema,
} from '../src/index.ts';

const orderPlaced = defineMessage({
  type: 'order.placed',
  version: 2,
  schema: z.object({ orderId: z.string(), cents: z.int() }),
  keyOf: (order) => order.orderId,
  upcasters: [{ fromVersion: 1, up: (old) => ({ ...(old as object), cents: 0 }) }],
});

interface Visit {
  readonly visitId: string;
}

/** Any library that follows Standard Schema will do, or none. */
const visit: StandardSchema<Visit> = {
  '~standard': {
    version: 1,
    vendor: 'by hand',
    validate(value) {
      const isVisit = typeof value === 'object' && value !== null && 'visitId' in value;
      if (isVisit && typeof value.visitId === 'string') return { value: { visitId: value.visitId } };
      return { issues: [{ message: 'must be a string', path: ['visitId'] }] };
    },
  },
};
const visitMade = defineMessage({ type: 'visit.made', version: 1, schema: visit, keyOf: ({ visitId }) => visitId });

/** Stands for a system that answers a repeated key with its first answer. */
const booked = new Set<string>();

const takeOrder: Handler<{ orderId: string; cents: number }> = {
  contract: orderPlaced,
  async handle({ payload }, context) {
    const { reference } = await context.step(
      'book',
      ({ idempotencyKey }) => {
        booked.add(idempotencyKey);
        return Promise.resolve({ reference: idempotencyKey });
      },
      { idempotentForMs: 86_400_000 },
    );
    const change = { set: { cents: plus(payload.cents, 0) } };
    const key = { PK: 'TOTAL', SK: 'ORDERS' };
    return { kind: 'completed', response: { reference }, effects: [{ kind: 'update', label: 'total', key, change }] };
  },
};

const countVisit: Handler<Visit> = {
  contract: visitMade,
  commit: 'direct',
  handle(_message, { transaction }) {
    const change = { set: { visits: plus(1, 0) } };
    transaction.add({ kind: 'update', label: 'visits', key: { PK: 'TOTAL', SK: 'VISITS' }, change });
    return Promise.resolve({ kind: 'completed' });
  },
};

const store = createStore();
const client = createQueueClient();
const pollingClient = createPollingClient();
await store.bootstrap();
const { queue, deadLetterQueue } = await createQueuePair(client, 'own');
const producer = createProducer({ client, queueUrl: queue.url });

const outcomes: Record<string, string[]> = {};
const settled = Promise.withResolvers<void>();
let left = 6;
const worker = createWorker({
  queue: queue.name,
  queueUrl: queue.url,
  deadLetterQueueUrl: deadLetterQueue.url,
  client,
  pollingClient,
  store,
  handlers: [takeOrder, countVisit],
  // One at a time: a duplicate that meets its first at work would wait for longer than this program is to run.
  concurrency: 1,
  waitTimeSeconds: 1,
});
worker.on('outcome', ({ key = 'none', outcome }) => {
  (outcomes[key] ??= []).push(outcome.kind);
  left -= 1;
  if (left === 0) settled.resolve();
});
await worker.start();

for (let copy = 0; copy < 3; copy += 1) {
  await producer.send(orderPlaced, { orderId: 'order-1', cents: 30 });
  await producer.send(visitMade, { visitId: 'visit-1' });
}
await settled.promise;
await worker.stop();
const total = (await store.get({ PK: 'TOTAL', SK: 'ORDERS' }))?.['cents'];
const visits = (await store.get({ PK: 'TOTAL', SK: 'VISITS' }))?.['visits'];
console.log(JSON.stringify({ outcomes, booked: booked.size, total, visits }));
client.destroy();
pollingClient.destroy();
store.close();
