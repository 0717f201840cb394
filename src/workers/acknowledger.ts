/**
 * Deletes finished messages and changes visibilities, all in batches. Each call waits for the answer to its own entry, so
 * a message counts as in flight until SQS has confirmed.
 *
 * Invariants: a finished message is never made visible again (a failed delete is repeated, and if it keeps failing the
 * message comes back by itself and is answered from its record); no beat is sent for a message that is being settled.
 */
import type { SQSClient } from '@aws-sdk/client-sqs';
import type { Clock, Random } from '../clock.ts';
import { createBeatBatch, type BeatAnswer } from './beat-batch.ts';
import { createDeleteBatch } from './delete-batch.ts';
import { createHideBatch, type HideAnswer } from './hide-batch.ts';
import { createReceiptHandles, type OpenReceipt } from './receipt-handles.ts';

export interface Acknowledger {
  /**
   * @param messageId lets the delete go on with the newest receipt handle when the message comes back meanwhile.
   * @returns false when SQS did not confirm after all tries; the message will come back.
   */
  delete(receiptHandle: string, messageId?: string): Promise<boolean>;
  /**
   * For settlements: hides the message until it is to be tried again.
   * @param messageId as for `delete`.
   * @returns `gone` when the message is no longer ours, `failed` when SQS could not be reached.
   */
  changeVisibility(receiptHandle: string, seconds: number, messageId?: string): Promise<HideAnswer>;
  /** For heartbeats: ends within `visibilityAnswerMs`. */
  extendVisibility(receiptHandle: string, seconds: number): Promise<BeatAnswer>;
  /** Takes out a beat that waits. Resolves when none of this message is on its way any more. */
  withdrawBeat(receiptHandle: string): Promise<void>;
  /**
   * To be told of each message as it arrives, before it is started.
   * @returns true when it is being settled here right now: it must not be started then, and needs nothing else.
   */
  arrived(messageId: string, receiptHandle: string): boolean;
}

export interface AcknowledgerOptions {
  readonly client: SQSClient;
  readonly queueUrl: string;
  readonly clock: Clock;
  readonly random: Random;
  /** How long a settlement waits for others to share its request. Unit: ms. */
  readonly batchWindowMs: number;
  /**
   * Deliveries at work, those that are being settled included: when all of them wait, the request leaves at once.
   * @defaultValue unknown, so that the whole window is waited for others
   */
  readonly inFlight?: () => number;
  /** How long one change of a visibility may take: it must not keep the next renewal of a lease waiting. Unit: ms. */
  readonly visibilityAnswerMs: number;
}

/** Beats wait longer for each other than settlements do: nobody waits for them. Unit: ms. */
const MAX_BEAT_WINDOW_MS = 500;

export function createAcknowledger(options: AcknowledgerOptions): Acknowledger {
  const { batchWindowMs: windowMs, visibilityAnswerMs: answerMs } = options;
  const receipts = createReceiptHandles();
  const settling = new Set<string>();
  const beats = createBeatBatch({ ...options, answerMs, windowMs: Math.min(MAX_BEAT_WINDOW_MS, answerMs / 10) });
  const deleteOne = createDeleteBatch({ ...options, windowMs });
  const hideOne = createHideBatch({ ...options, answerMs, windowMs });

  /** Ends the beats of a message first, and keeps further ones away until it is settled. */
  async function settle<Answer>(
    receipt: { readonly handle: string; readonly messageId: string | undefined; readonly isDue?: () => boolean },
    act: (open: OpenReceipt) => Promise<Answer>,
  ): Promise<Answer> {
    settling.add(receipt.handle);
    const open = receipts.open(receipt.handle, receipt.messageId, receipt.isDue);
    try {
      await beats.withdraw(receipt.handle);
      return await act(open);
    } finally {
      open.close();
      settling.delete(receipt.handle);
    }
  }

  return {
    delete: (handle, messageId) => settle({ handle, messageId }, deleteOne),
    changeVisibility(handle, seconds, messageId) {
      const dueAtMonoMs = options.clock.monotonicMs() + seconds * 1_000;
      const isDue = (): boolean => options.clock.monotonicMs() >= dueAtMonoMs;
      return settle({ handle, messageId, isDue }, (open) => hideOne(open, seconds));
    },
    extendVisibility: (handle, seconds) =>
      settling.has(handle) ? Promise.resolve('withdrawn') : beats.extend(handle, seconds),
    withdrawBeat: (handle) => beats.withdraw(handle),
    arrived: (messageId, handle) => receipts.arrived(messageId, handle),
  };
}
