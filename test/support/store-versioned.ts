/** Versioned items to test with, made and looked at past all faults. */
import type { Item, ItemKey } from '../../src/store/table.ts';
import type { VersionedItem } from '../../src/store/versioned.ts';
import type { StoreBench } from './store-bench.ts';

export interface VersionedScene {
  freshKey(): ItemKey;
  /** A new item at version 1. */
  made(attributes: Item): Promise<{ readonly key: ItemKey; readonly item: VersionedItem }>;
  /** What another editor does meanwhile. */
  edited(key: ItemKey, set: Item): Promise<VersionedItem>;
  stored(key: ItemKey): Promise<VersionedItem>;
  /** An item of a writer who knows nothing of versions. */
  foreign(attributes: Item): Promise<ItemKey>;
}

export function versionedScene(bench: StoreBench): VersionedScene {
  const freshKey = (): ItemKey => ({ PK: bench.unique('NOTE#ä #'), SK: 'META' });

  async function stored(key: ItemKey): Promise<VersionedItem> {
    const item = await bench.truth.versioned.read(key);
    if (item === undefined) throw new Error('no such item');
    return item;
  }

  return {
    freshKey,
    stored,
    async made(attributes) {
      const key = freshKey();
      await bench.truth.versioned.create({ ...key, ...attributes });
      return { key, item: await stored(key) };
    },
    async edited(key, set) {
      const outcome = await bench.truth.versioned.update(key, () => set);
      if (outcome.kind !== 'updated') throw new Error(`not edited: ${outcome.kind}`);
      return outcome.item;
    },
    async foreign(attributes) {
      const key = freshKey();
      await bench.truth.transactions.write([{ kind: 'put', label: 'theirs', item: { ...key, ...attributes } }]);
      return key;
    },
  };
}
