/**
 * Counters. DynamoDB does the arithmetic, so concurrent additions are never lost; what remains is the lost answer: a
 * bare addition that is sent again counts twice. Every way to count here says what it does about that.
 *
 * All amounts, bounds and values are whole numbers from -(2^52 - 1) to 2^52 - 1; an addition that would lead beyond is
 * refused. Names are well-formed texts of 1 to 512 bytes. An absent counter counts as 0.
 */
import { randomUUID } from 'node:crypto';
import { absent } from '../conditions.ts';
import { conditionalUpdate } from '../conditional-update.ts';
import { readConsistently } from '../consistent-read.ts';
import type { StoreContext } from '../context.ts';
import { repeated } from '../repeated.ts';
import { counterKey, counterShardKey, type ItemKey } from '../table.ts';
import type { TransactionAction } from '../transactions/transaction.ts';
import { countOnce, type CountOnceAnswer } from './count-once.ts';
import {
  faultsOfBounds,
  faultsOfCountedKey,
  faultsOfDeadline,
  faultsOfName,
  faultsOfNumber,
  faultsOfRetention,
  faultsOfShards,
  refuseFaults,
} from './counter-arguments.ts';
import { addition, counterValue, CounterValueError, VALUE, type CounterBounds } from './counter-value.ts';
import { takeNumber, type NumberingOptions } from './numbering.ts';
import { shardOf, sumOfShards } from './sharded-counter.ts';

export type { CountOnceAnswer } from './count-once.ts';
export { CounterValueError, type CounterBounds } from './counter-value.ts';
export type { NumberingOptions } from './numbering.ts';

/** What an addition came to. `value`: the counter after it, or as it is where it was refused. */
export type CounterAnswer =
  | { readonly kind: 'added'; readonly value: number }
  /** A bound would have been broken; nothing was written. */
  | { readonly kind: 'refused'; readonly value: number };

/** What counts once, within which bounds, and on which shard. `shards` together with bounds is a ConfigurationError. */
export interface CountOnceOptions extends CounterBounds {
  /** What counts, for example the key of a message. A well-formed text of 1 to 2,000 bytes. */
  readonly key: string;
  /** Counts on the shard of the key. No bounds then: nobody knows the sum while adding. Range: 1-1000. */
  readonly shards?: number;
}

/** All calls throw a ConfigurationError for wrong arguments, and a CounterValueError for a counter without a number. */
export interface Counters {
  /** Strongly consistent; 0 when there is none yet. */
  read(name: string): Promise<number>;
  /** Sets a counter that does not exist yet. @returns false when it exists. */
  create(name: string, value: number): Promise<boolean>;
  /**
   * One request, and the new value with it. Repeated only while it is certain that nothing was applied.
   * @throws {BackendError} with reason `ambiguous` when the answer was lost: it may have counted. Where that matters use
   * `addOnce`, or `addAction` in the transaction of the effect record.
   */
  add(name: string, by: number, bounds?: CounterBounds): Promise<CounterAnswer>;
  /**
   * Counts once per key, however often it is called: the key's marker and the counter are one transaction. The marker
   * is kept for `retentionDays` at least; after that the key would count again.
   *
   * One limit, of bounds only: a try that was cut off may still be under way when a later one is told `refused`. Should
   * there be room when it arrives, it counts after all, once, and the next call says `replayed`.
   * @throws {TransactionCancelledError} `retryable`, when other transactions were in the way until the deadline of 10 s:
   * take more shards.
   * @throws {BackendError} `ambiguous` when no answer came at all: call again, with the same key it cannot count twice.
   */
  addOnce(name: string, by: number, options: CountOnceOptions): Promise<CountOnceAnswer>;
  /** The addition as an action, for a transaction that holds the effect record. */
  addAction(name: string, by: number, bounds?: CounterBounds): TransactionAction;
  /** The next number: unique and growing. A lost answer leaves a gap, never a number twice. Starts at 1. */
  next(name: string): Promise<number>;
  /**
   * The next number without gaps: it is taken in the same transaction as what it numbers.
   * @param actions builds the rest of the transaction, 1-99 actions; called again with the next number when another was
   * faster. When both the number and an action of yours are refused, that counts as the number alone.
   * @throws {VersionConflictError} when another was faster until the deadline: nothing was applied.
   * @throws {TransactionCancelledError} when an action of `actions` refused: nothing was applied.
   * @throws {BackendError} `ambiguous` when no answer came and the counter does not show that the number was taken: it may
   * still be. Call again only when one of the actions refuses a second time, as the effect record does.
   * @throws the signal's reason when it aborts between tries; nothing was applied then.
   */
  numbered(
    name: string,
    actions: (number: number) => readonly TransactionAction[],
    options?: NumberingOptions,
  ): Promise<number>;
  /**
   * A counter spread over several items, for more than about 1,000 writes a second, or for many transactions at once.
   * @param shards Range: 1-1000. May be changed later: `read` sums up all there are.
   */
  sharded(name: string, shards: number): ShardedCounter;
}

/**
 * A counter spread over `shards` items: more writes a second, but no bounds, and no sum of one exact moment. Each key
 * has its shard. Calls throw as those of `Counters` do.
 */
export interface ShardedCounter {
  /** The shard of a key: the same for each delivery of a message. From 0. */
  shardOf(key: string): number;
  /** @throws {BackendError} as `Counters.add` does. */
  add(by: number, key: string): Promise<void>;
  addAction(by: number, key: string): TransactionAction;
  /** The sum of all shards. Not a snapshot: additions under way may be in it or not. */
  read(): Promise<number>;
}

