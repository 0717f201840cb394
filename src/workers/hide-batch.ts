/**
 * Hides messages until they are to be tried again, up to ten with one request. Kept apart from the beats, so that what a
 * settlement asks for and a beat can never be in one request.
 *
 * The delay counts from its first request. A request that may have been applied is not repeated once the delay is over:
 * by then the message may be another worker's, whom a late change would disturb.
 */
import { fullJitterMs } from '../backoff.ts';
import { sleep, type Random } from '../clock.ts';
import type { EntryAnswer } from './batch-answers.ts';
import { createEntryBatches } from './entry-batches.ts';
import type { OpenReceipt } from './receipt-handles.ts';
import { changeVisibilities, type VisibilityTarget } from './visibility-request.ts';

/** `gone`: the message is no longer ours. `failed`: it comes back when its visibility time-out is over. */
export type HideAnswer = 'changed' | 'gone' | 'failed';

export interface HideBatchOptions extends VisibilityTarget {
  readonly random: Random;
  /** How long a change waits for others. Unit: ms. */
  readonly windowMs: number;
  /** How long one request may take. Unit: ms. */
  readonly answerMs: number;
  readonly inFlight?: () => number;
}

interface PendingHide {
  readonly receipt: OpenReceipt;
  readonly untilMonoMs: number;
  attempts: number;
  readonly resolve: (answer: HideAnswer) => void;
}

const BACKOFF = { baseMs: 100, capMs: 1_000 } as const;
const MAX_ATTEMPTS = 4;

/** @returns what hides one message for some seconds from now on; 0 shows it at once. */
export function createHideBatch(
  options: HideBatchOptions,
): (receipt: OpenReceipt, seconds: number) => Promise<HideAnswer> {
  const { clock, random, windowMs } = options;
  const batches = createEntryBatches<PendingHide>(clock, (batch) => void sendBatch(batch), options.inFlight);

  /** Never rejects: each entry learns its own answer. */
  async function sendBatch(batch: readonly PendingHide[]): Promise<void> {
    const nowMonoMs = clock.monotonicMs();
    const changes = batch.map(({ receipt, untilMonoMs }) => ({
      receiptHandle: receipt.newest(),
      seconds: Math.max(0, Math.ceil((untilMonoMs - nowMonoMs) / 1_000)),
    }));
    const answers = await changeVisibilities(options, changes, options.answerMs);
    for (const [index, entry] of batch.entries()) {
      const answer = answers[index] ?? 'unclear';
      const isNewest = entry.receipt.newest() === changes[index]?.receiptHandle;
      const isOver = entry.untilMonoMs <= clock.monotonicMs();
      if (entry.attempts < MAX_ATTEMPTS && isWorthRepeating(answer, { isNewest, isOver })) void tryAgainLater(entry);
      else entry.resolve(resultOf(answer));
    }
  }

  async function tryAgainLater(entry: PendingHide): Promise<void> {
    await sleep(clock, fullJitterMs(entry.attempts, BACKOFF, random));
    entry.attempts += 1;
    batches.add(entry, windowMs);
  }

  return (receipt, seconds) =>
    new Promise((resolve) => {
      const untilMonoMs = clock.monotonicMs() + seconds * 1_000;
      batches.add({ receipt, untilMonoMs, attempts: 1, resolve }, windowMs);
    });
}

function isWorthRepeating(answer: EntryAnswer, { isNewest, isOver }: { isNewest: boolean; isOver: boolean }): boolean {
  switch (answer) {
    case 'done':
    case 'gone':
      // The newer handle was not started, for this settlement's sake: it is hidden too, or shown at once when it is time.
      return !isNewest;
    case 'refused':
      return true;
    case 'unclear':
      return !isOver;
    case 'denied':
      return false;
  }
}

function resultOf(answer: EntryAnswer): HideAnswer {
  if (answer === 'done') return 'changed';
  return answer === 'gone' ? 'gone' : 'failed';
}
