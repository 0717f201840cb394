/**
 * Sends messages to one queue: in requests as large as SQS takes, several at a time, with one result per entry.
 * A call that got only half of its entries through can be resumed; it never leaves open which half that was.
 */
import type { MessageContract } from '../messages/contract.ts';
import { prepareEntry, type DeliveryOptions, type OutgoingEntry, type PreparedEntry } from './outgoing-entry.ts';
import { isFifo } from '../queues/topology.ts';
import { resolveProducerOptions, type ProducerOptions } from './producer-options.ts';
import { notStarted, sendRequest } from './send-request.ts';
import { sentBefore, type SendResult, type SentEntry } from './send-result.ts';
import { splitBatches } from './split-batches.ts';

/** How one message is sent. */
export interface SendOptions extends DeliveryOptions {
  readonly signal?: AbortSignal;
}

/** How far a batch is. */
export interface SendProgress {
  /** Entries of the call. */
  readonly total: number;
  readonly sent: number;
  readonly failed: number;
  readonly invalid: number;
  /** The results that came since the last report: what to keep if this process may die before the call ends. */
  readonly latest: readonly SendResult[];
}

/** How many entries are sent in one call: progress, resuming, an early end. */
export interface SendBatchOptions {
  /**
   * The result of an earlier call with the same entries: what it sent is not sent again, and is reported as it was.
   * @defaultValue every entry is sent
   */
  readonly resumeFrom?: readonly SendResult[];
  /** Called after each request. What it throws becomes a warning of the process: the results must not get lost. */
  readonly onProgress?: (progress: SendProgress) => void;
  /** Ends the call early: entries not settled by then are `failed` with code `aborted`. The promise still resolves. */
  readonly signal?: AbortSignal;
}

/** Sends messages to one queue. */
export interface Producer {
  /** Sends one message. What is wrong with it is told in the result, as in `sendBatch`. */
  send<Payload>(contract: MessageContract<Payload>, payload: Payload, options?: SendOptions): Promise<SendResult>;
  /**
   * Sends entries and gives one result for each, in their order.
   *
   * @remarks Nothing about one entry stops the others, and nothing about an entry throws. Requests run side by side,
   * so entries may reach the queue in another order. An entry whose answer was lost is sent again: it may be on the
   * queue twice, with the same business key.
   * @throws {ConfigurationError} when `resumeFrom` is not the result of these entries.
   */
  sendBatch<Payload>(
    entries: readonly OutgoingEntry<Payload>[],
    options?: SendBatchOptions,
  ): Promise<readonly SendResult[]>;
}

/** @throws {ConfigurationError} listing every wrong option. */
export function createProducer(options: ProducerOptions): Producer {
  const resolved = resolveProducerOptions(options);

  async function sendBatch<Payload>(
    entries: readonly OutgoingEntry<Payload>[],
    batchOptions: SendBatchOptions = {},
  ): Promise<readonly SendResult[]> {
    const { resumeFrom, signal } = batchOptions;
    const skipped = resumeFrom === undefined ? new Map<number, SentEntry>() : sentBefore(entries, resumeFrom);
    const board = createResultBoard(entries.length, batchOptions.onProgress);
    board.settle([...skipped.values()]);
    const prepared = preparedOf(entries, {
      skipped,
      isFifo: isFifo(resolved.queueUrl),
      settle: (results) => board.settle(results),
    });
    const batches = splitBatches(prepared);
    await inLanes(batches, resolved.maxConcurrentRequests, async (batch) => {
      board.settle(signal?.aborted === true ? notStarted(batch) : await sendRequest(batch, resolved, signal));
      board.report();
    });
    board.report();
    return board.results();
  }

  async function send<Payload>(
    contract: MessageContract<Payload>,
    payload: Payload,
    sendOptions: SendOptions = {},
  ): Promise<SendResult> {
    const { signal, ...delivery } = sendOptions;
    const results = await sendBatch([{ contract, payload, ...delivery }], signal === undefined ? {} : { signal });
    return only(results);
  }

  return { send, sendBatch };
}

/** Checks and encodes entries as they are asked for; those that cannot be sent are settled at once. */
function* preparedOf<Payload>(
  entries: readonly OutgoingEntry<Payload>[],
  call: {
    readonly skipped: ReadonlyMap<number, SentEntry>;
    readonly isFifo: boolean;
    readonly settle: (results: readonly SendResult[]) => void;
  },
): Generator<PreparedEntry, void> {
  for (const [index, entry] of entries.entries()) {
    if (call.skipped.has(index)) continue;
    const prepared = prepareEntry(entry, index, call);
    if (prepared.kind === 'ready') yield prepared.entry;
    else call.settle([{ kind: 'invalid', index, reason: prepared.reason }]);
  }
}

/** Works on `lanes` items at a time; each lane takes the next one when it is done with its own. */
async function inLanes<Item>(items: Iterable<Item>, lanes: number, work: (item: Item) => Promise<void>): Promise<void> {
  const iterator = items[Symbol.iterator]();
  async function lane(): Promise<void> {
    for (let next = iterator.next(); next.done !== true; next = iterator.next()) await work(next.value);
  }
  await Promise.all(Array.from({ length: lanes }, lane));
}

interface ResultBoard {
  settle(results: readonly SendResult[]): void;
  /** Tells the listener what came since the last report, if anything did. */
  report(): void;
  results(): readonly SendResult[];
}

function createResultBoard(total: number, onProgress: SendBatchOptions['onProgress']): ResultBoard {
  const byIndex = new Map<number, SendResult>();
  const counts = { sent: 0, failed: 0, invalid: 0 };
  let latest: SendResult[] = [];
  return {
    settle(results) {
      for (const result of results) {
        byIndex.set(result.index, result);
        counts[result.kind] += 1;
        latest.push(result);
      }
    },
    report() {
      if (latest.length === 0) return;
      const progress: SendProgress = { total, ...counts, latest };
      latest = [];
      try {
        onProgress?.(progress);
      } catch (error) {
        process.emitWarning(error instanceof Error ? error : String(error));
      }
    },
    results: () => [...byIndex.values()].sort((left, right) => left.index - right.index),
  };
}

function only(results: readonly SendResult[]): SendResult {
  const [result] = results;
  if (result === undefined) throw new Error('invariant: every entry has a result');
  return result;
}
