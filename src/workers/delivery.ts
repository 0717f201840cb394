/** One receive of a message, read once from what SQS sent. */
import { createHash } from 'node:crypto';
import type { Message as SqsMessage, MessageAttributeValue } from '@aws-sdk/client-sqs';

/** One receive of a message, as SQS gave it out. */
export interface Delivery {
  readonly messageId: string;
  readonly receiptHandle: string;
  readonly body: string;
  /** How often SQS delivered it, this time included. */
  readonly receiveCount: number;
  readonly sentAtMs: number | undefined;
  /** When any worker received it for the first time; SQS may forget it when the message moves between queues. */
  readonly firstReceivedAtMs?: number | undefined;
  /** The X-Ray header of the sender. */
  readonly traceHeader?: string | undefined;
  /** Only on FIFO queues does it say anything about order. */
  readonly groupId?: string | undefined;
  readonly attributes: Readonly<Record<string, MessageAttributeValue>>;
}

/**
 * False when the body is not what SQS sent. The SDK's own check would throw away the whole batch for one such message,
 * so it is off, and each message is looked at here. @see AWS: ReceiveMessage, MD5OfBody
 */
export function isIntact(message: SqsMessage): boolean {
  const { MD5OfBody, Body = '' } = message;
  return MD5OfBody === undefined || createHash('md5').update(Body).digest('hex') === MD5OfBody;
}

export function toDelivery(message: SqsMessage): Delivery {
  return {
    messageId: message.MessageId ?? '',
    receiptHandle: message.ReceiptHandle ?? '',
    body: message.Body ?? '',
    receiveCount: Number(message.Attributes?.ApproximateReceiveCount ?? 1),
    sentAtMs: epochMs(message.Attributes?.SentTimestamp),
    firstReceivedAtMs: epochMs(message.Attributes?.ApproximateFirstReceiveTimestamp),
    traceHeader: message.Attributes?.AWSTraceHeader,
    groupId: message.Attributes?.MessageGroupId,
    attributes: message.MessageAttributes ?? {},
  };
}

function epochMs(text: string | undefined): number | undefined {
  const ms = Number(text);
  return Number.isFinite(ms) ? ms : undefined;
}
