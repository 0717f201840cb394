/**
 * Keeps one delivery ours while its handler works: first the lease, then the visibility, in one beat.
 *
 * The visibility outlives the lease, so a message that comes back finds the lease over and is taken over at once.
 * Beats run on the same event loop as the handler: a blocked loop stops beating, as it should.
 */
import type { Cancel, Clock, Random } from '../clock.ts';
import type { HeldLease } from '../store/leases/held-lease.ts';
import type { Acknowledger } from './acknowledger.ts';

export interface HeartbeatOptions {
  readonly lease: HeldLease;
  readonly receiptHandle: string;
  readonly acknowledger: Acknowledger;
  readonly heartbeatMs: number;
  readonly visibilityTimeoutSeconds: number;
  readonly clock: Clock;
  readonly random: Random;
}

export interface Heartbeat {
  /** Aborts when the lease or the visibility is lost for good. */
  readonly signal: AbortSignal;
  /** True when SQS said that the message is no longer ours. */
  readonly isVisibilityLost: boolean;
  /** Ends the beats. Resolves when none is on its way any more, so that none can undo what is settled next. */
  stop(): Promise<void>;
}

/** SQS hides a message for at most 12 hours after its receive. @see AWS: ChangeMessageVisibility */
const MAX_VISIBILITY_MS = 43_200_000;

export class VisibilityLostError extends Error {
  override readonly name = 'VisibilityLostError';
}

export function startHeartbeat(options: HeartbeatOptions): Heartbeat {
  const { lease, clock, random } = options;
  const receivedAtMonoMs = clock.monotonicMs();
  const visibilityLoss = new AbortController();
  let isStopped = false;
  let cancelNext: Cancel = () => undefined;
  let beatUnderWay: Promise<void> = Promise.resolve();

  function scheduleNext(): void {
    if (isStopped) return;
    // Jitter keeps many messages that were received together from beating together.
    const regularMs = options.heartbeatMs * (0.9 + random() * 0.2);
    // A slow claim or beat has used up a part of the lease already: the next beat comes sooner then.
    const delayMs = Math.min(regularMs, Math.max(lease.remainingMs() / 2, options.heartbeatMs / 4));
    cancelNext = clock.schedule(
      () => {
        beatUnderWay = beat().then(scheduleNext);
      },
      delayMs,
      { background: true },
    );
  }

  async function beat(): Promise<void> {
    const held = await lease.renew();
    if (isStopped) return;
    if (!held) {
      // A lease that is lost has aborted already; one that could not be renewed goes on until its time is over.
      if (lease.signal.aborted) isStopped = true;
      return;
    }
    const leftSeconds = Math.floor((MAX_VISIBILITY_MS - (clock.monotonicMs() - receivedAtMonoMs)) / 1_000);
    const seconds = Math.min(options.visibilityTimeoutSeconds, leftSeconds);
    if (seconds > 0 && (await options.acknowledger.changeVisibility(options.receiptHandle, seconds)) !== 'gone') return;
    isStopped = true;
    visibilityLoss.abort(new VisibilityLostError('the message is no longer hidden for this worker'));
  }

  scheduleNext();
  return {
    signal: AbortSignal.any([lease.signal, visibilityLoss.signal]),
    get isVisibilityLost() {
      return visibilityLoss.signal.aborted;
    },
    async stop() {
      isStopped = true;
      cancelNext();
      await beatUnderWay;
    },
  };
}
