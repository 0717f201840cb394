/**
 * How much of an effect record its step results may take. DynamoDB refuses an item over 400 KiB, and it would refuse it
 * at the commit: for good, and after the outside calls were made. So the room is shared out before:
 *
 *   400 KiB = 300 KiB results kept whole + 64 KiB response + 16 KiB digests + 20 KiB all the rest of the record
 *
 * Results are kept whole in the order in which they come while they fit, then by digest, then not at all. What is not
 * kept whole counts as a call in doubt, as it does when a single result is too large.
 */
import { digestOf, type StoredValue } from './stored-value.ts';

/** Names and results that are kept whole, together. */
const MAX_STEPS_BYTES: number = 300 * 1024;

/** Digests may take this much more: some ninety of them. */
const MAX_DIGESTS_BYTES: number = 16 * 1024;

/** What DynamoDB adds for the names and the nesting of one entry, and some more. */
const ENTRY_BYTES = 48;

const DIGEST_BYTES = 80;

export class StepBudget {
  readonly #bytesOf = new Map<string, number>();

  /** @param steps what the record holds already. */
  constructor(steps: Iterable<readonly [string, unknown]>) {
    for (const [step, stored] of steps) this.#bytesOf.set(step, entryBytes(step, stored));
  }

  /**
   * Takes the room for a result, before it is sent: two steps at once never share it.
   * @returns what is to be kept; undefined when there is not even room for a digest.
   */
  take(step: string, wanted: StoredValue): StoredValue | undefined {
    const usedBytes = this.#usedBeside(step);
    const choices = 'json' in wanted ? [wanted, digestOf(wanted.json)] : [wanted];
    for (const choice of choices) {
      const bytes = usedBytes + entryBytes(step, choice);
      const limitBytes = 'json' in choice ? MAX_STEPS_BYTES : MAX_STEPS_BYTES + MAX_DIGESTS_BYTES;
      if (bytes > limitBytes) continue;
      this.#bytesOf.set(step, entryBytes(step, choice));
      return choice;
    }
    return undefined;
  }

  /** An earlier result of this step is replaced. */
  #usedBeside(step: string): number {
    return [...this.#bytesOf].reduce((sum, [name, bytes]) => (name === step ? sum : sum + bytes), 0);
  }
}

function entryBytes(step: string, stored: unknown): number {
  const isWhole = typeof stored === 'object' && stored !== null && 'json' in stored && typeof stored.json === 'string';
  const bytes = isWhole ? Buffer.byteLength(String(stored.json)) : DIGEST_BYTES;
  return Buffer.byteLength(step) + ENTRY_BYTES + bytes;
}
