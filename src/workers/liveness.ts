/** Notices a poll loop that is dead although the process lives: an orchestrator sees a healthy process doing nothing. */
import type { Cancel, Clock } from '../clock.ts';

export type LivenessState =
  /** Receives, or waits for the answer to a receive. */
  | 'polling'
  /** Every slot is taken: nothing is received until one is free. */
  | 'full'
  /** Nothing was heard of the poll loop for longer than a receive can take. */
  | 'stalled'
  /** Told not to receive. */
  | 'quiet';

export interface Liveness {
  /** The loop did something: it asked, got an answer, or failed. */
  sign(): void;
  readonly state: LivenessState;
  /** How long nothing was heard. Unit: ms. */
  readonly silentForMs: number;
  /** Looks by itself from now on, and tells once per stall. */
  watch(): void;
  close(): void;
}

export interface LivenessOptions {
  readonly clock: Clock;
  /** Longer than a receive can take: its wait, its time-outs and the pause after a failure. Unit: ms. */
  readonly stallAfterMs: number;
  readonly isFull: () => boolean;
  readonly isQuiet: () => boolean;
  readonly onStalled: (silentForMs: number) => void;
}

export function createLiveness(options: LivenessOptions): Liveness {
  const { clock, stallAfterMs } = options;
  let lastSignMonoMs = clock.monotonicMs();
  let isTold = false;
  let cancel: Cancel = () => undefined;
  const silentForMs = (): number => Math.max(0, clock.monotonicMs() - lastSignMonoMs);

  function state(): LivenessState {
    if (options.isQuiet()) return 'quiet';
    if (options.isFull()) return 'full';
    return silentForMs() > stallAfterMs ? 'stalled' : 'polling';
  }

  function look(): void {
    const now = state();
    // Time in which nothing was to be received does not count as silence.
    if (now === 'full' || now === 'quiet') lastSignMonoMs = clock.monotonicMs();
    if (now === 'stalled' && !isTold) {
      isTold = true;
      options.onStalled(Math.round(silentForMs()));
    }
    cancel = clock.schedule(look, stallAfterMs / 4, { background: true });
  }

  return {
    sign() {
      lastSignMonoMs = clock.monotonicMs();
      isTold = false;
    },
    get state() {
      return state();
    },
    get silentForMs() {
      return silentForMs();
    },
    watch() {
      lastSignMonoMs = clock.monotonicMs();
      cancel();
      cancel = clock.schedule(look, stallAfterMs / 4, { background: true });
    },
    close() {
      cancel();
    },
  };
}
