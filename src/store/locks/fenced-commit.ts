/**
 * Writes under the fence of one lock or of several: the fence is evaluated inside the write, not before it, so that a
 * holder who was paused beyond its lease writes nothing.
 *
 * A try whose answer was lost is repeated with the same request token. Beyond the memory of that token, the last write
 * is told by its mark: a text on the lock's item that only this very write of this very holder leaves there.
 */
import { createHash } from 'node:crypto';
import { serialize } from 'node:v8';
import { BackendError, ConfigurationError, type OptionFault } from '../../errors.ts';
import type { StoreContext } from '../context.ts';
import type { Change } from '../expressions.ts';
import type { HeldLease } from '../leases/held-lease.ts';
import { heldBy, releaseChange, renewChange, retained } from '../leases/lease-grant.ts';
import { LeaseLostError } from '../leases/lease-loss.ts';
import { instantOf } from '../leases/lease-validity.ts';
import { TABLE, type Item } from '../table.ts';
import { checkTransaction, renderAction, type TransactionAction } from '../transactions/transaction.ts';
import { TransactionCancelledError } from '../transactions/transaction-writer.ts';

export interface FencedCommits {
  /** Applies `actions` and renews. @throws {LeaseLostError} when any of `leases` is no longer ours: nothing was applied. */
  write(leases: readonly HeldLease[], actions: readonly TransactionAction[]): Promise<void>;
  /** Applies `actions` and gives all `leases` back, all or nothing. @throws {LeaseLostError} */
  finish(leases: readonly HeldLease[], actions: readonly TransactionAction[], change?: Change): Promise<void>;
}

export interface FencedCommitOptions {
  readonly leaseMs: number;
  readonly retentionDays: number;
}

/** No beat gets through meanwhile: half of what is left must do. */
const COMMIT_DEADLINE_MS = 10_000;

/** On the item of a lock: which last write gave it back. */
const MARK = 'finishMark';

export function createFencedCommits(context: StoreContext, options: FencedCommitOptions): FencedCommits {
  const { clock } = context;
  const keep = { clock, retentionDays: options.retentionDays };

  /**
   * @param mark of a last write: whoever finds it on the item that refused it has landed before.
   * @throws {LeaseLostError} for the first fence that refused; what else failed does not matter then.
   */
  async function send(
    leases: readonly HeldLease[],
    actions: readonly TransactionAction[],
    mark?: string,
  ): Promise<void> {
    const leftMs = Math.min(...leases.map((lease) => lease.remainingMs()));
    const deadlineMs = Math.max(0, Math.min(COMMIT_DEADLINE_MS, leftMs / 2));
    const signal = AbortSignal.any(leases.map((lease) => lease.signal));
    let wasUnanswered = false;
    const wasApplied = (refusal: TransactionCancelledError): boolean => {
      wasUnanswered = true;
      return hasLanded(refusedFences(refusal, leases), mark);
    };
    try {
      // A write that only renews leaves nothing behind by which it could be told.
      await context.transactions.write(actions, { deadlineMs, signal, ...(mark !== undefined && { wasApplied }) });
    } catch (error) {
      if (!(error instanceof TransactionCancelledError)) throw error;
      const refused = refusedFences(error, leases);
      if (hasLanded(refused, mark)) return;
      const [loss] = refused.map(({ lease, item }) => lease.lose(item));
      if (loss === undefined) throw error;
      if ((wasUnanswered || error.mayBeApplied) && !showsNothing(refused, mark)) throw inDoubt(loss);
      throw loss;
    }
  }

  async function write(leases: readonly HeldLease[], actions: readonly TransactionAction[]): Promise<void> {
    await whileAllHeld(leases, async () => {
      const sentAt = instantOf(clock);
      const change = retained(renewChange(sentAt.wallMs, options.leaseMs), keep);
      await send(leases, [...leases.map((lease) => fence(lease, change)), ...actions]);
      for (const lease of leases) lease.renewedBy(sentAt);
    });
  }

  async function finish(
    leases: readonly HeldLease[],
    actions: readonly TransactionAction[],
    change: Change = {},
  ): Promise<void> {
    refuseReserved(change);
    // Before the mark is made of it: what cannot be sent has no mark either.
    checkTransaction([...leases.map((lease) => fence(lease, releaseChange(retained(change, keep)))), ...actions]);
    const mark = markOf(leases, actions, change);
    const last = releaseChange(retained({ ...change, set: { ...change.set, [MARK]: mark } }, keep));
    try {
      await whileAllHeld(leases, () => send(leases, [...leases.map((lease) => fence(lease, last)), ...actions], mark));
    } catch (error) {
      // A beat may have been the first to see that an earlier call of this very write has landed.
      const wasSeen = error instanceof LeaseLostError && leases.some((lease) => lease.lostTo?.[MARK] === mark);
      if (!wasSeen) throw error;
    }
    for (const lease of leases) lease.end();
  }

  return { write, finish };
}

