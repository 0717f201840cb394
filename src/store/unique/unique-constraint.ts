/**
 * Values that may exist once, although they are no key. For each value a sentinel item is written whose key is the
 * value, in the same transaction as the item that has it. The sentinel names its owner, so that only the owner's
 * change frees it.
 *
 * Invariant: sentinels are exactly the normalised values of the items that exist. It holds as long as the attribute is
 * written through here alone, or with `claimAction` and `freeAction` in transactions of one's own. Items from before the
 * constraint may lack a sentinel: they are changed and removed like others, and free nothing that is not theirs.
 */
import { randomUUID } from 'node:crypto';
import { ConfigurationError, type OptionFault } from '../../errors.ts';
import { absent, all } from '../conditions.ts';
import { readConsistently } from '../consistent-read.ts';
import type { StoreContext } from '../context.ts';
import type { Condition } from '../expressions.ts';
import { checkKey } from '../storable.ts';
import { keyText, uniqueKey, type Item, type ItemKey } from '../table.ts';
import type { TransactionAction } from '../transactions/transaction.ts';
import { normaliseText, type Normalise } from './normalise.ts';
import {
  attributeOf,
  CLAIM_ID,
  claimable,
  isAttributeName,
  keyOf,
  normalisedValue,
  notOwnedBy,
  ownedBy,
  readSentinel,
  sentinelItem,
  stillHas,
  storedValue,
} from './sentinel.ts';
import { ambiguousWrite, writeTied, writeTiedInForms, type TiedActions, type TiedAnswer } from './tied-write.ts';

/**
 * An attribute whose value no two items of a scope have at once. A wrong one is a ConfigurationError of `store.unique`.
 */
export interface UniqueConstraint {
  /**
   * Names the constraint; part of the sentinel's key, so it stays as it is once there are items. No # in it. For example
   * `customer-email`.
   */
  readonly scope: string;
  /** The attribute of the item itself that holds the value, as people wrote it. No path: no dots in it. */
  readonly attribute: string;
  /**
   * Makes values equal that people take for equal. Stable: its own result stays as it is. A repair can only judge all
   * sentinels of a rule of your own when it is given the constraint.
   * @defaultValue normaliseText
   */
  readonly normalise?: Normalise;
}

/** What a write under a constraint came to. `written`: the item and its sentinels, all of it. */
export type UniqueAnswer =
  | { readonly kind: 'written' }
  /**
   * The value belongs to another item. Nothing was written. `owner` is the sentinel itself where it names no owner that
   * could be one.
   */
  | { readonly kind: 'taken'; readonly owner: ItemKey }
  /** The item is there already (create), gone, or was changed meanwhile (change, remove). Nothing was written. */
  | { readonly kind: 'conflict'; readonly current: Item | undefined };

/**
 * All writes: a value that its rule refuses is a ConfigurationError. @throws {BackendError} with reason `ambiguous` when
 * a try went unanswered and nothing that is stored tells whether it was applied: read the item before you repeat it.
 */
export interface UniqueValues {
  /** Creates the item and claims its value, both or none. Without the attribute it claims nothing. */
  create(item: ItemKey & Item): Promise<UniqueAnswer>;
  /**
   * Changes the value: frees the old one, claims the new one and updates the item, all or none. An item without a value
   * gets one. A value that is only written otherwise (`A@x.com`) changes the item alone. To the value that the item has
   * already it is `written` too.
   * @param options.condition on the item, besides. False: `conflict`.
   */
  change(key: ItemKey, to: string, options?: { readonly condition?: Condition }): Promise<UniqueAnswer>;
  /** Removes the item and frees its value. */
  remove(key: ItemKey): Promise<UniqueAnswer>;
  /** Whose it is. One consistent read. */
  owner(value: string): Promise<ItemKey | undefined>;
  /**
   * For transactions of your own: they must also write the item, under a condition on its present value. With a check
   * on that value instead of a write it gives an item from before the constraint its sentinel.
   */
  claimAction(value: string, owner: ItemKey): TransactionAction;
  freeAction(value: string, owner: ItemKey): TransactionAction;
}

