import { inspect } from 'node:util';
import { systemClock } from '../../src/clock.ts';

/** Bounds a test that fails; says nothing about speed. Unit: ms. */
const GIVE_UP_AFTER_MS = 15_000;

interface Waiter<Entry> {
  readonly count: number;
  readonly fits: (entry: Entry) => boolean;
  readonly resolve: (entries: Entry[]) => void;
}

/** What happened, in order, and a way to await that enough of it has. */
export class Journal<Entry> {
  readonly entries: Entry[] = [];
  #waiters: Waiter<Entry>[] = [];

  add(entry: Entry): void {
    this.entries.push(entry);
    const isReady = (waiter: Waiter<Entry>): boolean => this.#matching(waiter).length >= waiter.count;
    const ready = this.#waiters.filter(isReady);
    this.#waiters = this.#waiters.filter((waiter) => !ready.includes(waiter));
    for (const waiter of ready) waiter.resolve(this.#matching(waiter));
  }

  /** Resolves with all entries that fit, at once when there are `count` of them. */
  when(count: number, fits: (entry: Entry) => boolean = () => true): Promise<Entry[]> {
    const there = this.entries.filter(fits);
    if (there.length >= count) return Promise.resolve(there);
    return new Promise((resolve, reject) => {
      const cancel = systemClock.schedule(() => {
        const seen = inspect(this.entries, { depth: 3, maxArrayLength: 12, maxStringLength: 120 });
        reject(new Error(`not ${String(count)} that fit; seen: ${seen}`));
      }, GIVE_UP_AFTER_MS);
      this.#waiters.push({
        count,
        fits,
        resolve: (entries) => {
          cancel();
          resolve(entries);
        },
      });
    });
  }

  #matching(waiter: Waiter<Entry>): Entry[] {
    return this.entries.filter(waiter.fits);
  }
}
