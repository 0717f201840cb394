/**
 * Which idempotency keys were decided, and how. A key is remembered for 24 h of the injected wall clock and not
 * longer; the memory is bounded by that window and by `maxKeys`, above which new keys are refused rather than known
 * ones forgotten early.
 */
import type { Clock } from '../clock.ts';
import { IDEMPOTENCY_WINDOW_MS } from './charge-contract.ts';
import type { JournalEntry } from './charge-journal.ts';

/** What is known of a key. Without an entry, its first request is still being decided. */
export interface KnownKey {
  readonly requestHash: string;
  readonly entry: JournalEntry | undefined;
}

const MAX_KEYS = 500_000;

/** The memory for keys. */
export class KeyMemory {
  readonly #clock: Clock;
  readonly #maxKeys: number;
  /** In the order of their decision, so the oldest are found at the front. */
  readonly #decided = new Map<string, JournalEntry>();
  /** Keys whose first request is not durable yet, with the hash of that request. */
  readonly #inUse = new Map<string, string>();

  /** `maxKeys`: keys in memory at one time. @defaultValue 500000 */
  constructor(clock: Clock, options: { maxKeys?: number } = {}) {
    this.#clock = clock;
    this.#maxKeys = options.maxKeys ?? MAX_KEYS;
  }

  /** How many keys take up memory, one that is in use included. */
  get size(): number {
    return this.#decided.size + this.#inUse.size;
  }

  lookUp(key: string): KnownKey | undefined {
    const inUse = this.#inUse.get(key);
    if (inUse !== undefined) return { requestHash: inUse, entry: undefined };
    const entry = this.#decided.get(key);
    return entry === undefined || this.#isOver(entry) ? undefined : { requestHash: entry.requestHash, entry };
  }

  /** Forgets what is outside the window, and says whether one more key may come. */
  hasRoom(): boolean {
    for (const [key, entry] of this.#decided) {
      if (!this.#isOver(entry)) break;
      this.#decided.delete(key);
    }
    return this.size < this.#maxKeys;
  }

  /** Keeps the decision of a key; an entry without a key or outside the window is left out. */
  remember(entry: JournalEntry): void {
    if (entry.idempotencyKey === null || this.#isOver(entry)) return;
    // Put at the end, also when the key was used in an earlier window.
    this.#decided.delete(entry.idempotencyKey);
    this.#decided.set(entry.idempotencyKey, entry);
  }

  /** Marks the key as in use while `decide` runs. */
  async whileInUse(known: { key: string; requestHash: string }, decide: () => Promise<void>): Promise<void> {
    this.#inUse.set(known.key, known.requestHash);
    try {
      await decide();
    } finally {
      this.#inUse.delete(known.key);
    }
  }

  #isOver(entry: JournalEntry): boolean {
    return this.#clock.nowMs() - entry.decidedAtMs >= IDEMPOTENCY_WINDOW_MS;
  }
}
