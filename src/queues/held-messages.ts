/**
 * Messages that are looked at and not settled yet. They stay hidden for as long as that takes, since on a queue the only
 * way to get past a message is to hide it, and in the end they are shown again. Should this process die, they show
 * themselves after half a minute.
 */
import type { Message as SqsMessage, SQSClient } from '@aws-sdk/client-sqs';
import type { Clock } from '../clock.ts';
import { hideMessages, receiveMessages } from './queue-messages.ts';

/** How long a message is hidden at a time. Unit: s. */
export const LOOK_SECONDS = 30;
/** What is left of that when it is hidden anew. */
const RENEW_BELOW_MS = 15_000;

interface Held {
  readonly receiptHandle: string;
  /** On the monotonic clock. Counted from before the request, so that it is rather too early. */
  readonly hiddenUntilMs: number;
}

export interface HeldMessages {
  /** Receives at most `max` (1-10) and holds them. */
  receive(max: number): Promise<SqsMessage[]>;
  /** It was deleted. */
  forget(message: SqsMessage): void;
  /** Hides anew what would soon be visible; to be called every few seconds. What was lost meanwhile is let go. */
  keepHidden(): Promise<void>;
  /** Shows all that is held. */
  showAll(): Promise<void>;
}

export function holdMessages(client: SQSClient, url: string, clock: Clock): HeldMessages {
  const held = new Map<string, Held>();
  let nextLookMs = Infinity;

  function hold(id: string, receiptHandle: string, sinceMs: number): void {
    const hiddenUntilMs = sinceMs + LOOK_SECONDS * 1_000;
    held.set(id, { receiptHandle, hiddenUntilMs });
    nextLookMs = Math.min(nextLookMs, hiddenUntilMs - RENEW_BELOW_MS);
  }

  return {
    async receive(max) {
      const sinceMs = clock.monotonicMs();
      const messages = await receiveMessages(client, url, { max, hideSeconds: LOOK_SECONDS });
      for (const { MessageId = '', ReceiptHandle = '' } of messages) hold(MessageId, ReceiptHandle, sinceMs);
      return messages;
    },
    forget({ MessageId = '' }) {
      held.delete(MessageId);
    },
    async keepHidden() {
      const nowMs = clock.monotonicMs();
      if (nowMs < nextLookMs) return;
      const due = [...held].filter(([, { hiddenUntilMs }]) => hiddenUntilMs - nowMs <= RENEW_BELOW_MS);
      const receiptHandles = due.map(([, { receiptHandle }]) => receiptHandle);
      const refused = new Set(await hideMessages(client, url, { receiptHandles, seconds: LOOK_SECONDS }));
      nextLookMs = Infinity;
      for (const [id, { receiptHandle }] of due) {
        if (refused.has(receiptHandle)) held.delete(id);
        else hold(id, receiptHandle, nowMs);
      }
      for (const { hiddenUntilMs } of held.values()) nextLookMs = Math.min(nextLookMs, hiddenUntilMs - RENEW_BELOW_MS);
    },
    async showAll() {
      const receiptHandles = [...held.values()].map(({ receiptHandle }) => receiptHandle);
      held.clear();
      await hideMessages(client, url, { receiptHandles, seconds: 0 });
    },
  };
}
