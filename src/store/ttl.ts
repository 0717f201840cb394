/** When DynamoDB may delete an item: long after the fact, and never a decision. @see AWS: Time to Live */
import type { Clock } from '../clock.ts';

export const SECONDS_PER_DAY = 86_400;

/** The value of the TTL attribute for an item that is to stay so many days from now. Unit: s since the epoch. */
export function ttlAfterDays(clock: Clock, days: number): number {
  return Math.floor(clock.nowMs() / 1_000) + days * SECONDS_PER_DAY;
}
