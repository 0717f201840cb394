/** Single messages on a queue as commands handle them: receive, send, delete, hide. Workers and producers have their own. */
import { createHash } from 'node:crypto';
import {
  ChangeMessageVisibilityBatchCommand,
  ChangeMessageVisibilityCommand,
  DeleteMessageCommand,
  ReceiveMessageCommand,
  SendMessageCommand,
  type Message as SqsMessage,
  type MessageAttributeValue,
  type SQSClient,
} from '@aws-sdk/client-sqs';
import { BackendError } from '../errors.ts';
import { MAX_BATCH_ENTRIES } from '../messages/limits.ts';

export interface ReceiveSettings {
  /** Range: 1-10. @defaultValue 10 */
  readonly max?: number;
  /** How long what is received stays hidden from others. Unit: s. Range: 0-43200. */
  readonly hideSeconds: number;
}

/** Long enough that SQS asks all of its servers; a short poll may miss messages. Unit: s. */
const WAIT_SECONDS = 1;

export async function receiveMessages(
  client: SQSClient,
  url: string,
  settings: ReceiveSettings,
): Promise<SqsMessage[]> {
  const { Messages } = await client.send(
    new ReceiveMessageCommand({
      QueueUrl: url,
      MaxNumberOfMessages: Math.min(MAX_BATCH_ENTRIES, settings.max ?? MAX_BATCH_ENTRIES),
      VisibilityTimeout: settings.hideSeconds,
      WaitTimeSeconds: WAIT_SECONDS,
      MessageAttributeNames: ['All'],
      MessageSystemAttributeNames: ['ApproximateReceiveCount', 'SentTimestamp', 'MessageGroupId', 'AWSTraceHeader'],
    }),
  );
  return Messages ?? [];
}

export interface Outgoing {
  readonly body: string;
  readonly attributes?: Readonly<Record<string, MessageAttributeValue>>;
  /** Unit: s. Range: 0-900. @defaultValue the queue's own delay */
  readonly delaySeconds?: number;
  /** The X-Ray header of the first sender. */
  readonly traceHeader?: string | undefined;
  /** FIFO queues only. */
  readonly groupId?: string | undefined;
  /** FIFO queues only. */
  readonly deduplicationId?: string | undefined;
}

/**
 * @returns the id of the message.
 * @throws {BackendError} with reason `ambiguous` when SQS says that it stored another body than it was sent.
 */
export async function sendMessage(client: SQSClient, url: string, outgoing: Outgoing): Promise<string> {
  const { body, attributes, delaySeconds, traceHeader, groupId, deduplicationId } = outgoing;
  const { MessageId = '', MD5OfMessageBody } = await client.send(
    new SendMessageCommand({
      QueueUrl: url,
      MessageBody: body,
      ...(attributes !== undefined && { MessageAttributes: { ...attributes } }),
      ...(delaySeconds !== undefined && { DelaySeconds: delaySeconds }),
      ...(traceHeader !== undefined && {
        MessageSystemAttributes: { AWSTraceHeader: { DataType: 'String', StringValue: traceHeader } },
      }),
      ...(groupId !== undefined && { MessageGroupId: groupId }),
      ...(deduplicationId !== undefined && { MessageDeduplicationId: deduplicationId }),
    }),
  );
  if (MD5OfMessageBody !== undefined && MD5OfMessageBody !== md5(body)) {
    const text = `message ${MessageId} was damaged on its way to the queue`;
    throw new BackendError(text, { reason: 'ambiguous', retryable: true });
  }
  return MessageId;
}

/** False when the body is not what SQS sent: the SDK's own check is off, since it throws away whole batches. */
export function isUndamaged({ Body = '', MD5OfBody }: SqsMessage): boolean {
  return MD5OfBody === undefined || MD5OfBody === md5(Body);
}

export async function deleteMessage(client: SQSClient, url: string, receiptHandle: string): Promise<void> {
  await client.send(new DeleteMessageCommand({ QueueUrl: url, ReceiptHandle: receiptHandle }));
}

export async function hideMessage(
  client: SQSClient,
  url: string,
  { receiptHandle, seconds }: { readonly receiptHandle: string; readonly seconds: number },
): Promise<void> {
  await client.send(
    new ChangeMessageVisibilityCommand({ QueueUrl: url, ReceiptHandle: receiptHandle, VisibilityTimeout: seconds }),
  );
}

/**
 * Hides each of them for so long from now on; 0 shows them at once. A message that is gone, or that another has received
 * meanwhile, is left alone.
 * @returns the handles that SQS did not take.
 */
export async function hideMessages(
  client: SQSClient,
  url: string,
  { receiptHandles, seconds }: { readonly receiptHandles: readonly string[]; readonly seconds: number },
): Promise<string[]> {
  const refused: string[] = [];
  for (let start = 0; start < receiptHandles.length; start += MAX_BATCH_ENTRIES) {
    const handles = receiptHandles.slice(start, start + MAX_BATCH_ENTRIES);
    const Entries = handles.map((ReceiptHandle, index) => ({
      Id: String(index),
      ReceiptHandle,
      VisibilityTimeout: seconds,
    }));
    const { Failed = [] } = await client.send(new ChangeMessageVisibilityBatchCommand({ QueueUrl: url, Entries }));
    refused.push(...Failed.flatMap(({ Id }) => handles[Number(Id)] ?? []));
  }
  return refused;
}

function md5(text: string): string {
  return createHash('md5').update(text).digest('hex');
}
