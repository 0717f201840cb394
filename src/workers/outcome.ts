/** What became of a delivery, and what is done with its message for it. Pure. */
import { fullJitterMs, type Backoff } from '../backoff.ts';
import type { Random } from '../clock.ts';
import type { InvalidCode } from '../messages/envelope.ts';
import type { LossReason } from '../store/leases/held-lease.ts';
import { isRetryDelayMs } from './retry-policy.ts';

/** The answer that every delivery of a key gets. */
export type EffectAnswer =
  | { readonly status: 'COMPLETED'; readonly response: unknown }
  | { readonly status: 'REJECTED'; readonly reason: string };

/** What became of a delivery: expected results, never exceptions. */
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
  | {
      readonly kind: 'retry';
      readonly error: string;
      readonly attempt: number;
      /** True when the store failed: nothing about the message. */
      readonly isStoreFault?: boolean;
      /** What the handler asked for, or the worker's policy. Unit: ms. Range: 0-43200000. @defaultValue the back-off */
      readonly retryAfterMs?: number;
      /** False when the handler only waits: then the receives are all that is counted. @defaultValue true */
      readonly countsAsAttempt?: boolean;
    }
  /** No attempt is left, or none can help. */
  | {
      readonly kind: 'exhausted';
      readonly error: string;
      readonly attempts: number;
      /** For the dead letter. */
      readonly payloadHash?: string;
    }
  | { readonly kind: 'invalid'; readonly code: InvalidCode; readonly reason: string }
  /** The lease or the visibility went away while working: touch nothing. */
  | { readonly kind: 'lost'; readonly reason: LossReason | 'visibility' | 'timeout' };

/** The name of an outcome. */
export type OutcomeKind = Outcome['kind'];

/** What is done with the message. */
export type Settlement =
  | { readonly kind: 'delete' }
  | { readonly kind: 'hide'; readonly seconds: number }
  | ({ readonly kind: 'deadLetter' } & DeadLetterCause)
  | { readonly kind: 'leave' };

export type DeadLetterReason = 'conflict' | 'exhausted' | 'invalid';

/** Why a message is dead-lettered, as far as its outcome knows. */
export interface DeadLetterCause {
  readonly reason: DeadLetterReason;
  /** For people: the last error, both hashes, what the schema said. */
  readonly detail: string;
  readonly attempts?: number;
  readonly payloadHash?: string;
  /** Of the payload that was there first, for a conflict. */
  readonly recordedHash?: string;
}

export interface SettlementPolicy {
  readonly retryBackoff: Backoff;
  readonly random: Random;
}

/** What is waited for is looked at less and less often, but at least once an hour. */
const LONGEST_LOOK_MS = 3_600_000;
/** Receives that may pass before waiting gets longer. */
const PATIENCE = 3;
const JITTER_MS = 500;
/** The smallest unit of waiting that is not an attempt. */
const SHORTEST_LOOK_MS = 1_000;
/** Such a wait is cut by chance by no more than this, so that 100 receives last for three days whatever chance says. */
const LOOK_JITTER = 0.15;

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
      const { payloadHash, recordedHash } = outcome;
      const detail = `payload hash ${payloadHash}, recorded ${recordedHash}`;
      return { kind: 'deadLetter', reason: 'conflict', detail, payloadHash, recordedHash };
    }
    case 'exhausted': {
      const { error: detail, attempts, payloadHash } = outcome;
      const known = payloadHash === undefined ? { attempts } : { attempts, payloadHash };
      return { kind: 'deadLetter', reason: 'exhausted', detail, ...known };
    }
    case 'invalid':
      return { kind: 'deadLetter', reason: 'invalid', detail: `${outcome.code}: ${outcome.reason}` };
    case 'busy':
      return { kind: 'hide', seconds: toSeconds(busyWaitMs(outcome.waitMs, receiveCount, policy.random)) };
    case 'retry':
      return { kind: 'hide', seconds: toSeconds(retryWaitMs(outcome, receiveCount, policy)) };
    case 'lost':
      return { kind: 'leave' };
  }
}

function busyWaitMs(waitMs: number, receiveCount: number, random: Random): number {
  const stretched = waitMs * 2 ** Math.min(20, Math.max(0, receiveCount - PATIENCE));
  return Math.min(LONGEST_LOOK_MS, stretched) + random() * JITTER_MS;
}

function retryWaitMs(
  { attempt, retryAfterMs, isStoreFault = false, countsAsAttempt = !isStoreFault }: Extract<Outcome, { kind: 'retry' }>,
  receiveCount: number,
  policy: SettlementPolicy,
): number {
  const wantedMs =
    // Never before what was asked for, and not all at once.
    isRetryDelayMs(retryAfterMs)
      ? retryAfterMs + policy.random() * Math.min(JITTER_MS, retryAfterMs / 10)
      : fullJitterMs(Math.max(1, attempt), policy.retryBackoff, policy.random);
  return countsAsAttempt ? wantedMs : Math.max(wantedMs, uncountedWaitMs(receiveCount, policy));
}

/**
 * What uses up no attempt uses up receives, and at `maxReceiveCount` the queue itself dead-letters a healthy message. So
 * the wait doubles with each receive, up to an hour: about as long again as the outage has lasted, and 100 receives are
 * enough for more than three days.
 */
function uncountedWaitMs(receiveCount: number, { retryBackoff, random }: SettlementPolicy): number {
  if (receiveCount <= PATIENCE) return 0;
  const shortestMs = Math.max(SHORTEST_LOOK_MS, retryBackoff.baseMs);
  const stretched = shortestMs * 2 ** Math.min(20, receiveCount - 1);
  return Math.min(LONGEST_LOOK_MS, stretched) * (1 - LOOK_JITTER * random());
}

function toSeconds(ms: number): number {
  return Math.min(MAX_HIDE_SECONDS, Math.ceil(ms / 1_000));
}
