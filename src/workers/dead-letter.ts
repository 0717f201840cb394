/**
 * Dead-letters a message by an explicit send of the original body with a reason, so that nobody has to guess why it is
 * there. The queue's own redrive policy is only the safety net.
 */
import { SendMessageCommand, type MessageAttributeValue, type SQSClient } from '@aws-sdk/client-sqs';
import { classifyFault, isRetryable } from '../aws-fault.ts';
import { fullJitterMs } from '../backoff.ts';
import { sleep, type Clock, type Random } from '../clock.ts';
import { MAX_MESSAGE_BYTES } from '../messages/limits.ts';
import { bodyDigest, NOTICE_ATTRIBUTE, type DeadLetterNotice } from '../queues/dead-letter-notice.ts';
import type { Store } from '../store/store.ts';
import { deadLetterKey } from '../store/table.ts';
import type { Delivery } from './delivery.ts';
import type { DeadLetterCause } from './outcome.ts';
import { traceIdOf } from './trace-id.ts';
import { isFifo } from '../queues/topology.ts';

export interface DeadLetterOptions {
  readonly client: SQSClient;
  readonly deadLetterQueueUrl: string;
  readonly queue: string;
  readonly store: Pick<Store, 'update'>;
  readonly clock: Clock;
  readonly random: Random;
  /** Its name, for people. @defaultValue not told */
  readonly worker?: string;
}

export interface DeadLetters {
  /**
   * Resolves once SQS has taken the copy. When an answer is lost there may be two of it, which share their original's
   * message id: readers count them once. @throws when it did not after all tries: the original must stay.
   */
  send(delivery: Delivery, why: DeadLetterCause): Promise<void>;
}

const BACKOFF = { baseMs: 100, capMs: 2_000 } as const;
const MAX_ATTEMPTS = 5;
const MAX_DETAIL_CHARACTERS = 1_000;
const MAX_NAME_CHARACTERS = 200;
/** @see AWS: Amazon SQS message attributes */
const MAX_ATTRIBUTES = 10;
/** A notice that had to be kept in the table is needed as long as the copy can be on its queue: 14 days, and some. */
const NOTICE_RETENTION_SECONDS = 21 * 86_400;

export function createDeadLetters(options: DeadLetterOptions): DeadLetters {
  const { clock, random } = options;

  async function sendWithRetry(command: SendMessageCommand): Promise<void> {
    for (let attempt = 1; ; attempt += 1) {
      try {
        await options.client.send(command);
        return;
      } catch (error) {
        if (attempt === MAX_ATTEMPTS || !isRetryable(classifyFault(error))) throw error;
        await sleep(clock, fullJitterMs(attempt, BACKOFF, random));
      }
    }
  }

  /** A message of 1 MiB has no room for a reason: it is kept in the table, under the digest of the body. */
  async function keepNotice(body: string, notice: DeadLetterNotice): Promise<void> {
    await options.store.update({
      key: deadLetterKey(options.queue, bodyDigest(body)),
      change: { set: { notice, ttl: Math.floor(clock.nowMs() / 1_000) + NOTICE_RETENTION_SECONDS } },
    });
  }

  return {
    async send(delivery, why) {
      const notice = noticeOf(delivery, why, options);
      const original = Object.fromEntries(
        Object.entries(delivery.attributes).filter(([name]) => name !== NOTICE_ATTRIBUTE),
      );
      const withNotice = {
        ...original,
        [NOTICE_ATTRIBUTE]: { DataType: 'String', StringValue: JSON.stringify(notice) },
      };
      const fits =
        Object.keys(withNotice).length <= MAX_ATTRIBUTES && bytesOf(delivery.body, withNotice) <= MAX_MESSAGE_BYTES;
      if (!fits) await keepNotice(delivery.body, notice);
      await sendWithRetry(
        new SendMessageCommand({
          QueueUrl: options.deadLetterQueueUrl,
          MessageBody: delivery.body,
          MessageAttributes: fits ? withNotice : original,
          ...(isFifo(options.deadLetterQueueUrl) && orderOf(delivery)),
        }),
      );
    },
  };
}

/** The dead-letter queue of a FIFO queue is one too. There a copy that was sent twice is kept once. */
function orderOf({ groupId, messageId }: Delivery): { MessageGroupId: string; MessageDeduplicationId: string } {
  return { MessageGroupId: groupId ?? messageId, MessageDeduplicationId: messageId };
}

function noticeOf(delivery: Delivery, why: DeadLetterCause, options: DeadLetterOptions): DeadLetterNotice {
  const { attempts, payloadHash, recordedHash } = why;
  const { sentAtMs, firstReceivedAtMs } = delivery;
  const { worker } = options;
  const traceId = traceIdOf(delivery);
  return {
    reason: why.reason,
    detail: printable(why.detail).slice(0, MAX_DETAIL_CHARACTERS),
    sourceQueue: options.queue,
    messageId: delivery.messageId,
    receiveCount: delivery.receiveCount,
    deadLetteredAtMs: options.clock.nowMs(),
    // Left out rather than undefined: a notice may be kept in the table, which has no undefined.
    ...(attempts !== undefined && { attempts }),
    ...(payloadHash !== undefined && { payloadHash }),
    ...(recordedHash !== undefined && { recordedHash }),
    ...(sentAtMs !== undefined && { sentAtMs }),
    ...(firstReceivedAtMs !== undefined && { firstReceivedAtMs }),
    ...(worker !== undefined && { worker: printable(worker).slice(0, MAX_NAME_CHARACTERS) }),
    ...(traceId !== undefined && { traceId }),
  };
}

/** SQS refuses control characters in attributes; a reason must never be what keeps a message from being parked. */
function printable(text: string): string {
  return text.replace(/[^\t\n\r\u0020-\ud7ff\ue000-\ufffd]/g, '?');
}

function bytesOf(body: string, attributes: Readonly<Record<string, MessageAttributeValue>>): number {
  return Object.entries(attributes).reduce((sum, [name, value]) => {
    const content = value.BinaryValue?.byteLength ?? Buffer.byteLength(value.StringValue ?? '');
    return sum + Buffer.byteLength(name) + Buffer.byteLength(value.DataType ?? '') + content;
  }, Buffer.byteLength(body));
}
