/** One request that changes the visibilities of up to ten messages. */
import { ChangeMessageVisibilityBatchCommand, type SQSClient } from '@aws-sdk/client-sqs';
import type { Clock } from '../clock.ts';
import { answersOf, entryId, type EntryAnswer } from './batch-answers.ts';

export interface VisibilityTarget {
  readonly client: SQSClient;
  readonly queueUrl: string;
  readonly clock: Clock;
}

export interface VisibilityChange {
  readonly receiptHandle: string;
  /** From now on. Unit: s. Range: 0-43200. */
  readonly seconds: number;
}

/** @param answerMs after so long the request is given up. Unit: ms. */
export function changeVisibilities(
  target: VisibilityTarget,
  changes: readonly VisibilityChange[],
  answerMs: number,
): Promise<EntryAnswer[]> {
  const Entries = changes.map(({ receiptHandle, seconds }, index) => ({
    Id: entryId(index),
    ReceiptHandle: receiptHandle,
    VisibilityTimeout: seconds,
  }));
  return answersOf({
    entries: changes.length,
    answerMs,
    clock: target.clock,
    send: (abortSignal) =>
      target.client.send(new ChangeMessageVisibilityBatchCommand({ QueueUrl: target.queueUrl, Entries }), {
        abortSignal,
      }),
  });
}
