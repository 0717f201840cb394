/**
 * Sends dead letters back to their queue: receive, send, delete, on every backend.
 *
 * Invariant: a letter is deleted only after SQS took its copy with the same body, or when whoever decides says that its
 * effect is applied. Ended at any point, by a signal or a crash, a run is simply repeated: a letter may then be there
 * twice, and the effect record makes one of the two a replay.
 */
import type { Message as SqsMessage, SQSClient } from '@aws-sdk/client-sqs';
import { classifyFault } from '../aws-fault.ts';
import { sleep, systemClock, type Clock } from '../clock.ts';
import { MAX_BATCH_ENTRIES } from '../messages/limits.ts';
import { NOTICE_ATTRIBUTE } from './dead-letter-notice.ts';
import { toDeadLetter, type DeadLetter } from './dead-letters.ts';
import { holdMessages, type HeldMessages } from './held-messages.ts';
import { deleteMessage, isUndamaged, sendMessage } from './queue-messages.ts';
import { isFifo } from './topology.ts';

/** `delete`: its effect is applied, nobody needs it any more. */
export type RedriveAction = 'move' | 'delete' | 'leave';

export interface RedriveDecision {
  readonly action: RedriveAction;
}

export interface RedriveOptions<Decision extends RedriveDecision> {
  /** The most that are moved or deleted. Range: 1-10000. */
  readonly limit: number;
  /** Asked right before the letter is moved, and again when there was a wait in between. */
  readonly decide: (letter: DeadLetter) => Promise<Decision>;
  /** Told once for each letter. `action` is what was done: what a worker dead-lettered again meanwhile is left. */
  readonly onSettled?: (letter: DeadLetter, decision: Decision, action: RedriveAction) => void;
  /** Moved at most. Unit: letters per second. Range: above 0. @defaultValue as fast as it goes */
  readonly ratePerSecond?: number;
  /** Ends the run between two letters. */
  readonly signal?: AbortSignal;
  /** For tests. @defaultValue the system's */
  readonly clock?: Clock;
}

export interface RedriveReport {
  readonly moved: number;
  readonly deleted: number;
  readonly left: number;
  /** Further copies of messages that were moved: deleted with them. */
  readonly copies: number;
  /** Came damaged over the wire, and were left. */
  readonly damaged: number;
  /** `looked`: more letters than one run can hide were there. */
  readonly end: 'empty' | 'limit' | 'looked' | 'interrupted';
}

/** The most that one run looks at. What it passes over stays hidden until its end, and SQS allows 20,000 at the least. */
const MAX_LOOKED = 10_000;
/** While waiting for its turn, a run sees to what it hides as often as this. Unit: ms. */
const KEEP_EVERY_MS = 5_000;

/**
 * @remarks On a FIFO queue a letter that is left hides those behind it in its group from the same run.
 * @throws what the queue throws; what was looked at is shown again before. Then, too, the run can be repeated.
 */
export async function redrive<Decision extends RedriveDecision>(
  client: SQSClient,
  urls: { readonly from: string; readonly to: string },
  options: RedriveOptions<Decision>,
): Promise<RedriveReport> {
  const run = new RedriveRun(client, urls, options);
  let end: RedriveReport['end'];
  try {
    end = await run.toTheEnd();
  } catch (error) {
    // What went wrong first is what people must hear of; letters show themselves after half a minute.
    await run.held.showAll().catch(() => undefined);
    throw error;
  }
  await run.held.showAll();
  return { ...run.counts, end };
}

class RedriveRun<Decision extends RedriveDecision> {
  readonly held: HeldMessages;
  readonly counts = { moved: 0, deleted: 0, left: 0, copies: 0, damaged: 0 };
  readonly #client: SQSClient;
  readonly #urls: { readonly from: string; readonly to: string };
  readonly #options: RedriveOptions<Decision>;
  readonly #clock: Clock;
  readonly #looked = new Set<string>();
  /** Letters that were moved but may still be there, and what names all copies of one message. */
  readonly #moved = new Set<string>();
  /** Ids on the queue. A worker may dead-letter again what was just moved: that is left for people to look at. */
  readonly #sentBack = new Set<string>();
  #nextTurnMs: number;

