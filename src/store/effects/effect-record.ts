/**
 * The effect record: what became of a business key. It is claimed before the work, carries the lease under which the
 * work is done, and is completed in the same transaction as the effects.
 *
 *   (absent) | FAILED --claim--> IN_PROGRESS --commit--> COMPLETED | REJECTED    (terminal, replayed to duplicates)
 *                                IN_PROGRESS --release--> FAILED                 (nothing applied, may be tried again)
 *                                IN_PROGRESS --lease over, claim--> IN_PROGRESS  (takeover, higher fencing token)
 *
 * The record holds no clock that decides about effects: `owner` and `fencingToken` do, inside each write.
 */
import { all, any, attributeAbsent, oneOf } from '../conditions.ts';
import { ifAbsent, plus, previous, type Change, type Condition } from '../expressions.ts';
import { LeaseLostError, type HeldLease, type HeldLeaseDependencies } from '../leases/held-lease.ts';
import { wasTakenOver } from '../leases/lease-grant.ts';
import { numberOf } from '../plain-item.ts';
import { fenceAndFinish, type Leases } from '../leases/leases.ts';
import { StepBudget } from './step-budget.ts';
import { createStepRecords, type StepRecords } from './step-records.ts';
import { fromStored, toStored, type StoredValue } from './stored-value.ts';
import { effectRecordKey, type Item } from '../table.ts';
import type { TransactionAction } from '../transactions/transaction.ts';
import {
  TransactionCancelledError,
  type FailedAction,
  type TransactionWriter,
} from '../transactions/transaction-writer.ts';
import { ttlAfterDays } from '../ttl.ts';

export type EffectStatus = 'IN_PROGRESS' | 'COMPLETED' | 'REJECTED' | 'FAILED';

export interface ClaimRequest {
  readonly queue: string;
  readonly key: string;
  /** Undefined when there is nothing to tell payloads apart by: then none is compared, now or by a later claim. */
  readonly payloadHash: string | undefined;
  readonly holder: string;
}

export type Claim =
  | { readonly kind: 'claimed'; readonly effect: ClaimedEffect }
  | { readonly kind: 'completed'; readonly response: unknown }
  | { readonly kind: 'rejected'; readonly reason: string }
  /** The key was used with another payload. Nothing was written. */
  | { readonly kind: 'conflict'; readonly recordedHash: string }
  | { readonly kind: 'busy'; readonly holder: string; readonly waitMs: number };

/** A record that this process holds. */
export interface ClaimedEffect {
  readonly lease: HeldLease;
  /** Counts tries since the key was last dead-lettered, this one included. */
  readonly attempt: number;
  /** True when an earlier holder had not given the record back: it crashed, froze, or was cut off. */
  readonly takenOver: boolean;
  /**
   * Since when it is in doubt whether an outside call of an earlier attempt went through: the time of the first claim
   * that ended by crashing or with a call unanswered. Undefined when there is no doubt.
   */
  readonly inDoubtSinceMs: number | undefined;
  /** What the last failed attempt reported. */
  readonly lastError: string | undefined;
  stepResult(step: string): StoredValue | undefined;
  /** When an earlier attempt marked that it begins this step. */
  stepStartedAtMs(step: string): number | undefined;
  /** Keeps the record within what DynamoDB takes. */
  readonly stepBudget: StepBudget;
}

export type Verdict =
  | { readonly status: 'COMPLETED'; readonly response: unknown; readonly effects: readonly TransactionAction[] }
  | { readonly status: 'REJECTED'; readonly reason: string };

/** How an attempt failed. */
export interface FailedAttempt {
  readonly error: string;
  /** An outside call was made and its outcome is not known. */
  readonly inDoubt: boolean;
  /** Forgets the attempts: the message is dead-lettered, and whoever redrives it wants to see it tried again. */
  readonly startAfresh: boolean;
  /** The step of which nobody can tell whether it was done, until an operator says so. */
  readonly unknownStep?: string;
}

