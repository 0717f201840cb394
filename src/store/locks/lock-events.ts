/** What locks tell, besides the abort of their signals. Nobody needs to listen, and a listener can do no harm. */
import type { BackendError } from '../../errors.ts';
import type { LossReason } from '../leases/lease-loss.ts';

/**
 * What happens to the lock `name` while it is held. For logs and metrics: the work itself goes by the lock's signal.
 * Times in ms.
 */
export type LockEvent =
  /** No renewal for `dangerAfterMs`; once until the next renewal. */
  | { readonly kind: 'danger'; readonly name: string; readonly remainingMs: number }
  /** The process or the machine was paused: a timer came this much late. */
  | { readonly kind: 'stall'; readonly name: string; readonly pausedMs: number }
  /** A renewal was refused for a reason that does not pass by itself; still held until its time is over. */
  | {
      readonly kind: 'heartbeatError';
      readonly name: string;
      readonly error: BackendError;
      readonly remainingMs: number;
    }
  /** The same as the abort of the lock's signal. */
  | { readonly kind: 'lost'; readonly name: string; readonly reason: LossReason }
  /** The lock could not be given back at the end of its work; it is free when its lease is over. */
  | { readonly kind: 'releaseFailed'; readonly name: string; readonly error: unknown };

/** May be async: what it throws or rejects with harms nothing. */
export type LockListener = (event: LockEvent) => unknown;

export class LockEvents {
  readonly #listeners = new Set<LockListener>();

  /** @returns ends it. */
  on(listener: LockListener): () => void {
    // The same function may be given twice, and each ends by itself.
    const own: LockListener = (event) => listener(event);
    this.#listeners.add(own);
    return () => {
      this.#listeners.delete(own);
    };
  }

  emit(event: LockEvent): void {
    for (const listener of [...this.#listeners]) {
      // What a listener throws or rejects with is its own affair: the lock must go on.
      void (async () => {
        await listener(event);
      })().catch(() => undefined);
    }
  }
}