/** One turn on each lease, in the order that all callers share, so that two never wait for each other. */
function whileAllHeld<Result>(leases: readonly HeldLease[], fn: () => Promise<Result>): Promise<Result> {
  const [first, ...rest] = leases;
  return first === undefined ? fn() : first.whileHeld(() => whileAllHeld(rest, fn));
}

function fence(lease: HeldLease, change: Change): TransactionAction {
  const { key } = lease.grant;
  return { kind: 'update', label: `fence of ${key.PK}`, role: 'fence', key, change, condition: heldBy(lease.grant) };
}

interface RefusedFence {
  readonly lease: HeldLease;
  readonly item: Item | undefined;
}

/** By place, not by label: the caller's own actions may have any label. */
function refusedFences(error: TransactionCancelledError, leases: readonly HeldLease[]): RefusedFence[] {
  return error.failures.flatMap(({ index, code, item }) => {
    const lease = leases[index];
    return lease === undefined || code !== 'ConditionalCheckFailed' ? [] : [{ lease, item }];
  });
}

function hasLanded(refused: readonly RefusedFence[], mark: string | undefined): boolean {
  return mark !== undefined && refused.some(({ item }) => item?.[MARK] === mark);
}

/** A last write leaves its mark, which stays until a later holder leaves another: without any, it was not applied. */
function showsNothing(refused: readonly RefusedFence[], mark: string | undefined): boolean {
  if (mark === undefined) return false;
  return refused.some(
    ({ lease, item }) =>
      item !== undefined && (item[MARK] === undefined || item['fencingToken'] === lease.grant.fencingToken),
  );
}

/** The lock is lost, and a try before that went unanswered beyond the memory of its token. */
function inDoubt(loss: LeaseLostError): BackendError {
  const message = `DynamoDB: a try went unanswered, a later one was refused: ${loss.message}`;
  return new BackendError(message, { reason: 'ambiguous', retryable: false, cause: loss });
}

/** The same for a repeated call with the same actions, and for no other: the owner is a nonce of this holder. */
function markOf(leases: readonly HeldLease[], actions: readonly TransactionAction[], change: Change): string {
  const own: Change = { ...change, set: { ...change.set, [MARK]: '' } };
  const rendered = [...leases.map((lease) => fence(lease, own)), ...actions].map((action) => renderAction(action, ''));
  return createHash('sha256').update(serialize(rendered)).digest('base64url');
}

const RESERVED = new Set<string>([
  TABLE.partitionKey,
  TABLE.sortKey,
  TABLE.ttlAttribute,
  MARK,
  'owner',
  'fencingToken',
  'heartbeat',
  'leaseMs',
  'expiresAtMs',
  'holder',
  'takenFrom',
]);

/** @throws {ConfigurationError} when a change of the caller touches what the lock itself is made of. */
function refuseReserved(change: Change): void {
  const names = [...Object.keys(change.set ?? {}), ...(change.remove ?? [])];
  const faults = names
    .filter((name) => RESERVED.has(name.split('.')[0] ?? ''))
    .map((name): OptionFault => ({ name, rule: 'an attribute that the lock does not use itself', value: name }));
  if (faults.length > 0) throw new ConfigurationError('lock', faults);
}
