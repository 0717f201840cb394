/** What became of a delivery, and what is done with its message for it. Pure. */
import { fullJitterMs, type Backoff } from '../backoff.ts';
import type { Random } from '../clock.ts';
import type { InvalidCode } from '../messages/envelope.ts';
import type { LossReason } from '../store/leases/held-lease.ts';

/** The answer that every delivery of a key gets. */
export type EffectAnswer =
  | { readonly status: 'COMPLETED'; readonly response: unknown }
  | { readonly status: 'REJECTED'; readonly reason: string };

export type Outcome =
  /** The effects are committed. */
  | { readonly kind: 'completed'; readonly response: unknown; readonly attempt: number; readonly takenOver: boolean }
  /** A duplicate: the recorded answer stands, nothing was applied. */
  | { readonly kind: 'replayed'; readonly answer: EffectAnswer }
  /** The business says no for good. */
  | { readonly kind: 'rejected'; readonly reason: string; readonly attempt: number; readonly takenOver: boolean }
  /** The key was used with another payload: nothing was applied. */
  | { readonly kind: 'conflict'; readonly payloadHash: string; readonly recordedHash: string }
  /** Another holds a live lease on the key. */
  | { readonly kind: 'busy'; readonly holder: string; readonly waitMs: number }
  /** The handler or the store failed; it will be tried again. */
  | { readonly kind: 'retry'; readonly error: string; readonly attempt: number }
  /** No attempt is left, or none can help. */
  | { readonly kind: 'exhausted'; readonly error: string; readonly attempts: number }
  | { readonly kind: 'invalid'; readonly code: InvalidCode; readonly reason: string }
  /** The lease or the visibility went away while working: touch nothing. */
  | { readonly kind: 'lost'; readonly reason: LossReason | 'visibility' };

export type OutcomeKind = Outcome['kind'];

/** What is done with the message. */
export type Settlement =
  | { readonly kind: 'delete' }
  | { readonly kind: 'hide'; readonly seconds: number }
  | { readonly kind: 'deadLetter'; readonly reason: DeadLetterReason; readonly detail: string }
  | { readonly kind: 'leave' };

export type DeadLetterReason = 'conflict' | 'exhausted' | 'invalid';

export interface SettlementPolicy {
  readonly retryBackoff: Backoff;
  readonly random: Random;
}

/** A busy key that stays busy is looked at less and less often, but at least once an hour. */
const BUSY_CAP_MS = 3_600_000;
/** Receives that may pass before waiting for a busy key gets longer. */
const BUSY_PATIENCE = 3;
const BUSY_JITTER_MS = 500;

/** @see AWS: ChangeMessageVisibility takes 0 to 43200 seconds */
const MAX_HIDE_SECONDS = 43_200;

/**
 * @param receiveCount how often SQS delivered this message. It stretches waiting, it never decides about dead-lettering:
 * healthy messages collect receives too.
 */
export function settlementOf(outcome: Outcome, receiveCount: number, policy: SettlementPolicy): Settlement {
  switch (outcome.kind) {
    case 'completed':
    case 'replayed':
    case 'rejected':
      return { kind: 'delete' };
    case 'conflict': {
      const detail = `payload hash ${outcome.payloadHash}, recorded ${outcome.recordedHash}`;
      return { kind: 'deadLetter', reason: 'conflict', detail };
    }
    case 'exhausted':
      return { kind: 'deadLetter', reason: 'exhausted', detail: outcome.error };
    case 'invalid':
      return { kind: 'deadLetter', reason: 'invalid', detail: `${outcome.code}: ${outcome.reason}` };
    case 'busy':
      return { kind: 'hide', seconds: toSeconds(busyWaitMs(outcome.waitMs, receiveCount, policy.random)) };
    case 'retry': {
      const tries = Math.max(1, outcome.attempt);
      return { kind: 'hide', seconds: toSeconds(fullJitterMs(tries, policy.retryBackoff, policy.random)) };
    }
    case 'lost':
      return { kind: 'leave' };
  }
}

function busyWaitMs(waitMs: number, receiveCount: number, random: Random): number {
  const stretched = waitMs * 2 ** Math.min(20, Math.max(0, receiveCount - BUSY_PATIENCE));
  return Math.min(BUSY_CAP_MS, stretched) + random() * BUSY_JITTER_MS;
}

function toSeconds(ms: number): number {
  return Math.min(MAX_HIDE_SECONDS, Math.ceil(ms / 1_000));
}
