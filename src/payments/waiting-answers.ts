/**
 * Answers that were decided but are kept back: held until released, or late by a delay. Also the place where a demo
 * waits for a request to be held, so that it can act between the provider's charge and its answer without sleeping.
 */
import { randomUUID } from 'node:crypto';
import type { Cancel, Clock } from '../clock.ts';

/** A request whose answer is held. */
export interface HeldRequest {
  readonly id: string;
  readonly ruleId: string;
  /** Grows by one with each request that is held; pass the highest one seen to wait for newer ones. */
  readonly sequence: number;
  readonly reference: string;
  readonly caller: string | null;
  /** When the charge was made, wall clock of the provider, ms since the epoch. */
  readonly chargedAtMs: number;
}

/** How waiting ended. `full` means that it never began. */
export type WaitEnd = 'released' | 'gone' | 'full';

interface Waiting {
  /** Undefined for an answer that is late: nobody releases that one by name. */
  readonly held: HeldRequest | undefined;
  release(): void;
}

interface Watcher {
  readonly afterSequence: number;
  wake(): void;
}

const MAX_WAITING = 128;
const MAX_WATCHERS = 32;

/** A bounded set of kept-back answers. */
export class WaitingAnswers {
  readonly #clock: Clock;
  readonly #waiting = new Set<Waiting>();
  readonly #watchers = new Set<Watcher>();
  #sequence = 0;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Keeps an answer until `release`, or until `gone` aborts because the caller hung up. */
  hold(request: Omit<HeldRequest, 'id' | 'sequence'>, gone: AbortSignal): Promise<WaitEnd> {
    if (this.#waiting.size >= MAX_WAITING || gone.aborted) return Promise.resolve(gone.aborted ? 'gone' : 'full');
    this.#sequence += 1;
    const held = { id: randomUUID(), sequence: this.#sequence, ...request };
    const end = this.#wait(held, gone);
    for (const watcher of this.#watchers) {
      if (held.sequence > watcher.afterSequence) watcher.wake();
    }
    return end;
  }

  /** Keeps an answer for `delayMs`, or until `releaseAll` or `gone`. */
  delay(delayMs: number, gone: AbortSignal): Promise<WaitEnd> {
    if (this.#waiting.size >= MAX_WAITING || gone.aborted) return Promise.resolve(gone.aborted ? 'gone' : 'full');
    return this.#wait(undefined, gone, delayMs);
  }

  /** Lets go of the held request with this id, or of all that the rule with this id holds. @returns how many. */
  release(id: string): number {
    const chosen = [...this.#waiting].filter(({ held }) => held?.id === id || held?.ruleId === id);
    for (const waiting of chosen) waiting.release();
    return chosen.length;
  }

  /** Lets go of everything, late answers too. */
  releaseAll(): void {
    for (const waiting of [...this.#waiting]) waiting.release();
  }

  /** What is held now and came after `afterSequence`, oldest first. */
  held(afterSequence = 0): HeldRequest[] {
    return [...this.#waiting]
      .map(({ held }) => held)
      .filter((held) => held !== undefined)
      .filter(({ sequence }) => sequence > afterSequence);
  }

  /**
   * Waits until something newer than `afterSequence` is held, `waitMs` is over, or `gone` aborts.
   * @returns what is then held; `full` when too many wait already.
   */
  watch(afterSequence: number, waitMs: number, gone: AbortSignal): Promise<HeldRequest[] | 'full'> {
    const now = this.held(afterSequence);
    if (now.length > 0 || waitMs === 0 || gone.aborted) return Promise.resolve(now);
    if (this.#watchers.size >= MAX_WATCHERS) return Promise.resolve('full');
    return new Promise((resolve) => {
      const wake = (): void => {
        cancel();
        gone.removeEventListener('abort', wake);
        this.#watchers.delete(watcher);
        resolve(this.held(afterSequence));
      };
      const watcher: Watcher = { afterSequence, wake };
      const cancel = this.#clock.schedule(wake, waitMs);
      gone.addEventListener('abort', wake, { once: true });
      this.#watchers.add(watcher);
    });
  }

  #wait(held: HeldRequest | undefined, gone: AbortSignal, delayMs?: number): Promise<WaitEnd> {
    return new Promise((resolve) => {
      let cancel: Cancel | undefined;
      const end = (how: WaitEnd): void => {
        cancel?.();
        gone.removeEventListener('abort', onGone);
        this.#waiting.delete(waiting);
        resolve(how);
      };
      const onGone = (): void => {
        end('gone');
      };
      const release = (): void => {
        end('released');
      };
      const waiting: Waiting = { held, release };
      this.#waiting.add(waiting);
      gone.addEventListener('abort', onGone, { once: true });
      if (delayMs !== undefined) cancel = this.#clock.schedule(release, delayMs);
    });
  }
}
