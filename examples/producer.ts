import { createProducer, createQueueClient, findQueue } from '../src/index.ts';
import { POINTS_EARNED } from './contract.ts';

const client = createQueueClient();
const { url } = await findQueue(client, 'points');
const producer = createProducer({ client, queueUrl: url });

// Nothing throws for one bad entry: each has its own result, `sent`, `failed` or `invalid`.
const results = await producer.sendBatch([
  { contract: POINTS_EARNED, payload: { purchaseId: 'p-1001', memberId: 'm-7', points: 30 } },
  { contract: POINTS_EARNED, payload: { purchaseId: 'p-1002', memberId: 'm-7', points: 12 } },
  // The same purchase again: sent like the others, and applied once.
  { contract: POINTS_EARNED, payload: { purchaseId: 'p-1001', memberId: 'm-7', points: 30 } },
]);
for (const result of results) console.log(result.kind);
client.destroy();