export interface CounterOptions {
  /** How long the markers of `addOnce` are kept. Unit: days. Range: 1-3650. @defaultValue 35, as effect records */
  readonly retentionDays?: number;
}

/**
 * `deadlineMs`: what `NumberingOptions` leave out, in ms. `retentionDays`: how long the markers of `addOnce` are kept
 * where nothing else is said, in days; a store keeps them as long as its effect records.
 */
export const COUNTER_DEFAULTS = { retentionDays: 35, deadlineMs: 10_000 } as const;

export function createCounters(context: StoreContext, options: CounterOptions = {}): Counters {
  const { retentionDays = COUNTER_DEFAULTS.retentionDays } = options;
  refuseFaults('counters', faultsOfRetention(retentionDays));
  return {
    async read(name) {
      refuseFaults('counter', faultsOfName(name));
      const key = counterKey(name);
      return counterValue(key, await readConsistently(context, key));
    },
    create: (name, value) => create(context, name, value),
    async add(name, by, bounds = {}) {
      checkAddition(name, by, bounds);
      return add(context, counterKey(name), { by, bounds, mayApplyTwice: false });
    },
    addOnce: (name, by, once) => addOnce(context, { name, by, retentionDays, ...once }),
    addAction(name, by, bounds = {}) {
      checkAddition(name, by, bounds);
      return additionAction(counterKey(name), by, bounds);
    },
    next: (name) => next(context, name),
    async numbered(name, actions, { deadlineMs = COUNTER_DEFAULTS.deadlineMs, ...rest } = {}) {
      refuseFaults('numbered', faultsOfName(name), faultsOfDeadline(deadlineMs));
      return takeNumber(context, { counter: counterKey(name), actions, deadlineMs, ...rest });
    },
    sharded: (name, shards) => shardedCounter(context, name, shards),
  };
}

function checkAddition(name: string, by: number, bounds: CounterBounds): void {
  refuseFaults('counter', faultsOfName(name), faultsOfNumber('by', by), faultsOfBounds(bounds));
}

/** Every try has the same nonce, by which the one that landed is known. */
async function create(context: StoreContext, name: string, value: number): Promise<boolean> {
  refuseFaults('counter', faultsOfName(name), faultsOfNumber('value', value));
  const creation = randomUUID();
  const answer = await repeated(context, { mayApplyTwice: true }, () =>
    conditionalUpdate(context.target, {
      key: counterKey(name),
      change: { set: { [VALUE]: value, creation } },
      condition: absent(),
    }),
  );
  return answer.item?.['creation'] === creation;
}

interface Addition {
  readonly by: number;
  readonly bounds: CounterBounds;
  readonly mayApplyTwice: boolean;
}

async function add(context: StoreContext, key: ItemKey, request: Addition): Promise<CounterAnswer> {
  const { by, bounds, mayApplyTwice } = request;
  const answer = await repeated(context, { mayApplyTwice }, () =>
    conditionalUpdate(context.target, { key, ...addition(by, bounds) }),
  );
  return { kind: answer.kind === 'updated' ? 'added' : 'refused', value: counterValue(key, answer.item) };
}

function additionAction(key: ItemKey, by: number, bounds: CounterBounds): TransactionAction {
  return { kind: 'update', label: `counter ${key.PK} ${key.SK}`, key, ...addition(by, bounds) };
}

/** A repeat after a lost answer takes another number: that leaves a gap, and nothing worse. */
async function next(context: StoreContext, name: string): Promise<number> {
  refuseFaults('counter', faultsOfName(name));
  const answer = await add(context, counterKey(name), { by: 1, bounds: {}, mayApplyTwice: true });
  if (answer.kind === 'added') return answer.value;
  throw new CounterValueError(`the counter "${name}" has no number after ${String(answer.value)}`);
}

interface AddOnce extends CountOnceOptions {
  readonly name: string;
  readonly by: number;
  readonly retentionDays: number;
}

async function addOnce(context: StoreContext, request: AddOnce): Promise<CountOnceAnswer> {
  const { name, by, key, shards, floor, ceiling, retentionDays } = request;
  const bounds = { ...(floor !== undefined && { floor }), ...(ceiling !== undefined && { ceiling }) };
  const isBounded = shards !== undefined && Object.keys(bounds).length > 0;
  refuseFaults(
    'counter',
    faultsOfName(name),
    faultsOfNumber('by', by),
    faultsOfBounds(bounds),
    faultsOfCountedKey(key),
    shards === undefined ? [] : faultsOfShards(shards),
    isBounded ? [{ name: 'shards', rule: 'no bounds with shards: no shard knows the sum', value: shards }] : [],
  );
  const counter = shards === undefined ? counterKey(name) : counterShardKey(name, shardOf(key, shards));
  return countOnce(context, { name, key, counter, addition: additionAction(counter, by, bounds), retentionDays });
}

function shardedCounter(context: StoreContext, name: string, shards: number): ShardedCounter {
  refuseFaults('sharded counter', faultsOfName(name), faultsOfShards(shards));
  const shardKey = (key: string): ItemKey => counterShardKey(name, shardOf(key, shards));
  return {
    shardOf: (key) => shardOf(key, shards),
    async add(by, key) {
      refuseFaults('sharded counter', faultsOfNumber('by', by));
      const answer = await add(context, shardKey(key), { by, bounds: {}, mayApplyTwice: false });
      if (answer.kind === 'refused') throw new CounterValueError(`a shard of the counter "${name}" is at its limit`);
    },
    addAction(by, key) {
      refuseFaults('sharded counter', faultsOfNumber('by', by));
      return additionAction(shardKey(key), by, {});
    },
    read: () => sumOfShards(context, name),
  };
}
