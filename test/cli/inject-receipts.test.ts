import type {
  DeleteMessageCommandInput,
  DeleteMessageCommandOutput,
  ReceiveMessageCommandInput,
  ReceiveMessageCommandOutput,
} from '@aws-sdk/client-sqs';
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest';
import { FLOW_CONTRACTS } from '../../src/cli/flow-contracts.ts';
import { injectSameDelivery, injectStaleReceipt } from '../../src/cli/inject/deliveries.ts';
import type { Deed, InjectScope } from '../../src/cli/inject/scope.ts';
import { systemClock } from '../../src/clock.ts';
import { startLocalBackends, type LocalBackends } from '../../src/local/backends.ts';
import { createQueueClient, type QueueClient } from '../../src/queues/client.ts';
import { createQueuePair } from '../../src/queues/create-queues.ts';
import { readDepth, totalOf } from '../../src/queues/depth.ts';
import { sendMessage } from '../../src/queues/queue-messages.ts';
import { interceptCommand, serviceError } from '../support/worker-faults.ts';

const LOCAL = { region: 'us-east-1', credentials: { accessKeyId: 'test', secretAccessKey: 'test' } };

let backends: LocalBackends;
let opened = 0;

beforeAll(async () => {
  backends = await startLocalBackends();
});
afterAll(async () => {
  await backends.stop();
});

async function openScope(): Promise<{ scope: InjectScope; client: QueueClient; deeds: Deed[]; url: string }> {
  const client = createQueueClient({ ...LOCAL, endpoint: backends.sqsEndpoint });
  onTestFinished(() => {
    client.destroy();
  });
  opened += 1;
  const { queue } = await createQueuePair(client, `inject${String(opened)}`);
  const deeds: Deed[] = [];
  const scope: InjectScope = {
    client,
    queue,
    clock: systemClock,
    signal: new AbortController().signal,
    count: undefined,
    delaySeconds: 1,
    providerUrl: undefined,
    samples: (count) => FLOW_CONTRACTS.charges.samples(count, opened),
    tell: (deed) => deeds.push(deed),
  };
  return { scope, client, deeds, url: queue.url };
}

/** As LocalStack does, and perhaps AWS: any handle of a message deletes it. */
function deleteByAnyHandle(client: QueueClient): void {
  let newest = '';
  interceptCommand<ReceiveMessageCommandInput, ReceiveMessageCommandOutput>(
    client,
    'ReceiveMessageCommand',
    async (_input, send) => {
      const answer = await send();
      newest = answer.Messages?.[0]?.ReceiptHandle ?? newest;
      return answer;
    },
  );
  interceptCommand<DeleteMessageCommandInput, DeleteMessageCommandOutput>(
    client,
    'DeleteMessageCommand',
    (input, send) => send({ ...input, ReceiptHandle: newest }),
  );
}

test('a stale delete that takes the message away is made good: the message is sent again', async () => {
  const { scope, client, deeds, url } = await openScope();
  deleteByAnyHandle(client);

  await injectStaleReceipt(scope);

  expect(deeds.map(({ action }) => action)).toEqual(['sent', 'received', 'received', 'deleting', 'accepted', 'sent']);
  expect(deeds.at(-1)?.key).toBe(deeds[0]?.key);
  expect(deeds.at(-1)?.messageId).not.toBe(deeds[0]?.messageId);
  expect(totalOf(await readDepth(client, url))).toBe(1);
});

test('a stale delete that is refused is told, and the message is still there', async () => {
  const { scope, client, deeds, url } = await openScope();
  interceptCommand(client, 'DeleteMessageCommand', () => Promise.reject(serviceError('InvalidParameterValue', 400)));

  await injectStaleReceipt(scope);

  expect(deeds.at(-1)).toMatchObject({
    action: 'refused',
    detail: 'InvalidParameterValue; the message is still there',
  });
  expect(totalOf(await readDepth(client, url))).toBe(1);
});

test('a message that a worker received first is told, with what to do', async () => {
  const { scope, client, deeds } = await openScope();
  interceptCommand(client, 'ReceiveMessageCommand', () => Promise.resolve({ $metadata: {} }));

  await expect(injectSameDelivery(scope)).rejects.toThrow('stop the workers, or try again');

  expect(deeds.map(({ action }) => action)).toEqual(['sent', 'missed']);
});

test('what others have sent is given back at once', async () => {
  const { scope, client, url } = await openScope();
  for (const body of ['a', 'b', 'c']) await sendMessage(client, url, { body });

  await injectSameDelivery(scope);

  expect(await readDepth(client, url)).toEqual({ visible: 4, inFlight: 0, delayed: 0 });
});
