/**
 * Items with a version: whoever writes says which version it has seen, so that no update is lost.
 *
 * `version` starts at 1 and grows by 1 with each write. `generation` is a nonce of the item's life: a key that was
 * deleted and made again has another one, so that an old edit of version 1 never fits the new version 1. `writeId` is
 * the nonce of the last write: by it a writer whose answer was lost knows its own write again.
 *
 * Every writer must keep to this. A write by others that leaves `version` as it is cannot be noticed. An item that
 * others made or replaced without a version is never touched: all calls that meet it throw an UnversionedItemError.
 *
 * Invariant: no call is applied twice. An edit is repeated after a lost answer because its own version refuses the
 * repeat. Creating and removing leave nothing behind that could refuse one (who else removed the item? who made it
 * again?), so these two are transactions, whose request token makes a repeat the same request; they cost twice as much.
 */
import { randomUUID } from 'node:crypto';
import { fullJitterMs, type Backoff } from '../backoff.ts';
import { sleep } from '../clock.ts';
import { BackendError, ConfigurationError, OnlyonceError, type OptionFault } from '../errors.ts';
import { conditionalUpdate } from './conditional-update.ts';
import { absent } from './conditions.ts';
import { readConsistently } from './consistent-read.ts';
import type { StoreContext } from './context.ts';
import type { Change } from './expressions.ts';
import { repeated } from './repeated.ts';
import { asStored, checkKey, faultsOfKey } from './storable.ts';
import { keyText, type Item, type ItemKey } from './table.ts';
import { tokenMemory } from './token-memory.ts';
import { TransactionCancelledError, type FailedAction } from './transactions/transaction-failures.ts';
import type { TransactionAction } from './transactions/transaction.ts';
import {
  checkCreated,
  checkEdit,
  guardedEdit,
  unchangedSince,
  versionedItem,
  type Edit,
  type SeenVersion,
  type VersionedItem,
} from './versioned-item.ts';

export { UnversionedItemError } from './versioned-item.ts';
export type { SeenVersion, VersionedItem } from './versioned-item.ts';

/** What an edit of a version that was seen came to. `saved`: `item` is the item with its new version. */
export type SaveAnswer =
  | { readonly kind: 'saved'; readonly item: VersionedItem }
  /** Another was faster, or the item is gone (`current` undefined). Nothing was written. */
  | { readonly kind: 'conflict'; readonly current: VersionedItem | undefined };

/**
 * What became of `versioned.update`. `attempts`: writes that were tried, from 1. `absent`: no item has this key, and
 * none was made.
 */
export type UpdateOutcome =
  | { readonly kind: 'updated'; readonly item: VersionedItem; readonly attempts: number }
  /** `change` returned undefined or no attribute: it found nothing to do. */
  | { readonly kind: 'unchanged'; readonly item: VersionedItem }
  | { readonly kind: 'absent' };

/** Every try met another writer. Nothing was written. */
export class VersionConflictError extends OnlyonceError {
  readonly code = 'VERSION_CONFLICT';
  readonly retryable = true;
}

/** What the options of `versioned.update` leave out: `maxAttempts` writes before a VersionConflictError. */
export const VERSIONED_DEFAULTS = { maxAttempts: 10 } as const;

/**
 * Items whose writers say which version they have seen, so that no update is lost. Holds as long as every writer keeps
 * to it. Calls throw a BackendError, and a ConfigurationError for keys and values that DynamoDB cannot keep.
 */