/** A constraint at work. */
interface Unique extends Required<UniqueConstraint> {
  readonly context: StoreContext;
}

/** @throws {ConfigurationError} when the constraint is wrong; all faults are listed. */
export function createUniqueValues(context: StoreContext, constraint: UniqueConstraint): UniqueValues {
  checkConstraint(constraint);
  const { scope, attribute, normalise = normaliseText } = constraint;
  const unique: Unique = { context, scope, attribute, normalise };
  return {
    create: (item) => create(unique, item),
    change: (key, to, { condition } = {}) => change(unique, keyOf(key), { to, condition }),
    remove: (key) => remove(unique, keyOf(key)),
    async owner(value) {
      const sentinel = await readConsistently(context, uniqueKey(unique.scope, valueOf(unique, value)));
      return sentinel && ownerNamedBy(sentinel);
    },
    claimAction: (value, owner) => claim(unique, value, owner),
    freeAction: (value, owner) => free(unique, valueOf(unique, value), owner),
  };
}

async function create(unique: Unique, item: ItemKey & Item): Promise<UniqueAnswer> {
  checkKey(item);
  const put: TransactionAction = { kind: 'put', label: 'item', item, condition: absent() };
  const raw = attributeOf(item, unique.attribute);
  if (raw !== undefined && typeof raw !== 'string') throw noText(unique.attribute, raw);
  const claimed = raw === undefined ? undefined : claim(unique, raw, item);
  const answer = await writeTied(unique.context, { item: put, ...(claimed && { claim: claimed }) });
  return settle(answer, { what: 'a creation', wasApplied: () => isStored(unique.context, claimed) });
}

async function change(
  unique: Unique,
  key: ItemKey,
  { to, condition }: { readonly to: string; readonly condition: Condition | undefined },
): Promise<UniqueAnswer> {
  checkKey(key);
  const { context, attribute } = unique;
  const target = valueOf(unique, to);
  const current = await readConsistently(context, key);
  if (current === undefined) return { kind: 'conflict', current };
  const raw = attributeOf(current, attribute);
  const prior = storedValue(unique, raw);
  const isSameValue = prior === target;
  const item: TransactionAction = {
    kind: 'update',
    label: 'item',
    key,
    change: { set: { [attribute]: to } },
    condition: all(stillHas(attribute, raw), ...(condition ? [condition] : [])),
  };
  // Two actions on one key would be refused, and the sentinel that is there is the right one.
  const claimed = isSameValue ? undefined : claim(unique, to, key);
  const tied = { item, ...(claimed && { claim: claimed }) };
  const answer = await writeTiedInForms(
    context,
    formsOf(unique, tied, { value: isSameValue ? undefined : prior, key }),
  );
  return settle(answer, {
    what: 'a change',
    current,
    // Without a claim there is nothing to tell writers by, and nothing to tell apart: the item is as it was to be.
    wasApplied: (found) => (isSameValue ? attributeOf(found, attribute) === to : isStored(context, claimed)),
  });
}

async function remove(unique: Unique, key: ItemKey): Promise<UniqueAnswer> {
  checkKey(key);
  const current = await readConsistently(unique.context, key);
  if (current === undefined) return { kind: 'conflict', current };
  const raw = attributeOf(current, unique.attribute);
  const item: TransactionAction = { kind: 'delete', label: 'item', key, condition: stillHas(unique.attribute, raw) };
  const value = storedValue(unique, raw);
  const forms = formsOf(unique, { item }, { value, key });
  const answer = await writeTiedInForms(unique.context, forms);
  // What is gone does not say who removed it. It need not: the table is as was asked for.
  const wasApplied = async (found: Item | undefined): Promise<boolean> =>
    found === undefined && !(await ownsSentinel(unique, value, key));
  return settle(answer, { what: 'a removal', current, wasApplied });
}

