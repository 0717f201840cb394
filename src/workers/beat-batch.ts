/**
 * Extends visibilities for heartbeats, up to ten with one request.
 *
 * A beat is over, one way or the other, before its limit: it must not keep the next renewal of the lease waiting. It can
 * be withdrawn, and then waits for nothing but a request that has left already: after that no beat of this message is
 * sent any more, so that none can undo what its settlement asks for.
 */
import { fullJitterMs } from '../backoff.ts';
import type { Cancel, Random } from '../clock.ts';
import type { EntryAnswer } from './batch-answers.ts';
import { createEntryBatches } from './entry-batches.ts';
import { changeVisibilities, type VisibilityTarget } from './visibility-request.ts';

export type BeatAnswer =
  | 'changed'
  /** The message is no longer ours. */
  | 'gone'
  /** SQS could not be reached in time. */
  | 'failed'
  /** The message is being settled: it was not sent, or not repeated. */
  | 'withdrawn';

export interface BeatBatch {
  /** At most one at a time for each receipt handle. */
  extend(receiptHandle: string, seconds: number): Promise<BeatAnswer>;
  /** Takes a waiting beat out. Resolves when none of this message is on its way any more. */
  withdraw(receiptHandle: string): Promise<void>;
}

export interface BeatBatchOptions extends VisibilityTarget {
  readonly random: Random;
  /** How long a beat waits for others. Unit: ms. */
  readonly windowMs: number;
  /** How long one beat may take in all. Unit: ms. */
  readonly answerMs: number;
}

interface PendingBeat {
  readonly receiptHandle: string;
  readonly seconds: number;
  readonly deadlineMonoMs: number;
  readonly over: PromiseWithResolvers<BeatAnswer>;
  attempts: number;
  isOnItsWay: boolean;
  isWithdrawn: boolean;
  cancelRetry: Cancel;
}

const BACKOFF = { baseMs: 50, capMs: 1_000 } as const;

export function createBeatBatch(options: BeatBatchOptions): BeatBatch {
  const { clock, random, windowMs, answerMs } = options;
  const pending = new Map<string, PendingBeat>();
  const batches = createEntryBatches<PendingBeat>(clock, (batch) => void sendBatch(batch));

  function end(beat: PendingBeat, answer: BeatAnswer): void {
    pending.delete(beat.receiptHandle);
    beat.over.resolve(answer);
  }

  /** Never rejects: each beat learns its own answer. */
  async function sendBatch(batch: readonly PendingBeat[]): Promise<void> {
    for (const beat of batch) beat.isOnItsWay = true;
    const leftMs = Math.min(...batch.map(({ deadlineMonoMs }) => deadlineMonoMs)) - clock.monotonicMs();
    const answers = await changeVisibilities(options, batch, Math.max(1, leftMs));
    for (const [index, beat] of batch.entries()) {
      beat.isOnItsWay = false;
      const answer = answers[index] ?? 'unclear';
      const verdict = verdictOn(answer);
      if (verdict !== 'again') end(beat, verdict);
      else if (beat.isWithdrawn) end(beat, 'withdrawn');
      else tryAgainLater(beat);
    }
  }

  function tryAgainLater(beat: PendingBeat): void {
    const delayMs = fullJitterMs(beat.attempts, BACKOFF, random);
    // With hardly any time left it would only cut short the others in its request; the next beat is as good.
    if (clock.monotonicMs() + delayMs + windowMs > beat.deadlineMonoMs - answerMs / 4) {
      end(beat, 'failed');
      return;
    }
    beat.attempts += 1;
    beat.cancelRetry = clock.schedule(() => {
      batches.add(beat, windowMs);
    }, delayMs);
  }

  return {
    extend(receiptHandle, seconds) {
      const known = pending.get(receiptHandle);
      if (known !== undefined) return known.over.promise;
      const beat = newBeat({ receiptHandle, seconds, deadlineMonoMs: clock.monotonicMs() + answerMs });
      pending.set(receiptHandle, beat);
      batches.add(beat, windowMs);
      return beat.over.promise;
    },
    async withdraw(receiptHandle) {
      const beat = pending.get(receiptHandle);
      if (beat === undefined) return;
      beat.isWithdrawn = true;
      if (!beat.isOnItsWay) {
        beat.cancelRetry();
        batches.remove(beat);
        end(beat, 'withdrawn');
      }
      await beat.over.promise;
    },
  };
}

function newBeat(asked: Pick<PendingBeat, 'receiptHandle' | 'seconds' | 'deadlineMonoMs'>): PendingBeat {
  return {
    ...asked,
    over: Promise.withResolvers<BeatAnswer>(),
    attempts: 1,
    isOnItsWay: false,
    isWithdrawn: false,
    cancelRetry: () => undefined,
  };
}

function verdictOn(answer: EntryAnswer): BeatAnswer | 'again' {
  switch (answer) {
    case 'done':
      return 'changed';
    case 'gone':
      return 'gone';
    case 'denied':
      // Says nothing about the message: the lease decides for how long its handler may go on.
      return 'failed';
    case 'refused':
    case 'unclear':
      return 'again';
  }
}
