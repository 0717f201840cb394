/** Reads what is on a dead-letter queue, without taking anything from it. Portable: receive and show again. */
import type { Message as SqsMessage, SQSClient } from '@aws-sdk/client-sqs';
import { systemClock, type Clock } from '../clock.ts';
import { MAX_BATCH_ENTRIES } from '../messages/limits.ts';
import { NOTICE_ATTRIBUTE, originalOf, parseNotice, type DeadLetterNotice } from './dead-letter-notice.ts';
import { holdMessages } from './held-messages.ts';

export interface DeadLetter {
  /** Of the copy on the dead-letter queue. */
  readonly messageId: string;
  readonly body: string;
  /** Undefined when the queue's own redrive policy moved it, or when the copy had no room: the store may know then. */
  readonly notice: DeadLetterNotice | undefined;
  /** When SQS took the copy; what the queue's own redrive policy moved keeps the time of its first send. */
  readonly sentAtMs?: number | undefined;
  /** The same for all copies of one message; undefined when it cannot be told. */
  readonly original?: string | undefined;
}

/** Tells the first letter of each message from further copies of it. */
export function firstOfCopies(): (letter: Pick<DeadLetter, 'original'>) => boolean {
  const seen = new Set<string>();
  return ({ original }) => {
    if (original === undefined) return true;
    const isFirst = !seen.has(original);
    seen.add(original);
    return isFirst;
  };
}

export interface ReadOptions {
  /** The most that are read. Range: 1-10000. */
  readonly limit: number;
  /** Ends the look early. */
  readonly signal?: AbortSignal;
  /** For tests. @defaultValue the system's */
  readonly clock?: Clock;
}

/**
 * Looks at each letter once, in parts of at most ten, so that a long queue of large bodies need not fit into memory.
 * What was received is kept hidden until the end of the loop, however it ends, and then made visible again.
 */
export async function* eachDeadLetter(
  client: SQSClient,
  url: string,
  options: ReadOptions,
): AsyncGenerator<DeadLetter[], void> {
  const held = holdMessages(client, url, options.clock ?? systemClock);
  const seen = new Set<string>();
  try {
    while (seen.size < options.limit && options.signal?.aborted !== true) {
      const messages = await held.receive(Math.min(MAX_BATCH_ENTRIES, options.limit - seen.size));
      const fresh = messages.filter(({ MessageId = '' }) => !seen.has(MessageId));
      // Nothing new: the queue is empty, or what was looked at first is visible again already.
      if (fresh.length === 0) return;
      for (const { MessageId = '' } of fresh) seen.add(MessageId);
      yield fresh.map(toDeadLetter);
      await held.keepHidden();
    }
  } finally {
    await held.showAll();
  }
}

/** Looks without taking: what was received is made visible again at the end. */
export async function readDeadLetters(client: SQSClient, url: string, options: ReadOptions): Promise<DeadLetter[]> {
  const letters: DeadLetter[] = [];
  for await (const part of eachDeadLetter(client, url, options)) letters.push(...part);
  return letters;
}

export function toDeadLetter(message: SqsMessage): DeadLetter {
  const { MessageId = '', Body = '' } = message;
  const notice = parseNotice(message.MessageAttributes?.[NOTICE_ATTRIBUTE]?.StringValue);
  const sentAtMs = Number(message.Attributes?.SentTimestamp);
  return {
    messageId: MessageId,
    body: Body,
    notice,
    ...(Number.isFinite(sentAtMs) && { sentAtMs }),
    original: originalOf(notice, Body),
  };
}
