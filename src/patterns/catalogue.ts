/** All walk-throughs, by their numbers. */
import type { Pattern } from './pattern.ts';
import { conditionalWrites } from './walkthroughs/22-conditional-writes.ts';
import { optimisticLocking } from './walkthroughs/23-optimistic-locking.ts';
import { atomicCounters } from './walkthroughs/24-atomic-counters.ts';
import { transactions } from './walkthroughs/25-transactions.ts';
import { uniqueConstraints } from './walkthroughs/26-unique-constraints.ts';
import { idempotencyKeys } from './walkthroughs/27-idempotency-keys.ts';
import { indexConsistency } from './walkthroughs/28-index-consistency.ts';
import { distributedLocks } from './walkthroughs/29-distributed-locks.ts';

export const PATTERNS: readonly Pattern[] = [
  conditionalWrites,
  optimisticLocking,
  atomicCounters,
  transactions,
  uniqueConstraints,
  idempotencyKeys,
  indexConsistency,
  distributedLocks,
];
