/**
 * Keeps one delivery ours while its handler works: first the lease, then the visibility, in one beat.
 *
 * The visibility outlives the lease, so a message that comes back finds the lease over and is taken over at once. It is
 * not extended with every beat: a short lease beside a long visibility would ask SQS for nothing.
 * Beats run on the same event loop as the handler: a blocked loop stops beating, as it should.
 */
import type { Cancel, Clock, Random } from '../clock.ts';
import type { HeldLease } from '../store/leases/held-lease.ts';
import type { Acknowledger } from './acknowledger.ts';

/** What the beats need of a lease; a direct handler has none, and only its visibility is kept. */
export type RenewableLease = Pick<HeldLease, 'signal' | 'remainingMs' | 'renew'>;

/**
 * For what has no lease: a direct handler, or a message that waits for its group. Each has a signal of its own: what is
 * derived from a signal that never aborts would be kept for good.
 */
export function noLease(): RenewableLease {
  return {
    signal: new AbortController().signal,
    remainingMs: () => Number.POSITIVE_INFINITY,
    renew: () => Promise.resolve(true),
  };
}

export interface HeartbeatOptions {
  readonly lease: RenewableLease;
  readonly receiptHandle: string;
  readonly acknowledger: Pick<Acknowledger, 'extendVisibility' | 'withdrawBeat'>;
  readonly heartbeatMs: number;
  readonly visibilityTimeoutSeconds: number;
  readonly clock: Clock;
  readonly random: Random;
  /** When the message was received, on the monotonic clock. Unit: ms. @defaultValue now */
  readonly receivedAtMonoMs?: number;
  /**
   * How long after a renewal others take the lease for held: `leaseMs` + `maxClockSkewMs`. As long as the visibility
   * lasts longer than that anyhow, it is left alone. Unit: ms. @defaultValue it is extended with each beat
   */
  readonly leaseCountsMs?: number;
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
  const { lease, clock, random, heartbeatMs, receiptHandle, acknowledger } = options;
  let beatAtMonoMs = clock.monotonicMs();
  const receivedAtMonoMs = options.receivedAtMonoMs ?? beatAtMonoMs;
  let hiddenAtMonoMs = receivedAtMonoMs;
  const visibilityLoss = new AbortController();
  let isStopped = false;
  let cancelNext: Cancel = () => undefined;
  let beatUnderWay: Promise<void> = Promise.resolve();

  function scheduleNext(): void {
    if (isStopped) return;
    // Jitter keeps many messages that were received together from beating together. Counted from one beat to the next:
    // what the last one took, or waited for others in its request, must not come on top.
    const regularMs = heartbeatMs * (0.9 + random() * 0.2) - (clock.monotonicMs() - beatAtMonoMs);
    // A slow claim or beat has used up a part of the lease already: the next beat comes sooner then.
    const delayMs = Math.max(heartbeatMs / 4, Math.min(regularMs, lease.remainingMs() / 2));
    cancelNext = clock.schedule(
      () => {
        beatUnderWay = beat().then(scheduleNext);
      },
      delayMs,
      { background: true },
    );
  }

  async function beat(): Promise<void> {
    beatAtMonoMs = clock.monotonicMs();
    const held = await lease.renew();
    if (isStopped) return;
    if (held) await extend();
    // A lease that is lost has aborted already; one that could not be renewed goes on until its time is over.
    else if (lease.signal.aborted) isStopped = true;
  }

  async function extend(): Promise<void> {
    const nowMonoMs = clock.monotonicMs();
    const leftSeconds = Math.floor((MAX_VISIBILITY_MS - (nowMonoMs - receivedAtMonoMs)) / 1_000);
    if (leftSeconds > 0) {
      if (!isExtensionDue(nowMonoMs - hiddenAtMonoMs, options)) return;
      const seconds = Math.min(options.visibilityTimeoutSeconds, leftSeconds);
      const answer = await acknowledger.extendVisibility(receiptHandle, seconds);
      if (answer === 'changed') hiddenAtMonoMs = nowMonoMs;
      if (answer !== 'gone') return;
    }
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
      await acknowledger.withdrawBeat(receiptHandle);
      await beatUnderWay;
    },
  };
}

/** No visibility is extended more often. */
const MIN_INTERVAL_MS = 1_000;
/** So short a visibility is extended once per third of it at most, whatever the lease would like. */
const SHORT_MS = 5_000;

/** @param hiddenForMs how long ago its visibility began. */
function isExtensionDue(
  hiddenForMs: number,
  { visibilityTimeoutSeconds, leaseCountsMs = Number.POSITIVE_INFINITY }: HeartbeatOptions,
): boolean {
  const visibilityMs = visibilityTimeoutSeconds * 1_000;
  // With a visibility of one second a second would be too late.
  if (hiddenForMs >= Math.min(visibilityMs / 2, Math.max(MIN_INTERVAL_MS, visibilityMs / 3))) return true;
  return visibilityMs > SHORT_MS && hiddenForMs >= MIN_INTERVAL_MS && visibilityMs - hiddenForMs < leaseCountsMs;
}