export interface EffectRecords extends StepRecords {
  /** One request. @throws {BackendError} when DynamoDB cannot be asked. */
  claim(request: ClaimRequest): Promise<Claim>;
  /**
   * Completes the record and applies the effects, all or nothing.
   * @throws {LeaseLostError} when another holds the record: nothing was applied by this call.
   * @throws {TransactionCancelledError} when an effect's own condition failed: nothing was applied.
   */
  commit(effect: ClaimedEffect, verdict: Verdict, signal?: AbortSignal): Promise<void>;
  /**
   * Gives the record back as FAILED.
   * @param failure what `lastError` and the next claim will say.
   * @param signal ends the tries; what was sent may still be applied.
   * @returns false when it was no longer ours; nothing was written then.
   */
  release(effect: ClaimedEffect, failure: FailedAttempt, signal?: AbortSignal): Promise<boolean>;
}

export interface EffectRecordDependencies extends HeldLeaseDependencies {
  readonly leases: Leases;
  readonly transactions: TransactionWriter;
  /** How long a record outlives its last write. Unit: days. */
  readonly retentionDays: number;
}

const MAX_ERROR_CHARACTERS = 500;

export function createEffectRecords(deps: EffectRecordDependencies): EffectRecords {
  const ttlFromNow = (): number => ttlAfterDays(deps.clock, deps.retentionDays);

  async function claim(request: ClaimRequest): Promise<Claim> {
    const nowMs = deps.clock.nowMs();
    const acquisition = await deps.leases.acquire({
      key: effectRecordKey(request.queue, request.key),
      holder: request.holder,
      change: claimChange(request.payloadHash, nowMs, ttlFromNow()),
      // Absent, or the same payload and not finished: all in one request, with no read before it.
      condition: any(
        attributeAbsent('status'),
        all(...samePayload(request.payloadHash), oneOf('status', ['IN_PROGRESS', 'FAILED'])),
      ),
    });
    if (acquisition.kind === 'acquired') {
      return { kind: 'claimed', effect: claimedEffect(acquisition.lease, acquisition.item) };
    }
    return readRefusal(acquisition.item, request.payloadHash, acquisition.waitMs);
  }

  async function commit(effect: ClaimedEffect, verdict: Verdict, signal?: AbortSignal): Promise<void> {
    await effect.lease.ensureHeld();
    const change = verdictChange(verdict, deps.clock.nowMs(), ttlFromNow());
    const effects = verdict.status === 'COMPLETED' ? verdict.effects : [];
    const record = { ...fenceAndFinish(effect.lease, change), label: RECORD_LABEL, role: 'record' as const };
    const actions = [record, ...effects];
    await effect.lease.exclusively(async () => {
      // Another commit of this holder came first: its landing must not be taken for that of this verdict.
      if (effect.lease.isEnded) throw new LeaseLostError('released', effect.lease.grant);
      try {
        // No renewal gets through meanwhile, so half of what is left must do; the rest is for giving the record back.
        const deadlineMs = Math.min(COMMIT_DEADLINE_MS, effect.lease.remainingMs() / 2);
        await deps.transactions.write(actions, { deadlineMs, ...(signal !== undefined && { signal }) });
      } catch (error) {
        const refusal = error instanceof TransactionCancelledError ? refusalOfRecord(error) : undefined;
        if (refusal === undefined) throw error;
        // The record speaks first, also when effects failed too. Only our own commit leaves our token without owner.
        if (!isOwnCommit(refusal.item, effect.lease)) throw effect.lease.lose(refusal.item);
      }
      effect.lease.end();
    });
  }

  function release(effect: ClaimedEffect, failure: FailedAttempt, signal?: AbortSignal): Promise<boolean> {
    const change = {
      set: {
        status: 'FAILED',
        lastError: shortened(failure.error),
        ttl: ttlFromNow(),
        ...(failure.unknownStep !== undefined && { unknownStep: failure.unknownStep }),
      },
      remove: [...(failure.startAfresh ? ['attempts'] : []), ...(failure.inDoubt ? [] : ['inDoubtSinceMs'])],
    };
    return effect.lease.release(change, signal);
  }

  return { claim, ...createStepRecords(deps), commit, release };
}

