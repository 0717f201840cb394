/** What the parts of the store are made from. */
import type { Clock, Random } from '../clock.ts';
import type { UpdateTarget } from './conditional-update.ts';
import type { TransactionWriter } from './transactions/transaction-writer.ts';

export interface StoreContext {
  /** With one try per request: whoever repeats a request must know whether an earlier try went unanswered. */
  readonly target: UpdateTarget;
  readonly transactions: TransactionWriter;
  readonly clock: Clock;
  readonly random: Random;
}
