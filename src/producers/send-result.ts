/** What became of each entry of a call, and how a later call goes on from there. */
import { ConfigurationError, type OptionFault } from '../errors.ts';
import { keyOfEntry, type OutgoingEntry } from './outgoing-entry.ts';

/** SQS has taken the message. */
export interface SentEntry {
  readonly kind: 'sent';
  readonly index: number;
  readonly key: string;
  readonly messageId: string;
}

/**
 * Not known to be on the queue. It may be there all the same, when only the answer got lost: send it again, its
 * business key makes that harmless.
 */
export interface FailedEntry {
  readonly kind: 'failed';
  readonly index: number;
  readonly key: string;
  /**
   * SQS's own code when it refused this entry; else why the request failed: a `FaultClass`, `aborted` (by the caller's
   * signal), `deadline`, or `unanswered` (the answer did not name this entry).
   */
  readonly code: string;
  /** True when the same entry may be taken later without anybody changing anything. */
  readonly retryable: boolean;
  readonly reason: string;
}

/** Never sent: SQS or the contract would refuse it. */
export interface InvalidEntry {
  readonly kind: 'invalid';
  readonly index: number;
  /** Name, rule and value of each fault. */
  readonly reason: string;
}

/** What became of one entry. */
export type SendResult = SentEntry | FailedEntry | InvalidEntry;

/**
 * The entries that a previous call already sent, by index.
 * @throws {ConfigurationError} when `previous` belongs to other entries: skipping by it would lose messages.
 */
export function sentBefore<Payload>(
  entries: readonly OutgoingEntry<Payload>[],
  previous: readonly SendResult[],
): ReadonlyMap<number, SentEntry> {
  if (previous.length !== entries.length) {
    const rule = `the whole result of the same ${String(entries.length)} entries`;
    throw new ConfigurationError('sendBatch', [
      { name: 'resumeFrom', rule, value: `${String(previous.length)} results` },
    ]);
  }
  const faults = entries.flatMap((entry, index): OptionFault[] => {
    const result = previous[index];
    const key = result?.kind === 'sent' ? keyOfEntry(entry) : undefined;
    if (result?.index === index && (result.kind !== 'sent' || result.key === key)) return [];
    const name = `resumeFrom[${String(index)}]`;
    return [{ name, rule: `the result of entry ${String(index)} with its key`, value: result }];
  });
  if (faults.length > 0) throw new ConfigurationError('sendBatch', faults);
  const sent = previous.filter((result) => result.kind === 'sent');
  return new Map(sent.map((result) => [result.index, result]));
}
