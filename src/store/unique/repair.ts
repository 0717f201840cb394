/**
 * Finds sentinels that no item stands behind, says why, and removes them without a race.
 *
 * They come from writes around the constraint: an item that ended by its TTL, or was changed or deleted by other means.
 * Their values can never be used again until they are removed.
 */
import { ScanCommand } from '@aws-sdk/lib-dynamodb';
import { fullJitterMs, type Backoff } from '../../backoff.ts';
import { sleep } from '../../clock.ts';
import { BackendError } from '../../errors.ts';
import { toBackendError } from '../backend-error.ts';
import { absent } from '../conditions.ts';
import { readConsistently } from '../consistent-read.ts';
import type { StoreContext } from '../context.ts';
import { repeated } from '../repeated.ts';
import { keyText, TABLE, UNIQUE_PREFIX, type Item, type ItemKey } from '../table.ts';
import type { TransactionAction } from '../transactions/transaction.ts';
import { TransactionCancelledError } from '../transactions/transaction-writer.ts';
import { NORMALISERS, type Normalise } from './normalise.ts';
import {
  attributeOf,
  isSentinel,
  readSentinel,
  stillHas,
  storedValue,
  unchangedSince,
  type Sentinel,
} from './sentinel.ts';
import type { UniqueConstraint } from './unique-constraint.ts';

/**
 * A value that is taken although no item has it: its sentinel was left behind. Nobody can use the value until
 * `store.removeUniqueOrphan` removes it.
 */
export interface Orphan {
  readonly scope: string;
  readonly value: string;
  readonly sentinel: ItemKey;
  /** Undefined when the sentinel is `unreadable`. */
  readonly owner: ItemKey | undefined;
  /** `owner gone`: no such item. `value changed`: the item has another value now. `unreadable`: no sentinel of ours. */
  readonly reason: 'owner gone' | 'value changed' | 'unreadable';
}

/**
 * What a look at a sentinel came to. `undecided`: its owner has another value by the letter, and whether the two are the
 * same by the constraint's own rule cannot be said without the constraint.
 */
export type SentinelState = 'held' | 'undecided' | Orphan['reason'];

/** A sentinel and what it is worth, whether or not it is an orphan: `asOrphan` tells. */
export interface SentinelReport extends Omit<Orphan, 'reason'> {
  readonly state: SentinelState;
}

/** Where sentinels and their owners are read. A store is one. */
export interface SentinelSource {
  /** Strongly consistent; may bring other items too. */
  scan(): AsyncIterable<Item>;
  /** Strongly consistent. */
  get(key: ItemKey): Promise<Item | undefined>;
}

/** Owners looked up at once. */
const BATCH = 16;

/**
 * Every sentinel with what it is worth.
 * @param constraints those with rules of their own; without them their sentinels may be `undecided`.
 * @throws {BackendError}
 */
export async function* examineSentinels(
  source: SentinelSource,
  constraints: readonly UniqueConstraint[] = [],
): AsyncGenerator<SentinelReport> {
  const look = (sentinel: Sentinel): Promise<SentinelReport | undefined> => examine(source, sentinel, constraints);
  let batch: Sentinel[] = [];
  for await (const item of withBackendErrors(source.scan())) {
    if (!isSentinel(item)) continue;
    batch.push(readSentinel(item));
    if (batch.length < BATCH) continue;
    yield* (await Promise.all(batch.map(look))).filter((report) => report !== undefined);
    batch = [];
  }
  yield* (await Promise.all(batch.map(look))).filter((report) => report !== undefined);
}

/**
 * The orphans, page by page. What a running change moves at this moment is not reported.
 * @param constraints those with rules of their own; without them a sentinel that only they can judge is not reported.
 * @throws {BackendError}
 */
export async function* findOrphans(
  context: StoreContext,
  constraints: readonly UniqueConstraint[] = [],
): AsyncGenerator<Orphan> {
  const source = { scan: () => scanSentinels(context), get: (key: ItemKey) => readConsistently(context, key) };
  for await (const report of examineSentinels(source, constraints)) {
    const orphan = asOrphan(report);
    if (orphan !== undefined) yield orphan;
  }
}

/** @returns undefined when it is none. */
export function asOrphan({ state, ...rest }: SentinelReport): Orphan | undefined {
  return state === 'held' || state === 'undecided' ? undefined : { ...rest, reason: state };
}

const MAX_ATTEMPTS = 6;
const BACKOFF: Backoff = { baseMs: 25, capMs: 500 };

/**
 * Removes the sentinel in one transaction that checks that its owner still does not have the value.
 * @returns false when it is an orphan no more; nothing was removed then.
 * @throws {BackendError} with reason `conflict` when its owner was changed during each try.
 */
