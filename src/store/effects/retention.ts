/** Whether effect records outlive those who may still ask for them: a key that is forgotten is applied once more. */
import { ConfigurationError, type OptionFault } from '../../errors.ts';
import { SECONDS_PER_DAY } from '../ttl.ts';

/** For how long a key may come back. What does not apply is left out. */
export interface ReturnTimes {
  /** From a caller who repeats its request. Unit: days. */
  readonly callersRetryForDays?: number;
  /** From the queue. Unit: s. */
  readonly queueRetentionSeconds?: number;
  /** From its dead-letter queue by a redrive, after all the time on the queue itself. Unit: s. */
  readonly deadLetterRetentionSeconds?: number;
}

/** @throws {ConfigurationError} when a record is deleted earlier than its key may come back; all faults are listed. */
export function checkRetention(store: { readonly recordRetentionDays: number }, times: ReturnTimes): void {
  const faults = retentionFaults(store.recordRetentionDays, times);
  if (faults.length > 0) throw new ConfigurationError('retention', faults);
}

export function retentionFaults(recordRetentionDays: number, times: ReturnTimes): OptionFault[] {
  const { callersRetryForDays, queueRetentionSeconds, deadLetterRetentionSeconds } = times;
  const faults: OptionFault[] = [];
  if (callersRetryForDays !== undefined && !(callersRetryForDays > 0 && callersRetryForDays <= recordRetentionDays)) {
    const rule = `more than 0 and at most the store's recordRetentionDays (${String(recordRetentionDays)})`;
    faults.push({ name: 'callersRetryForDays', rule, value: callersRetryForDays });
  }
  for (const [name, value] of Object.entries({ queueRetentionSeconds, deadLetterRetentionSeconds })) {
    if (value === undefined || (Number.isFinite(value) && value >= 0)) continue;
    faults.push({ name, rule: 'a number of seconds, 0 or more', value });
  }
  // A redrive sends a fresh message, so the two times add up.
  const neededDays = ((queueRetentionSeconds ?? 0) + (deadLetterRetentionSeconds ?? 0)) / SECONDS_PER_DAY;
  if (neededDays > recordRetentionDays) {
    const rule = `at least ${String(Math.ceil(neededDays))} days: the queue's retention and its dead-letter queue's`;
    faults.push({ name: 'recordRetentionDays', rule, value: recordRetentionDays });
  }
  return faults;
}