export const RECORD_LABEL = 'effect record';
export const COMMIT_DEADLINE_MS = 10_000;

/** A cut may leave half a surrogate pair, which DynamoDB would refuse together with the whole release. */
export function shortened(text: string): string {
  return text.slice(0, MAX_ERROR_CHARACTERS).toWellFormed();
}

/** By place, not by label: a handler may give its own actions any label. */
export function refusalOfRecord(error: TransactionCancelledError): FailedAction | undefined {
  return error.failures.find((failure) => failure.index === 0 && failure.code === 'ConditionalCheckFailed');
}

/** Stands in `doubtBeforeMs` when no earlier attempt left a doubt; a time alone could be that of this claim itself. */
const NO_DOUBT = 'none';

/** Stands in `payloadHash` when there was nothing to hash; no SHA-256 is written like this. */
const NO_PAYLOAD = 'none';

/** A record whose payload is not known, and a claim that brings none, are no conflict with anything. */
function samePayload(payloadHash: string | undefined): Condition[] {
  return payloadHash === undefined ? [] : [oneOf('payloadHash', [payloadHash, NO_PAYLOAD])];
}

function claimChange(payloadHash: string | undefined, nowMs: number, ttl: number): Change {
  return {
    set: {
      status: 'IN_PROGRESS' satisfies EffectStatus,
      payloadHash: payloadHash ?? ifAbsent(NO_PAYLOAD),
      attempts: plus(1, 0),
      deliveries: plus(1, 0),
      inDoubtSinceMs: ifAbsent(nowMs),
      doubtBeforeMs: previous('inDoubtSinceMs', NO_DOUBT),
      steps: ifAbsent({}),
      startedSteps: ifAbsent({}),
      ttl,
    },
  };
}

export function verdictChange(verdict: Verdict, nowMs: number, ttl: number): Change {
  const answer = verdict.status === 'COMPLETED' ? { response: toStored(verdict.response) } : { reason: verdict.reason };
  return { set: { status: verdict.status, completedAtMs: nowMs, ttl, ...answer }, remove: ['lastError'] };
}

export function readRefusal(
  item: Item,
  claimedHash: string | undefined,
  waitMs: number,
): Exclude<Claim, { kind: 'claimed' }> {
  const isCompared = claimedHash !== undefined && item['payloadHash'] !== NO_PAYLOAD;
  const payloadHash = isCompared ? claimedHash : item['payloadHash'];
  // Another payload is a conflict whatever became of the first one.
  if (item['payloadHash'] !== payloadHash) return { kind: 'conflict', recordedHash: String(item['payloadHash']) };
  if (item['status'] === 'COMPLETED') return { kind: 'completed', response: fromStored(item['response']) };
  if (item['status'] === 'REJECTED') return { kind: 'rejected', reason: String(item['reason']) };
  return { kind: 'busy', holder: String(item['holder']), waitMs };
}

function claimedEffect(lease: HeldLease, item: Item): ClaimedEffect {
  const results = mapOf(item['steps']);
  const started = mapOf(item['startedSteps']);
  return {
    lease,
    attempt: numberOf(item['attempts'], 1),
    takenOver: wasTakenOver(item),
    inDoubtSinceMs: item['doubtBeforeMs'] === NO_DOUBT ? undefined : numberOf(item['doubtBeforeMs'], 0),
    lastError: typeof item['lastError'] === 'string' ? item['lastError'] : undefined,
    stepResult: (step) => results.get(step) as StoredValue | undefined,
    stepStartedAtMs: (step) => (started.has(step) ? numberOf(started.get(step), 0) : undefined),
    stepBudget: new StepBudget(results),
  };
}

function mapOf(attribute: unknown): Map<string, unknown> {
  return new Map(Object.entries(typeof attribute === 'object' && attribute !== null ? attribute : {}));
}

function isOwnCommit(item: Item | undefined, lease: HeldLease): boolean {
  const finished = item?.['status'] === 'COMPLETED' || item?.['status'] === 'REJECTED';
  return finished && item['owner'] === undefined && item['fencingToken'] === lease.grant.fencingToken;
}
