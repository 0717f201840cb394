/** One receive of a message, read once from what SQS sent. */
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
