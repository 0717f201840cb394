/**
 * The waiting line of long polls, one per queue: the poll that came first is served first, and the others go on waiting.
 *
 * Only the head of a line asks the queue, by short calls: every waiter would get the same answer, and a single asker can
 * neither wake the others for nothing nor take a message on behalf of a caller that has gone.
 */
import { sleep, type Clock } from '../clock.ts';

/** What one short receive brought. `empty` means: nothing there, and no error either. */
export interface Received<Answer> {
  readonly answer: Answer;
  readonly empty: boolean;
}

/** One caller that waits for messages. */
export interface Poll<Answer> {
  /** Polls of the same queue stand in one line. */
  readonly queue: string;
  /** How long to wait for a message. Unit: ms. */
  readonly waitMs: number;
  /** Aborts when the caller has gone. */
  readonly gone: AbortSignal;
  /** Asks the queue once, without waiting. */
  receive(): Promise<Received<Answer>>;
  /** Takes back messages that nobody is left to receive. */
  giveBack(answer: Answer): Promise<void>;
}

/** What became of a poll. `full`: too many polls wait already, this one was not admitted. */
export type PollOutcome<Answer> =
  { readonly kind: 'answer'; readonly answer: Answer } | { readonly kind: 'empty' | 'gone' | 'full' };

interface Waiter<Answer> {
  readonly poll: Poll<Answer>;
  readonly deadlineMs: number;
  readonly resolve: (outcome: PollOutcome<Answer>) => void;
  readonly reject: (reason: unknown) => void;
}

/** Limits of the waiting lines. */
export interface LongPollsOptions {
  readonly clock: Clock;
  /** Time between two calls while nothing comes. Unit: ms. */
  readonly askEveryMs: number;
  /** How many polls may wait, all queues together. */
  readonly maxWaiting: number;
}

export class LongPolls<Answer> {
  readonly #options: LongPollsOptions;
  readonly #lines = new Map<string, Set<Waiter<Answer>>>();
  #closed = false;

  constructor(options: LongPollsOptions) {
    this.#options = options;
  }

  /** How many polls wait now. */
  get waiting(): number {
    let count = 0;
    for (const line of this.#lines.values()) count += line.size;
    return count;
  }

  /** Waits in the line of its queue. Rejects only when `receive` does. */
  wait(poll: Poll<Answer>): Promise<PollOutcome<Answer>> {
    if (poll.gone.aborted) return Promise.resolve({ kind: 'gone' });
    if (this.#closed) return Promise.resolve({ kind: 'empty' });
    if (this.waiting >= this.#options.maxWaiting) return Promise.resolve({ kind: 'full' });
    return new Promise((resolve, reject) => {
      const deadlineMs = this.#options.clock.monotonicMs() + poll.waitMs;
      const waiter = { poll, deadlineMs, resolve, reject };
      const leave = (): void => {
        this.#leave(waiter, { kind: 'gone' });
      };
      poll.gone.addEventListener('abort', leave, { once: true });
      this.#join(waiter);
    });
  }

  /** Answers everybody who waits with "nothing came", and whoever comes later at once. */
  close(): void {
    this.#closed = true;
    for (const line of this.#lines.values()) for (const waiter of line) this.#leave(waiter, { kind: 'empty' });
  }

  #join(waiter: Waiter<Answer>): void {
    const line = this.#lines.get(waiter.poll.queue);
    if (line !== undefined) {
      line.add(waiter);
      return;
    }
    const started = new Set([waiter]);
    this.#lines.set(waiter.poll.queue, started);
    void this.#serve(waiter.poll.queue, started);
  }

  #leave(waiter: Waiter<Answer>, outcome: PollOutcome<Answer>): void {
    this.#lines.get(waiter.poll.queue)?.delete(waiter);
    waiter.resolve(outcome);
  }

  /** Runs as long as somebody waits: asks for the head, hands over what came, rests when nothing did. */
  async #serve(queue: string, line: Set<Waiter<Answer>>): Promise<void> {
    for (;;) {
      const [head] = line;
      if (head === undefined) break;
      const pause = await this.#serveHead(line, head);
      if (!pause) continue;
      this.#expire(line);
      if (line.size > 0) await sleep(this.#options.clock, this.#options.askEveryMs);
    }
    this.#lines.delete(queue);
  }

  /** @returns true when the queue had nothing. */
  async #serveHead(line: Set<Waiter<Answer>>, head: Waiter<Answer>): Promise<boolean> {
    try {
      const { answer, empty } = await head.poll.receive();
      if (empty) return true;
      // The head may have gone, or been sent away, while its messages were on their way.
      if (line.has(head)) this.#leave(head, { kind: 'answer', answer });
      else await head.poll.giveBack(answer);
    } catch (error) {
      line.delete(head);
      head.reject(error);
    }
    return false;
  }

  #expire(line: Set<Waiter<Answer>>): void {
    const nowMs = this.#options.clock.monotonicMs();
    for (const waiter of line) if (waiter.deadlineMs <= nowMs) this.#leave(waiter, { kind: 'empty' });
  }
}