export interface VersionedItems {
  /**
   * Creates at version 1. `exists` brings the item that is there. Attributes that are undefined are left out.
   *
   * One limit: a try that was cut off may still be under way when a later one is told `exists`. Should the item be
   * removed before it arrives, within seconds, it makes the item after all. Nothing that is stored could refuse it.
   * @throws {ConfigurationError} for `version`, `generation` or `writeId`, a dot in a name, or what DynamoDB cannot keep.
   * @throws {UnversionedItemError} when the key belongs to an item without a version.
   * @throws {TransactionCancelledError} `retryable`, when another write was in the way until the deadline of 10 s.
   * @throws {BackendError} `ambiguous` when no answer came at all: it may exist by now.
   */
  create(
    item: ItemKey & Item,
  ): Promise<
    | { readonly kind: 'created'; readonly item: VersionedItem }
    | { readonly kind: 'exists'; readonly item: VersionedItem }
  >;
  /** Strongly consistent. @throws {UnversionedItemError} @throws {BackendError} */
  read(key: ItemKey): Promise<VersionedItem | undefined>;
  /**
   * Reads, runs `change` on it, writes; and again when another was faster, with the item that the refused write brought
   * along: a conflict costs no second read.
   * @param change pure: it may run several times. Returns the attributes to set (paths and expressions as in `Change`),
   * or undefined for nothing to do.
   * @param options `maxAttempts` writes. Range: 1-1000. Default: 10. `signal` ends the wait between them.
   * @throws {VersionConflictError} when all tries met another writer.
   * @throws the signal's reason when it aborts between tries; nothing was written then.
   * @throws as `save` does.
   */
  update(
    key: ItemKey,
    change: (current: VersionedItem) => Item | undefined,
    options?: { readonly maxAttempts?: number; readonly signal?: AbortSignal },
  ): Promise<UpdateOutcome>;
  /**
   * One try on the version that an editor has seen: the conflict is for the editor to see, not to be hidden.
   * @throws {ConfigurationError} for a change to `version`, `generation`, `writeId` or the key.
   * @throws {UnversionedItemError} when the item has lost its version to a writer without one.
   * @throws {BackendError} `ambiguous` when the answer was lost and the item cannot tell: it is gone, or others have
   * written over it since. Read before you decide.
   */
  save(key: ItemKey, change: Change, seen: SeenVersion): Promise<SaveAnswer>;
  /**
   * Deletes only the version that was seen. `removed`: by this call. An item that is gone already is a conflict.
   * @throws {UnversionedItemError} @throws {TransactionCancelledError} as `create` does.
   * @throws {BackendError} `ambiguous` when no answer came, or the repeat came so late (5 minutes: the process was
   * stopped) that nobody knows who removed the item.
   */
  remove(
    key: ItemKey,
    seen: SeenVersion,
  ): Promise<{ readonly kind: 'removed' } | Extract<SaveAnswer, { kind: 'conflict' }>>;
  /** The same write as `save`, as an action of a transaction. @throws {ConfigurationError} */
  saveAction(request: {
    readonly label: string;
    readonly key: ItemKey;
    readonly change: Change;
    readonly seen: SeenVersion;
  }): TransactionAction;
}

export function createVersionedItems(context: StoreContext): VersionedItems {
  return {
    create: (item) => create(context, item),
    async read(key) {
      checkKey(key);
      return versionedItem(key, await readConsistently(context, { PK: key.PK, SK: key.SK }));
    },
    update: (key, change, options) => update(context, { key, change, ...options }),
    save: (key, change, seen) => save(context, { key, change, seen }),
    remove: (key, seen) => remove(context, key, seen),
    saveAction({ label, ...edit }) {
      checkEdit(edit);
      return { kind: 'update', label, ...guardedEdit(edit, randomUUID()) };
    },
  };
}

const LABEL = 'versioned item';

/** A backend that does not bring the stored item along. */
const UNKNOWN = { reason: 'unknown', retryable: false } as const;

const BACKOFF: Backoff = { baseMs: 20, capMs: 500 };

async function create(context: StoreContext, item: ItemKey & Item): ReturnType<VersionedItems['create']> {
  checkCreated(item);
  const { PK, SK } = item;
  const generation = randomUUID();
  const created = { ...asStored(item), PK, SK, version: 1, generation, writeId: randomUUID() };
  const put: TransactionAction = { kind: 'put', label: LABEL, item: created, condition: absent() };
  const refused = await refusalOf(context, put, (found) => found?.['generation'] === generation);
  if (refused === undefined) return { kind: 'created', item: created };
  const stored = versionedItem(item, refused.item);
  if (stored === undefined) throw new BackendError('refused by an item that is not there', UNKNOWN);
  return { kind: 'exists', item: stored };
}

