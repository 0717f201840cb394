/**
 * Renews one lease until it is told to stop. It tells nobody of a loss: the lease's own `signal` does.
 * For work without further wishes; a named lock has a pulse of its own, which also warns.
 *
 * Its timers keep no process alive, and a blocked event loop stops beating, as it should.
 */
import type { Cancel, Clock, Random } from '../../clock.ts';
import type { HeldLease } from './held-lease.ts';

export interface KeepAliveOptions {
  readonly lease: Pick<HeldLease, 'renew' | 'remainingMs' | 'signal' | 'isEnded' | 'giveUp'>;
  /** Between two renewals, +-10 %. Unit: ms. */
  readonly heartbeatMs: number;
  /** The longest that it is held, for work that hangs: the lease is given up then. Unit: ms. */
  readonly maxHoldMs: number;
  readonly clock: Clock;
  readonly random: Random;
}

export interface KeepAlive {
  /** Ends the renewals. Resolves when none is on its way any more. */
  stop(): Promise<void>;
}

export function keepAlive(options: KeepAliveOptions): KeepAlive {
  const { lease, heartbeatMs, clock, random } = options;
  let isStopped = false;
  let cancelNext: Cancel = () => undefined;
  let underWay: Promise<unknown> = Promise.resolve();

  const isOver = (): boolean => isStopped || lease.isEnded || lease.signal.aborted;
  const cancelMaxHold = clock.schedule(
    () => {
      if (!isOver()) lease.giveUp('maxHold');
    },
    options.maxHoldMs,
    { background: true },
  );

  function scheduleNext(): void {
    if (isOver()) return;
    // Jitter keeps many leases that were taken together from beating together.
    const regularMs = heartbeatMs * (0.9 + random() * 0.2);
    // A slow acquisition or renewal has used up a part of the lease already: the next one comes sooner then.
    const delayMs = Math.min(regularMs, Math.max(lease.remainingMs() / 2, heartbeatMs / 4));
    cancelNext = clock.schedule(beat, delayMs, { background: true });
  }

  function beat(): void {
    if (isOver()) return;
    // A renewal that failed leaves the lease held until its time is over, so the next one is tried all the same.
    underWay = lease.renew().then(scheduleNext, scheduleNext);
  }

  scheduleNext();
  return {
    async stop() {
      isStopped = true;
      cancelMaxHold();
      cancelNext();
      await underWay;
    },
  };
}
