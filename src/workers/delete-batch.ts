/**
 * Deletes finished messages, up to ten with one request. Each delete waits for the answer to its own entry, and is
 * repeated with the newest receipt handle of its message until SQS confirms it or the tries are used up.
 */
import { DeleteMessageBatchCommand, type SQSClient } from '@aws-sdk/client-sqs';
import { fullJitterMs } from '../backoff.ts';
import { sleep, type Clock, type Random } from '../clock.ts';
import { answersOf, entryId, type EntryAnswer } from './batch-answers.ts';
import { createEntryBatches } from './entry-batches.ts';
import type { OpenReceipt } from './receipt-handles.ts';

export interface DeleteBatchOptions {
  readonly client: SQSClient;
  readonly queueUrl: string;
  readonly clock: Clock;
  readonly random: Random;
  /** How long a delete waits for others. Unit: ms. */
  readonly windowMs: number;
  readonly inFlight?: () => number;
}

interface PendingDelete {
  readonly receipt: OpenReceipt;
  attempts: number;
  readonly resolve: (confirmed: boolean) => void;
}

const BACKOFF = { baseMs: 100, capMs: 2_000 } as const;
/** With the limit for each answer, a delete ends within half a minute or so, whatever happens. */
const MAX_ATTEMPTS = 6;
const ANSWER_MS = 5_000;

/** @returns what deletes one message: true when SQS has confirmed it, false when the message will come back. */
export function createDeleteBatch(options: DeleteBatchOptions): (receipt: OpenReceipt) => Promise<boolean> {
  const { clock, random } = options;
  const batches = createEntryBatches<PendingDelete>(clock, (batch) => void sendBatch(batch), options.inFlight);

  /** Never rejects: each entry learns its own answer. */
  async function sendBatch(batch: readonly PendingDelete[]): Promise<void> {
    const handles = batch.map(({ receipt }) => receipt.newest());
    const answers = await answersOf({
      entries: batch.length,
      answerMs: ANSWER_MS,
      clock,
      send: (abortSignal) =>
        options.client.send(
          new DeleteMessageBatchCommand({
            QueueUrl: options.queueUrl,
            Entries: handles.map((ReceiptHandle, index) => ({ Id: entryId(index), ReceiptHandle })),
          }),
          { abortSignal },
        ),
    });
    for (const [index, entry] of batch.entries()) {
      const isNewest = entry.receipt.newest() === handles[index];
      const answer = answers[index] ?? 'unclear';
      if (entry.attempts < MAX_ATTEMPTS && isWorthRepeating(answer, isNewest)) void tryAgainLater(entry);
      else entry.resolve(answer === 'done');
    }
  }

  async function tryAgainLater(entry: PendingDelete): Promise<void> {
    await sleep(clock, fullJitterMs(entry.attempts, BACKOFF, random));
    entry.attempts += 1;
    batches.add(entry, options.windowMs);
  }

  return (receipt) =>
    new Promise((resolve) => {
      batches.add({ receipt, attempts: 1, resolve }, options.windowMs);
    });
}

function isWorthRepeating(answer: EntryAnswer, isNewest: boolean): boolean {
  switch (answer) {
    case 'done':
    case 'gone':
      // SQS says yes to an older handle and may keep the message all the same.
      return !isNewest;
    case 'refused':
    case 'unclear':
      return true;
    case 'denied':
      return false;
  }
}