async function remove(context: StoreContext, key: ItemKey, seen: SeenVersion): ReturnType<VersionedItems['remove']> {
  checkEdit({ key, change: {}, seen });
  const isRemembered = tokenMemory(context.clock);
  let isOpen = false;
  const removal: TransactionAction = { kind: 'delete', label: LABEL, key, condition: unchangedSince(seen) };
  const refused = await refusalOf(context, removal, (found) => {
    // While the item lives on, it was surely not removed. Otherwise only the request token tells by whom.
    isOpen = found?.['generation'] !== seen.generation && !isRemembered();
    return false;
  });
  if (isOpen) throw ambiguous(`a removal of ${keyText(key)} went unanswered, and its repeat came too late to tell`);
  return refused === undefined ? { kind: 'removed' } : { kind: 'conflict', current: versionedItem(key, refused.item) };
}

/**
 * Writes in a transaction of its own.
 * @param wasOurs asked when a repeat was refused: whether the item that refused it shows that the first try landed.
 * @returns the failed condition, or undefined when the action was applied.
 */
async function refusalOf(
  context: StoreContext,
  action: TransactionAction,
  wasOurs: (found: Item | undefined) => boolean,
): Promise<FailedAction | undefined> {
  const wasApplied = (refusal: TransactionCancelledError) => wasOurs(refusal.conditionFailure(LABEL)?.item);
  try {
    await context.transactions.write([action], { wasApplied });
    return undefined;
  } catch (error) {
    const refused = error instanceof TransactionCancelledError ? error.conditionFailure(LABEL) : undefined;
    if (refused === undefined) throw error;
    return refused;
  }
}

async function save(context: StoreContext, edit: Edit): Promise<SaveAnswer> {
  checkEdit(edit);
  const writeId = randomUUID();
  const { answer, wasUnanswered } = await repeated(context, { mayApplyTwice: true }, async (wasUnanswered) => ({
    answer: await conditionalUpdate(context.target, guardedEdit(edit, writeId)),
    wasUnanswered,
  }));
  const isOurs = answer.kind === 'updated' || answer.item?.['writeId'] === writeId;
  if (!isOurs && wasUnanswered && mayHaveLanded(answer.item, edit.seen)) {
    throw ambiguous(`an edit of ${keyText(edit.key)} went unanswered, and the item has changed too much since to tell`);
  }
  const current = versionedItem(edit.key, answer.item);
  return isOurs && current !== undefined ? { kind: 'saved', item: current } : { kind: 'conflict', current };
}

/**
 * Whether an edit without an answer may have been applied, although the last write on the item is not it. It was not
 * when somebody else's write took the very version that it would have made.
 */
function mayHaveLanded(current: Item | undefined, seen: SeenVersion): boolean {
  return current?.['generation'] !== seen.generation || current['version'] !== seen.version + 1;
}

interface UpdateRequest {
  readonly key: ItemKey;
  readonly change: (current: VersionedItem) => Item | undefined;
  readonly maxAttempts?: number;
  readonly signal?: AbortSignal;
}

async function update(context: StoreContext, request: UpdateRequest): Promise<UpdateOutcome> {
  const { key, change, signal, maxAttempts = VERSIONED_DEFAULTS.maxAttempts } = request;
  checkUpdate(key, maxAttempts);
  let current = versionedItem(key, await readConsistently(context, { PK: key.PK, SK: key.SK }));
  for (let attempts = 1; ; attempts += 1) {
    signal?.throwIfAborted();
    if (current === undefined) return { kind: 'absent' };
    const set = change(current);
    if (set === undefined || Object.keys(set).length === 0) return { kind: 'unchanged', item: current };
    const answer = await save(context, { key, change: { set }, seen: current });
    if (answer.kind === 'saved') return { kind: 'updated', item: answer.item, attempts };
    if (attempts === maxAttempts) {
      throw new VersionConflictError(`all ${String(attempts)} tries to update ${keyText(key)} met another writer`);
    }
    current = answer.current;
    await sleep(context.clock, fullJitterMs(attempts, BACKOFF, context.random), signal);
  }
}

function checkUpdate(key: ItemKey, maxAttempts: number): void {
  const faults: OptionFault[] = faultsOfKey(key);
  if (!Number.isInteger(maxAttempts) || maxAttempts < 1 || maxAttempts > 1_000) {
    faults.push({ name: 'maxAttempts', rule: 'a whole number from 1 to 1000', value: maxAttempts });
  }
  if (faults.length > 0) throw new ConfigurationError('versioned update', faults);
}

function ambiguous(message: string): BackendError {
  return new BackendError(message, { reason: 'ambiguous', retryable: true });
}
