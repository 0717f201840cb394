/** What became of the effect that a dead letter asks for: read from the effect record of its business key. */
import type { Clock } from '../../clock.ts';
import type { MessageContract } from '../../messages/contract.ts';
import { decodeMessage } from '../../messages/envelope.ts';
import { effectRecordKey, type Item, type ItemKey } from '../../store/table.ts';

export const LETTER_VERDICTS = [
  /** COMPLETED with this payload: the effect is there, a redriven letter would be replayed. */
  'applied',
  /** REJECTED with this payload: the answer is final, a redriven letter would get it again. */
  'rejected',
  /** A worker holds the key right now, with this payload. */
  'running',
  /** The key belongs to another payload. */
  'conflict',
  /** Tried and not applied: FAILED, or the lease of whoever tried is over. */
  'failed',
  /** No record at all. */
  'neverRan',
  /** No contract of the flow takes it, so that it has no key. */
  'unreadable',
] as const;

export type LetterVerdict = (typeof LETTER_VERDICTS)[number];

export interface JudgedLetter {
  readonly verdict: LetterVerdict;
  /** The business key, if it can be read. */
  readonly key?: string;
  /** Of the letter's payload. */
  readonly payloadHash?: string;
}

export interface JudgeScope {
  readonly contracts: readonly MessageContract<unknown>[];
  /** The queue whose effect records are meant. */
  readonly queue: string;
  readonly store: { readonly clock: Clock; get(key: ItemKey): Promise<Item | undefined> };
}

/** One strongly consistent read at the most; changes nothing. @throws {BackendError} */
export async function judgeLetter(body: string, scope: JudgeScope): Promise<JudgedLetter> {
  const decoded = decodeMessage(body, scope.contracts);
  if (decoded.kind === 'invalid') return { verdict: 'unreadable' };
  const { key, payloadHash } = decoded.message;
  const record = await scope.store.get(effectRecordKey(scope.queue, key));
  return { verdict: verdictOf(record, payloadHash, scope.store.clock.nowMs()), key, payloadHash };
}

/** True when the record has the letter's answer already, for good. */
export function isFinished(verdict: LetterVerdict): boolean {
  return verdict === 'applied' || verdict === 'rejected';
}

function verdictOf(record: Item | undefined, payloadHash: string, nowMs: number): LetterVerdict {
  if (record?.['status'] === undefined) return 'neverRan';
  // Another payload is a conflict whatever became of the first one.
  if (record['payloadHash'] !== payloadHash) return 'conflict';
  if (record['status'] === 'COMPLETED') return 'applied';
  if (record['status'] === 'REJECTED') return 'rejected';
  return record['owner'] !== undefined && Number(record['expiresAtMs']) > nowMs ? 'running' : 'failed';
}
