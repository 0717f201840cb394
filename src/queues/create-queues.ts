/** Creates a queue and its dead-letter queue. Safe to repeat and to run from many processes at once; never deletes. */
import {
  CreateQueueCommand,
  GetQueueAttributesCommand,
  GetQueueUrlCommand,
  type CreateQueueCommandInput,
  type SQSClient,
} from '@aws-sdk/client-sqs';
import { classifyFault, faultName } from '../aws-fault.ts';
import { BackendError, ConfigurationError } from '../errors.ts';
import { deadLetterQueueName, FIFO_SUFFIX, isFifo, QUEUE_DEFAULTS, type QueueSettings } from './topology.ts';

/** A queue by its name and its URL. */
export interface QueueAddress {
  readonly name: string;
  readonly url: string;
}

/** A queue and its dead-letter queue; `created` tells whether any of the two is new. */
export interface QueuePair {
  readonly queue: QueueAddress;
  readonly deadLetterQueue: QueueAddress;
  readonly created: boolean;
}

/**
 * Creates a queue and its dead-letter queue where they are missing. Safe to repeat; settings of queues that exist stay.
 * @throws {ConfigurationError} when the name does not fit the kind. @throws what the SDK throws.
 */
export async function createQueuePair(
  client: SQSClient,
  name: string,
  settings: QueueSettings = QUEUE_DEFAULTS,
): Promise<QueuePair> {
  checkName(name, settings);
  const kind = settings.isFifo === true ? { FifoQueue: 'true' } : {};
  const deadLetterQueue = await createIfMissing(client, {
    QueueName: deadLetterQueueName(name),
    Attributes: { ...kind, MessageRetentionPeriod: String(settings.retentionSeconds) },
  });
  const queue = await createIfMissing(client, {
    QueueName: name,
    Attributes: {
      ...kind,
      VisibilityTimeout: String(settings.visibilityTimeoutSeconds),
      MessageRetentionPeriod: String(settings.retentionSeconds),
      RedrivePolicy: JSON.stringify({
        deadLetterTargetArn: await arnOf(client, deadLetterQueue.url),
        maxReceiveCount: settings.maxReceiveCount,
      }),
    },
  });
  return { queue, deadLetterQueue, created: queue.created || deadLetterQueue.created };
}

function checkName(name: string, settings: QueueSettings): void {
  if (isFifo(name) === (settings.isFifo === true)) return;
  const rule = settings.isFifo === true ? `ends in ${FIFO_SUFFIX}` : `ends in ${FIFO_SUFFIX} only with isFifo`;
  throw new ConfigurationError('queue', [{ name: 'name', rule, value: name }]);
}

/** @throws {BackendError} with reason `notFound` when the queue does not exist. */
export async function findQueue(client: SQSClient, name: string): Promise<QueueAddress> {
  try {
    const { QueueUrl } = await client.send(new GetQueueUrlCommand({ QueueName: name }));
    return { name, url: QueueUrl ?? '' };
  } catch (error) {
    if (classifyFault(error) !== 'notFound') throw error;
    throw new BackendError(`there is no queue "${name}": run "onlyonce bootstrap" first`, {
      reason: 'notFound',
      retryable: false,
      cause: error,
    });
  }
}

async function createIfMissing(
  client: SQSClient,
  input: CreateQueueCommandInput & { QueueName: string },
): Promise<QueueAddress & { created: boolean }> {
  // Asked first: creating a queue that exists with other settings is an error, and its settings are not ours to change.
  const existing = await findQueue(client, input.QueueName).catch((error: unknown) => {
    if (error instanceof BackendError) return undefined;
    throw error;
  });
  if (existing !== undefined) return { ...existing, created: false };
  try {
    const { QueueUrl } = await client.send(new CreateQueueCommand(input));
    return { name: input.QueueName, url: QueueUrl ?? '', created: true };
  } catch (error) {
    if (faultName(error) !== 'QueueNameExists') throw error;
    return { ...(await findQueue(client, input.QueueName)), created: false };
  }
}

async function arnOf(client: SQSClient, url: string): Promise<string> {
  const command = new GetQueueAttributesCommand({ QueueUrl: url, AttributeNames: ['QueueArn'] });
  const { Attributes } = await client.send(command);
  return Attributes?.['QueueArn'] ?? '';
}
