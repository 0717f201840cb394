/**
 * Deletes finished messages and changes visibilities. Deletes go in batches; each waits for the answer to its own
 * entry, so a message counts as in flight until SQS has confirmed.
 *
 * A finished message is never made visible again: a failed delete is repeated, and if it keeps failing the message
 * comes back by itself and is answered from the record.
 */
import {
  ChangeMessageVisibilityCommand,
  DeleteMessageBatchCommand,
  type DeleteMessageBatchResult,
  type SQSClient,
} from '@aws-sdk/client-sqs';
import { classifyFault, isRetryable } from '../aws-fault.ts';
import { fullJitterMs } from '../backoff.ts';
import { sleep, type Clock, type Random } from '../clock.ts';
import { MAX_BATCH_ENTRIES } from '../messages/limits.ts';

export interface Acknowledger {
  /** @returns false when SQS did not confirm after all tries; the message will come back. */
  delete(receiptHandle: string): Promise<boolean>;
  /** @returns `gone` when the message is no longer ours, `failed` when SQS could not be reached. */
  changeVisibility(receiptHandle: string, seconds: number): Promise<'changed' | 'gone' | 'failed'>;
}

export interface AcknowledgerOptions {
  readonly client: SQSClient;
  readonly queueUrl: string;
  readonly clock: Clock;
  readonly random: Random;
  /** How long a delete waits for others to share its request. Unit: ms. */
  readonly batchWindowMs: number;
  /** How long one change of a visibility may take: it must not keep the next renewal of a lease waiting. Unit: ms. */
  readonly visibilityAnswerMs: number;
}

interface PendingDelete {
  readonly receiptHandle: string;
  attempts: number;
  readonly resolve: (confirmed: boolean) => void;
}

const BACKOFF = { baseMs: 100, capMs: 2_000 } as const;
const MAX_ATTEMPTS = 6;

export function createAcknowledger(options: AcknowledgerOptions): Acknowledger {
  const { client, queueUrl, clock, random } = options;
  let pending: PendingDelete[] = [];
  let isTimerSet = false;

  function enqueue(entry: PendingDelete): void {
    pending.push(entry);
    if (pending.length >= MAX_BATCH_ENTRIES) {
      flush();
    } else if (!isTimerSet) {
      isTimerSet = true;
      clock.schedule(() => {
        isTimerSet = false;
        flush();
      }, options.batchWindowMs);
    }
  }

  function flush(): void {
    if (pending.length === 0) return;
    const batch = pending;
    pending = [];
    void sendBatch(batch);
  }

  /** Never rejects: each entry learns its own result. */
  async function sendBatch(batch: readonly PendingDelete[]): Promise<void> {
    const failed = await deleteBatch(client, queueUrl, batch);
    for (const [index, entry] of batch.entries()) {
      const failure = failed.get(index);
      if (failure === undefined) entry.resolve(true);
      else if (failure === 'for good' || entry.attempts >= MAX_ATTEMPTS) entry.resolve(false);
      else void tryAgainLater(entry);
    }
  }

  async function tryAgainLater(entry: PendingDelete): Promise<void> {
    await sleep(clock, fullJitterMs(entry.attempts, BACKOFF, random));
    entry.attempts += 1;
    enqueue(entry);
  }

  return {
    delete: (receiptHandle) =>
      new Promise((resolve) => {
        enqueue({ receiptHandle, attempts: 1, resolve });
      }),
    changeVisibility: (receiptHandle, seconds) => changeVisibility(options, receiptHandle, seconds),
  };
}

/** One change of a visibility; when its answer takes too long it is given up, whatever hangs. */
function changeVisibility(
  options: AcknowledgerOptions,
  receiptHandle: string,
  seconds: number,
): Promise<'changed' | 'gone' | 'failed'> {
  const timeout = new AbortController();
  const input = { QueueUrl: options.queueUrl, ReceiptHandle: receiptHandle, VisibilityTimeout: seconds };
  return new Promise((resolve) => {
    const cancelTimeout = options.clock.schedule(() => {
      timeout.abort();
      resolve('failed');
    }, options.visibilityAnswerMs);
    options.client
      .send(new ChangeMessageVisibilityCommand(input), { abortSignal: timeout.signal })
      .then(
        () => {
          resolve('changed');
        },
        (error: unknown) => {
          resolve(isRetryable(classifyFault(error)) ? 'failed' : 'gone');
        },
      )
      .finally(cancelTimeout);
  });
}

/** Which entries failed, by their place in the batch. */
async function deleteBatch(
  client: SQSClient,
  queueUrl: string,
  batch: readonly PendingDelete[],
): Promise<Map<number, 'for good' | 'for now'>> {
  // The position is the entry's id: unique within the request, whatever the messages are.
  const Entries = batch.map((entry, index) => ({ Id: String(index), ReceiptHandle: entry.receiptHandle }));
  try {
    return failuresOf(await client.send(new DeleteMessageBatchCommand({ QueueUrl: queueUrl, Entries })));
  } catch (error) {
    const failure = isRetryable(classifyFault(error)) ? ('for now' as const) : ('for good' as const);
    return new Map(batch.map((_entry, index) => [index, failure]));
  }
}

function failuresOf(result: DeleteMessageBatchResult): Map<number, 'for good' | 'for now'> {
  const failed = result.Failed ?? [];
  // A fault of ours (a handle that is too old) will not get better by repeating.
  return new Map(failed.map((entry) => [Number(entry.Id), entry.SenderFault === true ? 'for good' : 'for now']));
}
