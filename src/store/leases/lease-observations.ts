/**
 * What this process has seen of leases that others hold. A lease that stays unchanged for its whole length on our own
 * monotonic clock is dead, whatever the holder's clock said. Only durations are compared, never clocks of two machines.
 */
import type { Clock } from '../../clock.ts';
import { MAX_CLOCK_DRIFT, type ResolvedLeaseOptions } from './lease-options.ts';
import { numberOf } from '../plain-item.ts';
import { keyText, type Item, type ItemKey } from '../table.ts';

export interface LeaseObservation {
  readonly owner: string;
  readonly fencingToken: number;
  readonly heartbeat: number;
  readonly leaseMs: number;
  /** When this very state was first seen. Never refreshed while the state stays. */
  readonly firstSeenMonoMs: number;
}

export interface LeaseObservations {
  /** Remembers what a refused acquisition brought back, and tells how long until it may be tried with success. */
  record(key: ItemKey, item: Item): { readonly waitMs: number };
  /** The observation of this key, once it has been silent for a whole lease. */
  silent(key: ItemKey): LeaseObservation | undefined;
  forget(key: ItemKey): void;
}

/** Enough for every key that a process can have in flight, small enough to never matter. */
const MAX_OBSERVATIONS = 10_000;

/** @param byClock whether the end of a lease by the clock frees it, or observed silence alone. */
export function createLeaseObservations(clock: Clock, lease: ResolvedLeaseOptions, byClock = true): LeaseObservations {
  const seen = new Map<string, LeaseObservation>();

  const matureInMs = (observation: LeaseObservation): number => {
    const silentForMs = clock.monotonicMs() - observation.firstSeenMonoMs;
    return observation.leaseMs * (1 + MAX_CLOCK_DRIFT) + lease.takeoverGraceMs - silentForMs;
  };

  return {
    record(key, item) {
      const fresh = observationOf(item, clock.monotonicMs());
      const known = seen.get(keyText(key));
      const observation = known !== undefined && isSame(known, fresh) ? known : fresh;
      // Map keeps insertion order: taking it out first makes the oldest entry the least recently seen one.
      seen.delete(keyText(key));
      seen.set(keyText(key), observation);
      if (seen.size > MAX_OBSERVATIONS) seen.delete(seen.keys().next().value ?? '');
      const expiryMs = byClock ? numberOf(item['expiresAtMs'], 0) : Number.POSITIVE_INFINITY;
      const expiresInMs = expiryMs + lease.maxClockSkewMs - clock.nowMs();
      return { waitMs: Math.max(0, Math.ceil(Math.min(expiresInMs, matureInMs(observation)))) };
    },
    silent(key) {
      const observation = seen.get(keyText(key));
      return observation !== undefined && matureInMs(observation) <= 0 ? observation : undefined;
    },
    forget(key) {
      seen.delete(keyText(key));
    },
  };
}

function observationOf(item: Item, nowMonoMs: number): LeaseObservation {
  return {
    owner: String(item['owner']),
    fencingToken: numberOf(item['fencingToken'], 0),
    heartbeat: numberOf(item['heartbeat'], 0),
    leaseMs: numberOf(item['leaseMs'], 0),
    firstSeenMonoMs: nowMonoMs,
  };
}

function isSame(left: LeaseObservation, right: LeaseObservation): boolean {
  return left.owner === right.owner && left.fencingToken === right.fencingToken && left.heartbeat === right.heartbeat;
}
