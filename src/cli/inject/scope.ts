/** What every injection works with, and how it tells what it did. */
import type { Clock } from '../../clock.ts';
import type { EncodedMessage } from '../../messages/envelope.ts';
import type { QueueClient } from '../../queues/client.ts';
import type { QueueAddress } from '../../queues/create-queues.ts';
import { sendMessage } from '../../queues/queue-messages.ts';

/** One thing that was done. */
export interface Deed {
  /** `sent`, `received`, `refused`, ... */
  readonly action: string;
  /** For people. */
  readonly detail: string;
  readonly messageId?: string;
  /** The business key of the message, also where the body that was sent does not show it. */
  readonly key?: string;
  /** Of a body that its contract takes. */
  readonly payloadHash?: string;
  readonly receiveCount?: number;
  readonly bodyBytes?: number;
  readonly delaySeconds?: number;
}

export interface InjectScope {
  readonly client: QueueClient;
  readonly queue: QueueAddress;
  readonly clock: Clock;
  readonly signal: AbortSignal;
  /** How many are wanted; undefined: as many as the kind thinks fit. */
  readonly count: number | undefined;
  readonly delaySeconds: number;
  readonly providerUrl: string | undefined;
  /** Valid messages with keys of their own. */
  samples(count: number): readonly EncodedMessage[];
  /** Prints and journals; returns when the journal has it. */
  tell(deed: Deed): void;
}

/** Sends a body and tells it. @returns the message id. */
export async function sendAndTell(
  scope: InjectScope,
  { body, delaySeconds, ...deed }: Omit<Deed, 'action' | 'messageId'> & { readonly body: string },
): Promise<string> {
  const messageId = await sendMessage(scope.client, scope.queue.url, {
    body,
    ...(delaySeconds !== undefined && { delaySeconds }),
  });
  scope.tell({ ...deed, action: 'sent', messageId, ...(delaySeconds !== undefined && { delaySeconds }) });
  return messageId;
}

/** What names a valid message in the journal. */
export function namesOf({ key, payloadHash }: EncodedMessage): { readonly key: string; readonly payloadHash: string } {
  return { key, payloadHash };
}
