/** What SQS says to each entry of a batch request. Never throws: a request that fails or hangs is an answer to all. */
import type { BatchResultErrorEntry } from '@aws-sdk/client-sqs';
import { classifyFault, isRetryable } from '../aws-fault.ts';
import type { Clock } from '../clock.ts';

export type EntryAnswer =
  | 'done'
  /** The receipt handle is too old, or its message is no longer there: repeating cannot help. */
  | 'gone'
  /** Not applied, for a reason that may pass. */
  | 'refused'
  /** It may have been applied: no answer, or one that leaves it open. */
  | 'unclear'
  /** The request itself is refused (permissions, no such queue), which says nothing about the message. */
  | 'denied';

interface BatchResult {
  readonly Successful?: readonly { readonly Id?: string | undefined }[] | undefined;
  readonly Failed?: readonly BatchResultErrorEntry[] | undefined;
}

export interface BatchRequest {
  /** How many entries it has; their ids are their places. */
  readonly entries: number;
  /** After so long it is given up, whatever hangs. Unit: ms. */
  readonly answerMs: number;
  readonly clock: Clock;
  readonly send: (abortSignal: AbortSignal) => Promise<BatchResult>;
}

/** The answers in the order of the entries. */
export function answersOf(request: BatchRequest): Promise<EntryAnswer[]> {
  const toAll = (answer: EntryAnswer): EntryAnswer[] => Array<EntryAnswer>(request.entries).fill(answer);
  const timeout = new AbortController();
  return new Promise((resolve) => {
    const cancelTimeout = request.clock.schedule(() => {
      timeout.abort();
      resolve(toAll('unclear'));
    }, request.answerMs);
    Promise.resolve(timeout.signal)
      .then(request.send)
      .then(
        (result) => {
          resolve(answersIn(result, request.entries));
        },
        (error: unknown) => {
          resolve(toAll(answerToAll(error)));
        },
      )
      .finally(cancelTimeout);
  });
}

/** The place of an entry is its id: unique within the request, whatever the messages are. */
export function entryId(index: number): string {
  return String(index);
}

function answersIn(result: BatchResult, entries: number): EntryAnswer[] {
  const successful = new Set((result.Successful ?? []).map(({ Id }) => Id));
  const failed = new Map((result.Failed ?? []).map((failure) => [failure.Id, failure]));
  return Array.from({ length: entries }, (_, index) => {
    const failure = failed.get(entryId(index));
    if (failure !== undefined) return answerToEntry(failure);
    // Nothing is taken for done that SQS has not named.
    return successful.has(entryId(index)) ? 'done' : 'unclear';
  });
}

function answerToEntry({ Code, SenderFault }: BatchResultErrorEntry): EntryAnswer {
  // Throttling counts as a fault of the sender too, and passes all the same: the code says more than the flag.
  const fault = classifyFault(Object.assign(new Error(Code), { name: Code ?? '' }));
  if (isRetryable(fault)) return fault === 'ambiguous' ? 'unclear' : 'refused';
  return SenderFault === true ? 'gone' : 'refused';
}

function answerToAll(error: unknown): EntryAnswer {
  const fault = classifyFault(error);
  if (fault === 'throttled' || fault === 'unreachable') return 'refused';
  return isRetryable(fault) || fault === 'aborted' ? 'unclear' : 'denied';
}
