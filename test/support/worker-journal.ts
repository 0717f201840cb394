import { inspect } from 'node:util';
import { systemClock, type Cancel } from '../../src/clock.ts';

/** After so long without anything new a test has failed; says nothing about speed. Unit: ms. */
const GIVE_UP_AFTER_MS = 10_000;

interface Waiter<Entry> {
  readonly count: number;
  readonly fits: (entry: Entry) => boolean;
  readonly resolve: (entries: Entry[]) => void;
  readonly reject: (error: Error) => void;
  cancelGivingUp: Cancel;
}

/** What happened, in order, and a way to await that enough of it has. */
export class Journal<Entry> {
  readonly entries: Entry[] = [];
  readonly #waiters = new Set<Waiter<Entry>>();

  add(entry: Entry): void {
    this.entries.push(entry);
    for (const waiter of [...this.#waiters]) {
      waiter.cancelGivingUp();
      const matching = this.#matching(waiter);
      if (matching.length < waiter.count) {
        this.#armGivingUp(waiter);
      } else {
        this.#waiters.delete(waiter);
        waiter.resolve(matching);
      }
    }
  }

  /** Resolves with all entries that fit, at once when there are `count` of them. */
  when(count: number, fits: (entry: Entry) => boolean = () => true): Promise<Entry[]> {
    const there = this.entries.filter(fits);
    if (there.length >= count) return Promise.resolve(there);
    return new Promise((resolve, reject) => {
      const waiter: Waiter<Entry> = { count, fits, resolve, reject, cancelGivingUp: () => undefined };
      this.#waiters.add(waiter);
      this.#armGivingUp(waiter);
    });
  }

  #armGivingUp(waiter: Waiter<Entry>): void {
    waiter.cancelGivingUp = systemClock.schedule(() => {
      this.#waiters.delete(waiter);
      const latest = inspect(this.entries.slice(-5), { depth: 2, maxStringLength: 100, breakLength: 200 });
      const counts = `${String(waiter.count)} that fit; ${String(this.entries.length)} seen`;
      waiter.reject(new Error(`not ${counts}, the latest: ${latest}`));
    }, GIVE_UP_AFTER_MS);
  }

  #matching(waiter: Waiter<Entry>): Entry[] {
    return this.entries.filter(waiter.fits);
  }
}