  constructor(
    client: SQSClient,
    urls: { readonly from: string; readonly to: string },
    options: RedriveOptions<Decision>,
  ) {
    this.#client = client;
    this.#urls = urls;
    this.#options = options;
    this.#clock = options.clock ?? systemClock;
    this.#nextTurnMs = this.#clock.monotonicMs();
    this.held = holdMessages(client, urls.from, this.#clock);
  }

  async toTheEnd(): Promise<RedriveReport['end']> {
    for (;;) {
      const stop = this.#stop();
      if (stop !== undefined) return stop;
      const messages = await this.held.receive(MAX_BATCH_ENTRIES);
      if (messages.every(({ MessageId = '' }) => this.#looked.has(MessageId))) return 'empty';
      for (const message of messages) {
        const stopBetween = this.#stop();
        if (stopBetween !== undefined) return stopBetween;
        await this.#treat(message);
        await this.held.keepHidden();
      }
    }
  }

  #stop(): RedriveReport['end'] | undefined {
    if (this.#options.signal?.aborted === true) return 'interrupted';
    if (this.counts.moved + this.counts.deleted >= this.#options.limit) return 'limit';
    return this.#looked.size >= MAX_LOOKED ? 'looked' : undefined;
  }

  async #treat(message: SqsMessage): Promise<void> {
    const letter = toDeadLetter(message);
    const wasMoved = this.#moved.has(letter.messageId);
    if (wasMoved || (letter.original !== undefined && this.#moved.has(letter.original))) {
      this.#looked.add(letter.messageId);
      await this.#discard(message);
      if (!wasMoved) this.counts.copies += 1;
      return;
    }
    if (this.#looked.has(letter.messageId)) return;
    if (!isUndamaged(message)) {
      this.#looked.add(letter.messageId);
      this.counts.damaged += 1;
      return;
    }
    await this.#settle(message, letter);
  }

  async #settle(message: SqsMessage, letter: DeadLetter): Promise<void> {
    const { decide, onSettled } = this.#options;
    let decision = await decide(letter);
    let action = this.#actionFor(letter, decision);
    if (action === 'move') {
      const turn = await this.#turn();
      // Not looked at: the next run finds it as it was.
      if (turn === 'interrupted') return;
      // While this letter waited, its effect may have been applied.
      if (turn === 'waited') decision = await decide(letter);
      action = this.#actionFor(letter, decision);
    }
    this.#looked.add(letter.messageId);
    if (action === 'move') await this.#move(message, letter);
    else if (action === 'delete') await this.#discard(message);
    this.counts[COUNTED_AS[action]] += 1;
    onSettled?.(letter, decision, action);
  }

  #actionFor(letter: DeadLetter, { action }: RedriveDecision): RedriveAction {
    const isBackAgain = this.#sentBack.has(letter.messageId) || this.#sentBack.has(letter.notice?.messageId ?? '');
    return action === 'move' && isBackAgain ? 'leave' : action;
  }

  async #move(message: SqsMessage, letter: DeadLetter): Promise<void> {
    this.#sentBack.add(await sendBack(this.#client, this.#urls.to, message));
    this.#moved.add(letter.messageId);
    if (letter.original !== undefined) this.#moved.add(letter.original);
    await this.#discard(message);
  }

  async #discard(message: SqsMessage): Promise<void> {
    try {
      await deleteMessage(this.#client, this.#urls.from, message.ReceiptHandle ?? '');
    } catch (error) {
      // Too old a handle: somebody else has this letter now. Should it come again, it is only deleted.
      if (classifyFault(error) !== 'receiptGone') throw error;
    }
    this.held.forget(message);
  }

  /** Waits until the next letter may be moved; what is held meanwhile stays hidden. */
  async #turn(): Promise<'at-once' | 'waited' | 'interrupted'> {
    const { ratePerSecond, signal } = this.#options;
    if (ratePerSecond === undefined) return 'at-once';
    let hasWaited = false;
    for (;;) {
      const waitMs = this.#nextTurnMs - this.#clock.monotonicMs();
      if (waitMs <= 0) break;
      hasWaited = true;
      try {
        await sleep(this.#clock, Math.min(waitMs, KEEP_EVERY_MS), signal);
      } catch {
        return 'interrupted';
      }
      await this.held.keepHidden();
    }
    // Counted from now: what was too slow is not caught up with a burst.
    this.#nextTurnMs = this.#clock.monotonicMs() + 1_000 / ratePerSecond;
    return hasWaited ? 'waited' : 'at-once';
  }
}

const COUNTED_AS = { move: 'moved', delete: 'deleted', leave: 'left' } as const;

/** @returns the id of the message on its queue. */
function sendBack(client: SQSClient, url: string, message: SqsMessage): Promise<string> {
  // The notice belongs to the copy; what comes back to the queue is the original.
  const { [NOTICE_ATTRIBUTE]: _notice, ...attributes } = message.MessageAttributes ?? {};
  const { MessageId = '', Body = '', Attributes = {} } = message;
  return sendMessage(client, url, {
    body: Body,
    attributes,
    traceHeader: Attributes.AWSTraceHeader,
    ...(isFifo(url) && {
      groupId: Attributes.MessageGroupId ?? MessageId,
      // New for SQS, which would drop a message that it has seen within five minutes; the same when a run is repeated.
      deduplicationId: `redrive-${MessageId}`,
    }),
  });
}
