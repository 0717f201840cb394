/** Reads what is on a dead-letter queue and sends it back. Portable: receive, send, delete, on every backend. */
import {
  ChangeMessageVisibilityBatchCommand,
  DeleteMessageCommand,
  ReceiveMessageCommand,
  SendMessageCommand,
  type Message as SqsMessage,
  type SQSClient,
} from '@aws-sdk/client-sqs';
import { MAX_BATCH_ENTRIES } from '../messages/limits.ts';
import { NOTICE_ATTRIBUTE, parseNotice, type DeadLetterNotice } from './dead-letter-notice.ts';

export interface DeadLetter {
  /** Of the copy on the dead-letter queue. */
  readonly messageId: string;
  readonly body: string;
  /** Undefined when the queue's own redrive policy moved it, or when the copy had no room: the store may know then. */
  readonly notice: DeadLetterNotice | undefined;
}

export interface ReadOptions {
  /** The most that are read. Range: 1-10000. */
  readonly limit: number;
}

/** How long what is being looked at stays hidden, should this process end before it is shown again. Unit: s. */
const LOOK_SECONDS = 60;

/** Looks without taking: what was received is made visible again at the end. */
export async function readDeadLetters(client: SQSClient, url: string, options: ReadOptions): Promise<DeadLetter[]> {
  const looked: SqsMessage[] = [];
  const letters = new Map<string, DeadLetter>();
  try {
    while (letters.size < options.limit) {
      const messages = await receive(client, url, options.limit - letters.size);
      looked.push(...messages);
      // Nothing new: the queue is empty, or what was looked at first is visible again already.
      if (messages.every((message) => letters.has(message.MessageId ?? ''))) break;
      for (const message of messages) letters.set(message.MessageId ?? '', toDeadLetter(message));
    }
  } finally {
    await showAgain(client, url, looked);
  }
  return [...letters.values()];
}

export interface RedriveOptions {
  /** The most that are moved. */
  readonly limit: number;
  /** Moves only those that it accepts. */
  readonly accepts: (letter: DeadLetter) => boolean;
  readonly onMoved: (letter: DeadLetter) => void;
}

/**
 * Sends dead letters back to their queue: sent first, deleted then. Ended in between, a message is there twice, and the
 * effect record makes one of the two a replay.
 * @returns how many were moved.
 */
export async function redrive(
  client: SQSClient,
  urls: { readonly from: string; readonly to: string },
  options: RedriveOptions,
): Promise<number> {
  const passed: SqsMessage[] = [];
  const seen = new Set<string | undefined>();
  // A worker that runs meanwhile may dead-letter again what was just moved: that is left for people to look at.
  const sentBack = new Set<string | undefined>();
  const isWanted = (letter: DeadLetter): boolean =>
    options.accepts(letter) && !sentBack.has(letter.notice?.messageId) && !sentBack.has(letter.messageId);
  let moved = 0;
  try {
    while (moved < options.limit) {
      const messages = await receive(client, urls.from, options.limit - moved);
      const wanted = messages.filter((message) => isWanted(toDeadLetter(message)));
      const unwanted = messages.filter((message) => !wanted.includes(message));
      const isNew = unwanted.some((message) => !seen.has(message.MessageId));
      if (wanted.length === 0 && !isNew) break;
      for (const message of unwanted) seen.add(message.MessageId);
      passed.push(...unwanted);
      for (const message of wanted) {
        sentBack.add(await move(client, urls, message));
        moved += 1;
        options.onMoved(toDeadLetter(message));
      }
    }
  } finally {
    await showAgain(client, urls.from, passed);
  }
  return moved;
}

/** @returns the id of the message on its queue. */
async function move(client: SQSClient, urls: { from: string; to: string }, message: SqsMessage): Promise<string> {
  // The notice belongs to the copy; what comes back to the queue is the original.
  const { [NOTICE_ATTRIBUTE]: _notice, ...attributes } = message.MessageAttributes ?? {};
  const { MessageId } = await client.send(
    new SendMessageCommand({ QueueUrl: urls.to, MessageBody: message.Body ?? '', MessageAttributes: attributes }),
  );
  await client.send(new DeleteMessageCommand({ QueueUrl: urls.from, ReceiptHandle: message.ReceiptHandle ?? '' }));
  return MessageId ?? '';
}

async function receive(client: SQSClient, url: string, wanted: number): Promise<SqsMessage[]> {
  const { Messages } = await client.send(
    new ReceiveMessageCommand({
      QueueUrl: url,
      MaxNumberOfMessages: Math.min(MAX_BATCH_ENTRIES, wanted),
      VisibilityTimeout: LOOK_SECONDS,
      WaitTimeSeconds: 1,
      MessageAttributeNames: ['All'],
    }),
  );
  return Messages ?? [];
}

async function showAgain(client: SQSClient, url: string, messages: readonly SqsMessage[]): Promise<void> {
  for (let start = 0; start < messages.length; start += MAX_BATCH_ENTRIES) {
    const Entries = messages.slice(start, start + MAX_BATCH_ENTRIES).map((message, index) => ({
      Id: String(index),
      ReceiptHandle: message.ReceiptHandle ?? '',
      VisibilityTimeout: 0,
    }));
    await client.send(new ChangeMessageVisibilityBatchCommand({ QueueUrl: url, Entries }));
  }
}

function toDeadLetter(message: SqsMessage): DeadLetter {
  return {
    messageId: message.MessageId ?? '',
    body: message.Body ?? '',
    notice: parseNotice(message.MessageAttributes?.[NOTICE_ATTRIBUTE]?.StringValue),
  };
}
