/** What the tests of unique values share: a constraint of its own per test, and what is stored of it. */
import type { StoreOptions } from '../../src/store/store.ts';
import type { Item, ItemKey } from '../../src/store/table.ts';
import type { UniqueConstraint, UniqueValues } from '../../src/store/unique/unique-constraint.ts';
import type { StoreBench } from './store-bench.ts';

export interface UniqueScene {
  readonly constraint: UniqueConstraint;
  /** The key of a user by a short name. */
  key(id: string): ItemKey;
  user(id: string, email?: unknown): ItemKey & Item;
  /** The constraint as faults reach it. */
  unique(options?: StoreOptions): UniqueValues;
  /** The same beyond all faults. */
  readonly truth: UniqueValues;
  /** Who owns which normalised value, by short names. */
  sentinels(): Promise<Record<string, string>>;
  /** Which user has which value, as it is written; users without one have null. */
  emails(): Promise<Record<string, unknown>>;
  /** Puts an item as it is, around the constraint. */
  put(item: ItemKey & Item): Promise<void>;
  delete(key: ItemKey): Promise<void>;
}

export function uniqueScene(bench: StoreBench, normalise?: (value: string) => string): UniqueScene {
  const scope = bench.unique('email');
  const constraint: UniqueConstraint = { scope, attribute: 'email', ...(normalise && { normalise }) };
  const prefix = `USER#${scope}#`;
  const key = (id: string): ItemKey => ({ PK: `${prefix}${id}`, SK: 'PROFILE' });
  const shortName = (ref: unknown): string => String((ref as ItemKey | undefined)?.PK).replace(prefix, '');

  async function itemsUnder(start: string): Promise<Item[]> {
    const found: Item[] = [];
    for await (const item of bench.truth.scan()) if (String(item['PK']).startsWith(start)) found.push(item);
    return found;
  }

  return {
    constraint,
    key,
    user: (id, email) => ({ ...key(id), ...(email !== undefined && { email }) }),
    unique: (options) => bench.store(options).unique(constraint),
    get truth() {
      return bench.truth.unique(constraint);
    },
    async sentinels() {
      const start = `UNIQUE#${scope}#`;
      const items = await itemsUnder(start);
      return Object.fromEntries(items.map(({ PK, ref }) => [String(PK).slice(start.length), shortName(ref)]));
    },
    async emails() {
      const items = await itemsUnder(prefix);
      return Object.fromEntries(items.map((item) => [shortName(item), item['email'] ?? null]));
    },
    put: (item) => bench.truth.transactions.write([{ kind: 'put', label: 'any', item }]),
    delete: ({ PK, SK }) => bench.truth.transactions.write([{ kind: 'delete', label: 'any', key: { PK, SK } }]),
  };
}
