/**
 * Effects that are DynamoDB writes only: the record and the effects are one transaction, and nothing is written before it.
 *
 *   (absent) | FAILED --commit--> COMPLETED | REJECTED       (terminal, replayed to duplicates)
 *   (absent) | FAILED --fail----> FAILED                     (one more attempt counted; nothing was applied)
 *
 * A duplicate is refused by the record's own condition, and the refusal brings the recorded answer along: no read.
 */
import { randomUUID } from 'node:crypto';
import { all, any, attributeAbsent, equals, lessThan } from '../conditions.ts';
import { repeatedUpdate, type UpdateTarget } from '../conditional-update.ts';
import type { Clock, Random } from '../../clock.ts';
import { plus, type Change, type Condition } from '../expressions.ts';
import { numberOf } from '../plain-item.ts';
import { effectRecordKey, type Item } from '../table.ts';
import type { TransactionAction } from '../transactions/transaction.ts';
import { TransactionCancelledError, type TransactionWriter } from '../transactions/transaction-writer.ts';
import {
  COMMIT_DEADLINE_MS,
  readRefusal,
  RECORD_LABEL,
  refusalOfRecord,
  shortened,
  verdictChange,
  type Claim,
  type EffectStatus,
  type Verdict,
} from './effect-record.ts';
import { ttlAfterDays } from '../ttl.ts';

export interface DirectRequest {
  readonly queue: string;
  readonly key: string;
  readonly payloadHash: string;
}

/** What stands in the way of a key, as for a claim. */
export type Standing = Exclude<Claim, { kind: 'claimed' }>;

export type DirectAnswer = { readonly kind: 'committed' } | Standing;

export type FailureAnswer =
  /** Counted; `attempts` is the count now. */
  | { readonly kind: 'failed'; readonly attempts: number }
  /** The key was finished, or is worked on by another: nothing was counted. */
  | Standing;

export interface DirectEffects {
  /**
   * Completes the record and applies the effects, all or nothing.
   * @throws {TransactionCancelledError} when an effect's own condition failed: nothing was applied.
   * @throws {BackendError} with reason `ambiguous` when no answer came: it may be committed; the next delivery finds out.
   */
  commit(request: DirectRequest, verdict: Verdict, signal?: AbortSignal): Promise<DirectAnswer>;
  /** Counts a failed attempt. */
  fail(request: DirectRequest, error: string): Promise<FailureAnswer>;
  /** Forgets the attempts: the message is dead-lettered, and whoever redrives it wants to see it tried again. */
  startAfresh(request: DirectRequest): Promise<void>;
}

export interface DirectEffectDependencies {
  readonly target: UpdateTarget;
  readonly clock: Clock;
  readonly random: Random;
  readonly transactions: TransactionWriter;
  readonly retentionDays: number;
  /** How far the clock of a crashed holder may be off before its lease counts as over. Unit: ms. */
  readonly maxClockSkewMs: number;
}

export function createDirectEffects(deps: DirectEffectDependencies): DirectEffects {
  const { clock, transactions } = deps;
  const ttlFromNow = (): number => ttlAfterDays(clock, deps.retentionDays);

  async function commit(request: DirectRequest, verdict: Verdict, signal?: AbortSignal): Promise<DirectAnswer> {
    // Tells our own landed write from that of another delivery, should its answer be lost.
    const commitId = randomUUID();
    const nowMs = clock.nowMs();
    const record = recordAction(request, verdict, { commitId, nowMs, ttl: ttlFromNow(), skewMs: deps.maxClockSkewMs });
    const effects = verdict.status === 'COMPLETED' ? verdict.effects : [];
    const limits = { deadlineMs: COMMIT_DEADLINE_MS, ...(signal !== undefined && { signal }) };
    try {
      await transactions.write([record, ...effects], limits);
      return { kind: 'committed' };
    } catch (error) {
      const refusal = error instanceof TransactionCancelledError ? refusalOfRecord(error) : undefined;
      // The record speaks first: a duplicate whose stock is gone is a replay, not a rejection.
      if (refusal?.item === undefined) throw error;
      if (refusal.item['commitId'] === commitId) return { kind: 'committed' };
      return standingOf(refusal.item, request.payloadHash, nowMs);
    }
  }

  async function fail(request: DirectRequest, error: string): Promise<FailureAnswer> {
    const nowMs = clock.nowMs();
    // Counting a lost answer twice costs one try of many, and no effect.
    const answer = await repeatedUpdate(deps, {
      key: effectRecordKey(request.queue, request.key),
      change: {
        set: {
          status: 'FAILED' satisfies EffectStatus,
          payloadHash: request.payloadHash,
          attempts: plus(1, 0),
          lastError: shortened(error),
          ttl: ttlFromNow(),
        },
        remove: ['owner'],
      },
      // Also what a claimed handler has left behind, as for a commit: else its failures would never be counted.
      condition: unfinished(request.payloadHash, { nowMs, skewMs: deps.maxClockSkewMs }),
    });
    if (answer.kind === 'updated') return { kind: 'failed', attempts: numberOf(answer.item['attempts'], 1) };
    return standingOf(answer.item ?? {}, request.payloadHash, nowMs);
  }

  async function startAfresh(request: DirectRequest): Promise<void> {
    await repeatedUpdate(deps, {
      key: effectRecordKey(request.queue, request.key),
      change: { remove: ['attempts'] },
      condition: equals('status', 'FAILED'),
    });
  }

  return { commit, fail, startAfresh };
}

/** The record's part of the transaction: an update, so that the fencing token of an earlier claim never goes back. */
function recordAction(
  request: DirectRequest,
  verdict: Verdict,
  commit: { readonly commitId: string; readonly nowMs: number; readonly ttl: number; readonly skewMs: number },
): TransactionAction {
  const { set, remove } = verdictChange(verdict, commit.nowMs, commit.ttl);
  const change: Change = {
    set: {
      ...set,
      payloadHash: request.payloadHash,
      commitId: commit.commitId,
      deliveries: plus(1, 0),
      fencingToken: plus(1, commit.nowMs),
    },
    remove: [...(remove ?? []), 'owner'],
  };
  const key = effectRecordKey(request.queue, request.key);
  const condition = unfinished(request.payloadHash, commit);
  return { kind: 'update', role: 'record', label: RECORD_LABEL, key, change, condition };
}

/** Never tried, failed, or claimed by a holder whose lease is over: always the same payload, once there is one. */
function unfinished(payloadHash: string, at: { readonly nowMs: number; readonly skewMs: number }): Condition {
  const abandoned = all(equals('status', 'IN_PROGRESS'), lessThan('expiresAtMs', at.nowMs - at.skewMs));
  return any(
    attributeAbsent('status'),
    all(equals('payloadHash', payloadHash), any(equals('status', 'FAILED'), abandoned)),
  );
}

function standingOf(item: Item, payloadHash: string, nowMs: number): Standing {
  return readRefusal(item, payloadHash, Math.max(0, numberOf(item['expiresAtMs'], 0) - nowMs));
}