export async function removeOrphan(
  context: StoreContext,
  orphan: Orphan,
  constraints: readonly UniqueConstraint[] = [],
): Promise<boolean> {
  let wasUnanswered = false;
  for (let attempt = 1; attempt <= MAX_ATTEMPTS; attempt += 1) {
    const item = await readConsistently(context, orphan.sentinel);
    // After a try without an answer it was that try, or another repair, that removed it.
    if (item === undefined) return wasUnanswered;
    const sentinel = readSentinel(item);
    if (!isSentinel(item) || !isSameOwner(sentinel.owner, orphan.owner)) return false;
    const owner = sentinel.owner && (await readConsistently(context, sentinel.owner));
    const state = judge(sentinel, owner, constraints);
    if (state === 'held' || state === 'undecided') return false;
    try {
      const wasApplied = (): boolean => {
        wasUnanswered = true;
        return false;
      };
      await context.transactions.write(removal(sentinel, owner), { wasApplied });
      return true;
    } catch (error) {
      if (!(error instanceof TransactionCancelledError) || error.failedConditions.length === 0) throw error;
    }
    await sleep(context.clock, fullJitterMs(attempt, BACKOFF, context.random));
  }
  throw new BackendError(`the owner of ${orphan.sentinel.PK} was changed during each try to remove it`, {
    reason: 'conflict',
    retryable: true,
  });
}

function removal(sentinel: Sentinel, owner: Item | undefined): readonly TransactionAction[] {
  const { key, attribute } = sentinel;
  const remove = { kind: 'delete', label: 'sentinel', key, condition: unchangedSince(sentinel) } as const;
  if (sentinel.owner === undefined) return [remove];
  const isGone = owner === undefined || attribute === undefined;
  const condition = isGone ? absent() : stillHas(attribute, attributeOf(owner, attribute));
  return [{ kind: 'check', label: 'owner', key: sentinel.owner, condition }, remove];
}

/** @returns undefined when the sentinel was freed or claimed again meanwhile: it was caught in a change. */
async function examine(
  source: SentinelSource,
  sentinel: Sentinel,
  constraints: readonly UniqueConstraint[],
): Promise<SentinelReport | undefined> {
  const owner = sentinel.owner && (await source.get(sentinel.owner));
  const state = judge(sentinel, owner, constraints);
  const report = { scope: sentinel.scope, value: sentinel.value, sentinel: sentinel.key, owner: sentinel.owner, state };
  if (state === 'held') return report;
  // The owner was read after the sentinel. Only a claim that is still the same one was there at that moment.
  const now = await source.get(sentinel.key);
  const isSame = now !== undefined && readSentinel(now).claimId === sentinel.claimId;
  return isSame && isSameOwner(readSentinel(now).owner, sentinel.owner) ? report : undefined;
}

function judge(sentinel: Sentinel, owner: Item | undefined, constraints: readonly UniqueConstraint[]): SentinelState {
  if (sentinel.owner === undefined) return 'unreadable';
  if (owner === undefined) return 'owner gone';
  if (sentinel.attribute === undefined) return 'undecided';
  const raw = attributeOf(owner, sentinel.attribute);
  if (typeof raw !== 'string') return 'value changed';
  if (raw === sentinel.raw) return 'held';
  const normalise = ruleOf(sentinel, constraints);
  if (normalise === undefined) return 'undecided';
  const rule = { scope: sentinel.scope, normalise };
  const value = storedValue(rule, raw);
  // The claimed text too: Unicode grows, and a newer version may normalise it otherwise than when it was claimed.
  const isHeld = value !== undefined && (value === sentinel.value || value === storedValue(rule, sentinel.raw));
  return isHeld ? 'held' : 'value changed';
}

function ruleOf(sentinel: Sentinel, constraints: readonly UniqueConstraint[]): Normalise | undefined {
  const own = constraints.find(({ scope }) => scope === sentinel.scope)?.normalise;
  if (own !== undefined) return own;
  const { rule } = sentinel;
  return rule !== undefined && Object.hasOwn(NORMALISERS, rule) ? NORMALISERS[rule] : undefined;
}

function isSameOwner(left: ItemKey | undefined, right: ItemKey | undefined): boolean {
  return (left && keyText(left)) === (right && keyText(right));
}

async function* scanSentinels(context: StoreContext): AsyncGenerator<Item> {
  const { client, tableName } = context.target;
  let from: Item | undefined;
  do {
    const scan = new ScanCommand({
      TableName: tableName,
      ConsistentRead: true,
      FilterExpression: 'begins_with(#pk, :prefix)',
      ExpressionAttributeNames: { '#pk': TABLE.partitionKey },
      ExpressionAttributeValues: { ':prefix': UNIQUE_PREFIX },
      ...(from && { ExclusiveStartKey: from }),
    });
    const page = await repeated(context, { mayApplyTwice: true }, () => client.send(scan));
    yield* page.Items ?? [];
    from = page.LastEvaluatedKey;
  } while (from !== undefined);
}

async function* withBackendErrors(items: AsyncIterable<Item>): AsyncGenerator<Item> {
  try {
    yield* items;
  } catch (error) {
    throw toBackendError(error);
  }
}
