import {
  CreateQueueCommand,
  DeleteMessageBatchCommand,
  ReceiveMessageCommand,
  type Message,
  type SQSClient,
} from '@aws-sdk/client-sqs';
import { loadCompanion } from '../../src/local/companion.ts';
import { startQueueFront } from '../../src/local/queue-front.ts';
import { createQueueClient } from '../../src/queues/client.ts';

/** An SQS of this process, on a free port of the loopback address. */
export interface LocalSqs extends AsyncDisposable {
  readonly endpoint: string;
  /** A client of its own: middleware added to it is seen by nobody else. Ended with the server. */
  client(): SQSClient;
  /** A queue that no other test uses. */
  createQueue(): Promise<string>;
  /** Receives and deletes whatever is visible now. */
  drain(queueUrl: string): Promise<readonly Message[]>;
}

export async function startLocalSqs(): Promise<LocalSqs> {
  const companion = await loadCompanion();
  const front = await startQueueFront({ app: await companion.buildQueueApp() });
  const endpoint = `http://127.0.0.1:${String(front.port)}`;
  const clients: SQSClient[] = [];
  let queues = 0;

  function client(): SQSClient {
    const made = localQueueClient(endpoint);
    clients.push(made);
    return made;
  }
  const own = client();

  async function createQueue(): Promise<string> {
    queues += 1;
    const { QueueUrl } = await own.send(new CreateQueueCommand({ QueueName: `queue-${String(queues)}` }));
    return QueueUrl ?? '';
  }

  async function drain(queueUrl: string): Promise<readonly Message[]> {
    const drained: Message[] = [];
    for (;;) {
      const { Messages: messages = [] } = await own.send(
        new ReceiveMessageCommand({ QueueUrl: queueUrl, MaxNumberOfMessages: 10, MessageAttributeNames: ['All'] }),
      );
      if (messages.length === 0) return drained;
      drained.push(...messages);
      const entries = messages.map(({ ReceiptHandle }, index) => ({ Id: String(index), ReceiptHandle }));
      await own.send(new DeleteMessageBatchCommand({ QueueUrl: queueUrl, Entries: entries }));
    }
  }

  return {
    endpoint,
    client,
    createQueue,
    drain,
    async [Symbol.asyncDispose]() {
      for (const made of clients) made.destroy();
      await front.close();
    },
  };
}

/** A client for any endpoint of this machine. */
export function localQueueClient(endpoint: string): SQSClient {
  const credentials = { accessKeyId: 'local', secretAccessKey: 'local' };
  return createQueueClient({ endpoint, region: 'us-east-1', credentials });
}
