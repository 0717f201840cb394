/** What only the queue itself can tell: whether its settings and the worker's fit together. Asked once, at the start. */
import { GetQueueAttributesCommand, type SQSClient } from '@aws-sdk/client-sqs';
import { z } from 'zod';
import type { OptionFault } from '../errors.ts';
import { retentionFaults } from '../store/effects/retention.ts';
import type { ResolvedWorkerOptions } from './options.ts';

/** The settings of a queue that matter here. */
export interface QueueFacts {
  /** Unit: s. */
  readonly retentionSeconds: number | undefined;
  /** Undefined when the queue has no redrive policy. */
  readonly maxReceiveCount: number | undefined;
}

const redriveSchema: z.ZodType<{ maxReceiveCount: number }> = z.object({ maxReceiveCount: z.coerce.number() });

export async function readQueueFacts(client: SQSClient, queueUrl: string): Promise<QueueFacts> {
  const command = new GetQueueAttributesCommand({
    QueueUrl: queueUrl,
    AttributeNames: ['MessageRetentionPeriod', 'RedrivePolicy'],
  });
  const { Attributes = {} } = await client.send(command);
  const { MessageRetentionPeriod: retention, RedrivePolicy: redrive } = Attributes;
  return {
    retentionSeconds: Number.isFinite(Number(retention)) ? Number(retention) : undefined,
    maxReceiveCount: redrive === undefined ? undefined : maxReceiveCountOf(redrive),
  };
}

function maxReceiveCountOf(redrivePolicy: string): number | undefined {
  try {
    return redriveSchema.safeParse(JSON.parse(redrivePolicy)).data?.maxReceiveCount;
  } catch {
    return undefined;
  }
}

/** The longest that SQS keeps a message on the dead-letter queue. @see AWS: Amazon SQS quotas */
const MAX_DEAD_LETTER_SECONDS = 1_209_600;

/**
 * - Our own count of attempts must speak before the queue's: what SQS moves by itself has no reason attached.
 * - A record must be there for as long as its message can come back: its time on the queue, then on the dead-letter queue.
 */
export function findQueueRuleFaults(options: ResolvedWorkerOptions, facts: QueueFacts): OptionFault[] {
  const faults: OptionFault[] = [];
  const { maxReceiveCount, retentionSeconds } = facts;
  if (maxReceiveCount !== undefined && options.maxAttempts >= maxReceiveCount) {
    const rule = `below the queue's maxReceiveCount (${String(maxReceiveCount)})`;
    faults.push({ name: 'maxAttempts', rule, value: options.maxAttempts });
  }
  if (retentionSeconds !== undefined) {
    const times = { queueRetentionSeconds: retentionSeconds, deadLetterRetentionSeconds: MAX_DEAD_LETTER_SECONDS };
    const ofStore = retentionFaults(options.store.recordRetentionDays, times);
    faults.push(...ofStore.map((fault) => ({ ...fault, name: `store.${fault.name}` })));
  }
  return faults;
}