async function ownsSentinel(unique: Unique, value: string | undefined, owner: ItemKey): Promise<boolean> {
  if (value === undefined) return false;
  const sentinel = await readConsistently(unique.context, uniqueKey(unique.scope, value));
  return sentinel !== undefined && keyText(ownerNamedBy(sentinel)) === keyText(owner);
}

function valueOf(unique: Unique, raw: unknown): string {
  if (typeof raw !== 'string') throw noText(unique.attribute, raw);
  return normalisedValue(unique, raw);
}

function claim(unique: Unique, raw: string, owner: ItemKey): TransactionAction & { readonly kind: 'put' } {
  checkKey(owner);
  return {
    kind: 'put',
    label: `claim of ${unique.scope}`,
    role: 'unique',
    item: sentinelItem(unique, { raw, value: valueOf(unique, raw), owner, claimId: randomUUID() }),
    condition: claimable(owner),
  };
}

function free(unique: Unique, value: string, owner: ItemKey): TransactionAction {
  checkKey(owner);
  const key = uniqueKey(unique.scope, value);
  return { kind: 'delete', label: `former ${unique.scope}`, key, condition: ownedBy(owner) };
}

/** Frees the former value; or, where its sentinel is not this item's, makes sure of that and leaves it alone. */
function formsOf(
  unique: Unique,
  tied: TiedActions,
  former: { readonly value: string | undefined; readonly key: ItemKey },
): readonly [TiedActions, ...TiedActions[]] {
  if (former.value === undefined) return [tied];
  const freed = free(unique, former.value, former.key);
  const key = uniqueKey(unique.scope, former.value);
  const unowned: TransactionAction = { kind: 'check', label: freed.label, key, condition: notOwnedBy(former.key) };
  return [
    { ...tied, former: freed },
    { ...tied, former: unowned },
  ];
}

interface Settlement {
  readonly what: string;
  /** The item as it was read. */
  readonly current?: Item;
  /** Whether the stored items prove that a try without an answer was applied. */
  readonly wasApplied: (found: Item | undefined) => boolean | Promise<boolean>;
}

async function settle(answer: TiedAnswer, { what, current, wasApplied }: Settlement): Promise<UniqueAnswer> {
  switch (answer.kind) {
    case 'written':
      return { kind: 'written' };
    case 'taken':
      return { kind: 'taken', owner: ownerNamedBy(answer.sentinel) };
    case 'former moved':
      return { kind: 'conflict', current };
    case 'item refused':
      if (!answer.wasUnanswered) return { kind: 'conflict', current: answer.current };
      if (await wasApplied(answer.current)) return { kind: 'written' };
      throw ambiguousWrite(what);
  }
}

/** Our own claim is there: by its nonce, which no other claim has. */
async function isStored(context: StoreContext, claimed: { readonly item: ItemKey & Item } | undefined) {
  if (claimed === undefined) return false;
  const stored = await readConsistently(context, keyOf(claimed.item));
  return stored?.[CLAIM_ID] === claimed.item[CLAIM_ID];
}

function ownerNamedBy(sentinel: Item): ItemKey {
  const { owner, key } = readSentinel(sentinel);
  return owner ?? key;
}

function checkConstraint({ scope, attribute }: UniqueConstraint): void {
  const faults: OptionFault[] = [];
  if (scope === '' || scope.includes('#') || !scope.isWellFormed()) {
    faults.push({ name: 'scope', rule: 'a text without #, not empty', value: scope });
  }
  if (!isAttributeName(attribute)) {
    faults.push({ name: 'attribute', rule: 'an attribute outside the key, without dots', value: attribute });
  }
  if (faults.length > 0) throw new ConfigurationError('unique constraint', faults);
}

function noText(attribute: string, value: unknown): ConfigurationError {
  return new ConfigurationError('unique value', [{ name: attribute, rule: 'a text', value: typeof value }]);
}
