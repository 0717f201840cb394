/** A flow's dead letters with their reasons, as all dlq commands look at them. */
import { eachDeadLetter, type DeadLetter } from '../../queues/dead-letters.ts';
import type { Flow } from '../../queues/topology.ts';
import { connect, type Connection, type FlowQueues } from '../connection.ts';
import { FLOW_CONTRACTS } from '../flow-contracts.ts';
import { interruption, type Interruption } from '../interruption.ts';
import { withKeptNotices } from '../kept-notice.ts';
import type { ConnectionFlags } from '../options.ts';
import { createOutput } from '../output.ts';
import { judgeLetter, type JudgedLetter } from './verdict.ts';

export interface DlqFlags extends ConnectionFlags {
  readonly limit: number;
}

export interface LetterScope extends FlowQueues, AsyncDisposable {
  readonly connection: Connection;
  readonly interrupted: Interruption;
  /** At most ten at a time; they stay hidden from others until the loop ends. */
  parts(limit: number): AsyncGenerator<DeadLetter[], void>;
  /** Finds a reason that is kept in the table. */
  withNotice(letter: DeadLetter): Promise<DeadLetter>;
  judge(letter: DeadLetter): Promise<JudgedLetter>;
}

export async function openLetters(flow: Flow, flags: ConnectionFlags): Promise<LetterScope> {
  const interrupted = interruption();
  const connection = await connect(flags, createOutput(flags.json === true));
  const close = (): Promise<void> => connection.close();
  try {
    const { queue, deadLetterQueue } = await connection.find(flow);
    const { queues, store } = connection;
    const withNotices = (letters: readonly DeadLetter[]): Promise<DeadLetter[]> =>
      withKeptNotices(letters, queue.name, store);
    return {
      connection,
      interrupted,
      queue,
      deadLetterQueue,
      async *parts(limit) {
        const { signal } = interrupted;
        for await (const part of eachDeadLetter(queues, deadLetterQueue.url, { limit, signal })) {
          yield await withNotices(part);
        }
      },
      withNotice: async (letter) => (await withNotices([letter]))[0] ?? letter,
      judge: ({ body }) => judgeLetter(body, { ...FLOW_CONTRACTS[flow], queue: queue.name, store }),
      [Symbol.asyncDispose]: close,
    };
  } catch (error) {
    // Local backends of this command alone would keep the process.
    await close();
    throw error;
  }
}

const MOVED_BY_QUEUE = 'maxReceiveCount';

export function reasonOf(letter: DeadLetter): string {
  return letter.notice?.reason ?? `${MOVED_BY_QUEUE} (moved by the queue itself)`;
}

/** @param reason as `reasonOf` tells it, or its first word. */
export function hasReason(letter: DeadLetter, reason: string): boolean {
  const own = letter.notice?.reason ?? MOVED_BY_QUEUE;
  return own === reason || reasonOf(letter) === reason;
}

/** When it became a dead letter, as far as that can be told. Unit: ms since the epoch. */
export function deadSinceMs(letter: DeadLetter): number | undefined {
  return letter.notice?.deadLetteredAtMs ?? letter.sentAtMs;
}
