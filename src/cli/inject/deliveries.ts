/** One message that is delivered twice, and a delete that comes too late: what happens to receipt handles. */
import { classifyFault, faultName, isRetryable } from '../../aws-fault.ts';
import { sleep } from '../../clock.ts';
import type { EncodedMessage } from '../../messages/envelope.ts';
import type { QueueMessage } from '../../queues/client.ts';
import { deleteMessage, hideMessage, hideMessages, receiveMessages } from '../../queues/queue-messages.ts';
import { CommandError, EXIT } from '../exit-codes.ts';
import { namesOf, sendAndTell, type InjectScope } from './scope.ts';

/** How long a message stays with this command before it comes back. Unit: s. */
const HOLD_SECONDS = 1;
/** Backends look for what has come back up to a second late. */
const COMES_BACK_MS = HOLD_SECONDS * 1_000 + 200;
/** Each brings at most ten messages, and waits up to a second when there are none. */
const MAX_RECEIVES = 100;

/** A message of our own, and what was received of it. */
interface Own {
  readonly message: EncodedMessage;
  readonly messageId: string;
}

interface Taken extends Own {
  readonly received: QueueMessage;
}

/** Received here and never deleted, as by a worker that crashed; then its old handle is used once more. */
export async function injectSameDelivery(scope: InjectScope): Promise<void> {
  const taken = await takeAll(scope, await sendAll(scope));
  await pause(scope, COMES_BACK_MS);
  for (const { message, messageId, received } of taken) {
    const refusal = await refusalOf(
      hideMessage(scope.client, scope.queue.url, { receiptHandle: handleOf(received), seconds: 0 }),
    );
    const detail =
      refusal === undefined
        ? 'made visible by its first handle: whoever works on it now may meet it a second time'
        : `its first handle is worthless by now (${refusal}): it came back by itself`;
    scope.tell({ action: refusal === undefined ? 'shown' : 'refused', detail, messageId, ...namesOf(message) });
  }
}

/**
 * Deletes with the handle of an earlier receive. Some backends ignore that, some refuse it, some delete what another
 * works on; where the message may be gone for good, it is sent again, so that nothing is lost anywhere.
 */
export async function injectStaleReceipt(scope: InjectScope): Promise<void> {
  const taken = await takeAll(scope, await sendAll(scope));
  await pause(scope, COMES_BACK_MS);
  const again = new Map((await take(scope, taken)).map((own) => [own.messageId, own]));
  for (const own of again.values()) tellReceived(scope, own);
  // Not broken off: what began with a delete must end with the message being there.
  for (const own of taken) await deleteByOldHandle(scope, own, again.get(own.messageId)?.received);
}

async function deleteByOldHandle(scope: InjectScope, taken: Taken, newest: QueueMessage | undefined): Promise<void> {
  const { message, messageId } = taken;
  const names = { messageId, ...namesOf(message) };
  // Told before: should this process be killed in between, the journal says what it was about to do.
  scope.tell({ action: 'deleting', detail: 'with the handle of the first receive', ...names });
  const refusal = await refusalOf(deleteMessage(scope.client, scope.queue.url, handleOf(taken.received)));
  const isThere = refusal !== undefined || (newest !== undefined && (await isShown(scope, newest)));
  scope.tell({
    action: refusal === undefined ? 'accepted' : 'refused',
    detail: `${refusal ?? 'the delete was taken'}; ${isThere ? 'the message is still there' : 'the message may be gone'}`,
    ...names,
  });
  if (isThere) return;
  const detail = 'sent again, since it may be gone: what is there twice is replayed';
  await sendAndTell(scope, { body: message.body, detail, ...namesOf(message) });
}

async function sendAll(scope: InjectScope): Promise<Own[]> {
  const sent: Own[] = [];
  for (const message of scope.samples(scope.count ?? 1)) {
    if (scope.signal.aborted) break;
    const messageId = await sendAndTell(scope, { body: message.body, detail: 'a valid message', ...namesOf(message) });
    sent.push({ message, messageId });
  }
  return sent;
}

/** @throws {CommandError} when a worker was faster: then nothing was done to those messages. */
async function takeAll(scope: InjectScope, sent: readonly Own[]): Promise<Taken[]> {
  const taken = await take(scope, sent);
  for (const own of taken) tellReceived(scope, own);
  const missed = sent.filter(({ messageId }) => taken.every((own) => own.messageId !== messageId));
  if (missed.length === 0 || scope.signal.aborted) return taken;
  for (const { message, messageId } of missed) {
    scope.tell({ action: 'missed', detail: 'a worker received it first', messageId, ...namesOf(message) });
  }
  const text = `${String(missed.length)} messages were delivered to a worker before they could be received here`;
  throw new CommandError(EXIT.failure, `${text}: stop the workers, or try again`);
}

/**
 * Receives until all of them came, or nothing comes. What others have sent is given back, but SQS counts the receive, and
 * workers wait longer for what was received often: so this goes through the queue once for all messages.
 */
async function take(scope: InjectScope, wanted: readonly Own[]): Promise<Taken[]> {
  const { client, queue, signal } = scope;
  const open = new Map(wanted.map((own) => [own.messageId, own]));
  const taken: Taken[] = [];
  const others: QueueMessage[] = [];
  try {
    for (let receives = 0; receives < MAX_RECEIVES && open.size > 0 && !signal.aborted; receives += 1) {
      const messages = await receiveMessages(client, queue.url, { hideSeconds: HOLD_SECONDS });
      if (messages.length === 0) break;
      others.push(...messages.filter(({ MessageId = '' }) => !open.has(MessageId)));
      const own = messages.flatMap((received) => {
        const sent = open.get(received.MessageId ?? '');
        return sent === undefined ? [] : [{ ...sent, received }];
      });
      taken.push(...own);
      for (const { messageId } of own) open.delete(messageId);
    }
    return taken;
  } finally {
    await hideMessages(client, queue.url, { receiptHandles: others.map(handleOf), seconds: 0 });
  }
}

function tellReceived(scope: InjectScope, { message, messageId, received }: Taken): void {
  scope.tell({
    action: 'received',
    detail: `and not deleted: it comes back after ${String(HOLD_SECONDS)} s`,
    messageId,
    receiveCount: Number(received.Attributes?.ApproximateReceiveCount ?? 1),
    ...namesOf(message),
  });
}

/** Its newest handle can only be used while it exists. */
async function isShown(scope: InjectScope, message: QueueMessage): Promise<boolean> {
  const shown = hideMessage(scope.client, scope.queue.url, { receiptHandle: handleOf(message), seconds: 0 });
  return (await refusalOf(shown)) === undefined;
}

/** The name of a refusal; undefined when the request was taken. Backends name it differently. */
async function refusalOf(request: Promise<void>): Promise<string | undefined> {
  try {
    await request;
    return undefined;
  } catch (error) {
    const fault = classifyFault(error);
    if (isRetryable(fault) || fault === 'denied' || fault === 'notFound') throw error;
    return faultName(error);
  }
}

/** Less when the command is interrupted: what it began is brought to its end all the same. */
async function pause({ clock, signal }: InjectScope, ms: number): Promise<void> {
  await sleep(clock, ms, signal).catch(() => undefined);
}

function handleOf({ ReceiptHandle = '' }: QueueMessage): string {
  return ReceiptHandle;
}
