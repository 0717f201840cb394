/** One receive of a message, read once from what SQS sent. */
import { createHash } from 'node:crypto';
import type { Message as SqsMessage, MessageAttributeValue } from '@aws-sdk/client-sqs';

export interface Delivery {
  readonly messageId: string;
  readonly receiptHandle: string;
  readonly body: string;
  /** How often SQS delivered it, this time included. */
  readonly receiveCount: number;
  readonly sentAtMs: number | undefined;
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
    sentAtMs: message.Attributes?.SentTimestamp === undefined ? undefined : Number(message.Attributes.SentTimestamp),
    attributes: message.MessageAttributes ?? {},
  };
}
