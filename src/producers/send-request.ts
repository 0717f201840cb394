/**
 * Sends one request's worth of entries until each of them is settled: taken, refused for good, or out of tries or
 * time. Only what failed is sent again.
 */
import { SendMessageBatchCommand, type SendMessageBatchRequestEntry } from '@aws-sdk/client-sqs';
import { classifyFault, isRetryable } from '../aws-fault.ts';
import { fullJitterMs } from '../backoff.ts';
import { sleep } from '../clock.ts';
import { messageOf } from '../errors.ts';
import { STRING_ATTRIBUTE, type PreparedEntry } from './outgoing-entry.ts';
import type { ResolvedProducerOptions } from './producer-options.ts';
import type { FailedEntry, SendResult } from './send-result.ts';

/** When to stop trying: at a time of the monotonic clock, or when the caller says so. */
interface Bounds {
  readonly endsAtMs: number;
  readonly signal: AbortSignal | undefined;
}

/** One result per entry, in no particular order. Never throws. */
export async function sendRequest(
  entries: readonly PreparedEntry[],
  options: ResolvedProducerOptions,
  signal?: AbortSignal,
): Promise<readonly SendResult[]> {
  const bounds: Bounds = { endsAtMs: options.clock.monotonicMs() + options.deadlineMs, signal };
  const settled: SendResult[] = [];
  let open = entries;
  for (let attempt = 1; ; attempt += 1) {
    const results = await tryOnce(open, options, bounds);
    const again = new Map(results.filter(mayRetry).map((result) => [result.index, result]));
    settled.push(...results.filter((result) => !again.has(result.index)));
    if (again.size === 0) return settled;
    const goesOn = attempt < options.maxAttempts && (await pause(attempt, options, bounds));
    if (!goesOn) return [...settled, ...again.values()];
    open = open.filter((entry) => again.has(entry.index));
  }
}

/** The result of entries whose request was never made, since the caller had already aborted. */
export function notStarted(entries: readonly PreparedEntry[]): readonly FailedEntry[] {
  return entries.map((entry) =>
    failed(entry, { code: 'aborted', retryable: true, reason: 'aborted before it was sent' }),
  );
}

async function tryOnce(
  entries: readonly PreparedEntry[],
  options: ResolvedProducerOptions,
  bounds: Bounds,
): Promise<SendResult[]> {
  const { client, clock, queueUrl } = options;
  const deadline = new AbortController();
  const cancel = clock.schedule(() => deadline.abort(), bounds.endsAtMs - clock.monotonicMs(), { background: true });
  const signals = bounds.signal === undefined ? [deadline.signal] : [deadline.signal, bounds.signal];
  try {
    const command = new SendMessageBatchCommand({ QueueUrl: queueUrl, Entries: entries.map(requestEntry) });
    const answer = await client.send(command, { abortSignal: AbortSignal.any(signals) });
    const taken = new Map(answer.Successful?.map((entry) => [entry.Id, entry.MessageId ?? '']));
    const refused = new Map(answer.Failed?.map((entry) => [entry.Id, entry]));
    return entries.map((entry) => {
      const messageId = taken.get(requestId(entry));
      if (messageId !== undefined) return { kind: 'sent', index: entry.index, key: entry.key, messageId };
      const fault = refused.get(requestId(entry));
      if (fault === undefined) {
        return failed(entry, { code: 'unanswered', retryable: true, reason: 'the answer does not name this entry' });
      }
      const code = fault.Code ?? 'unknown';
      return failed(entry, { code, retryable: fault.SenderFault !== true, reason: fault.Message ?? code });
    });
  } catch (error) {
    const why = causeOfFailure(error, { deadline: deadline.signal.aborted, aborted: bounds.signal?.aborted === true });
    return entries.map((entry) => failed(entry, why));
  } finally {
    cancel();
  }
}

type Why = Pick<FailedEntry, 'code' | 'retryable' | 'reason'>;

/** A request that was cut off may have been taken: all entries stay open, and sending them again is harmless. */
function causeOfFailure(error: unknown, cut: { deadline: boolean; aborted: boolean }): Why {
  if (cut.aborted) return { code: 'aborted', retryable: true, reason: 'aborted while it was being sent' };
  if (cut.deadline) return { code: 'deadline', retryable: true, reason: 'no answer before the deadline' };
  const fault = classifyFault(error);
  return { code: fault, retryable: isRetryable(fault), reason: messageOf(error) || fault };
}

/** Waits before the next try; false when there is no time left for one. */
async function pause(attempt: number, options: ResolvedProducerOptions, bounds: Bounds): Promise<boolean> {
  const { clock, backoff, random } = options;
  const delayMs = fullJitterMs(attempt, backoff, random);
  if (clock.monotonicMs() + delayMs >= bounds.endsAtMs) return false;
  try {
    await sleep(clock, delayMs, bounds.signal);
    return true;
  } catch {
    return false;
  }
}

function mayRetry(result: SendResult): result is FailedEntry {
  return result.kind === 'failed' && result.retryable;
}

function requestEntry(entry: PreparedEntry): SendMessageBatchRequestEntry {
  const attributes = Object.entries(entry.attributes).map(
    ([name, value]) => [name, { DataType: STRING_ATTRIBUTE, StringValue: value }] as const,
  );
  return {
    Id: requestId(entry),
    MessageBody: entry.body,
    ...(entry.delaySeconds !== undefined && { DelaySeconds: entry.delaySeconds }),
    ...(entry.groupId !== undefined && { MessageGroupId: entry.groupId }),
    ...(entry.deduplicationId !== undefined && { MessageDeduplicationId: entry.deduplicationId }),
    ...(attributes.length > 0 && { MessageAttributes: Object.fromEntries(attributes) }),
  };
}

/** Unique within the call, and so within each request of it. */
function requestId(entry: PreparedEntry): string {
  return String(entry.index);
}

function failed(entry: PreparedEntry, why: Why): FailedEntry {
  return { kind: 'failed', index: entry.index, key: entry.key, ...why };
}
