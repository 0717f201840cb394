import {
  createPollingClient,
  createQueueClient,
  createQueuePair,
  createStore,
  createWorker,
  plus,
  type Handler,
} from '../src/index.ts';
import { POINTS_EARNED, type PointsEarned } from './contract.ts';

const store = createStore();
const client = createQueueClient();
await store.bootstrap();
const { queue, deadLetterQueue } = await createQueuePair(client, 'points');

const addPoints: Handler<PointsEarned> = {
  contract: POINTS_EARNED,
  handle: async ({ payload: { memberId, points } }) => {
    const key = { PK: `MEMBER#${memberId}`, SK: 'POINTS' };
    const change = { set: { balance: plus(points, 0) } };
    // Committed in one transaction with the effect record: both or neither.
    return { kind: 'completed', response: { points }, effects: [{ kind: 'update', label: 'points', key, change }] };
  },
};

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
process.once('SIGTERM', () => void worker.stop());
