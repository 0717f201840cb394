/**
 * Knows the newest receipt handle of each message that is being settled here. SQS takes a delete for granted only with
 * the newest one; when a message comes back while its delete is still repeated, the delete must go on with that.
 *
 * @see AWS: DeleteMessage, "use the most recent receipt handle"
 */

/** A message while it is being settled. */
export interface OpenReceipt {
  /** To be asked anew for each request. */
  newest(): string;
  /** The settlement is over. Harmless when repeated. */
  close(): void;
}

export interface ReceiptHandles {
  /**
   * A settlement begins. Without a message id, or over the limit, its own handle stays the newest.
   * @param isDue tells whether the message may be received again by now: then it is a new delivery, although the answer
   * to the settlement is not here yet. @defaultValue never
   */
  open(receiptHandle: string, messageId?: string, isDue?: () => boolean): OpenReceipt;
  /**
   * To be told of each message as it arrives, before it is started.
   * @returns true when this message is being settled here right now. It must not be started then: its settlement goes on
   * with the new handle, and if that fails the message comes back once more.
   */
  arrived(messageId: string, receiptHandle: string): boolean;
  /** Messages that are being settled. */
  readonly size: number;
}

/** Far more than there are slots: deliveries that are being settled still hold theirs. */
const MAX_OPEN = 10_000;

interface Settling {
  newest: string | undefined;
  isDue: () => boolean;
  open: number;
}

export function createReceiptHandles(limit: number = MAX_OPEN): ReceiptHandles {
  const settling = new Map<string, Settling>();

  return {
    open(receiptHandle, messageId, isDue = () => false) {
      const known = messageId === undefined ? undefined : settling.get(messageId);
      if (messageId === undefined || (known === undefined && settling.size >= limit)) {
        return { newest: () => receiptHandle, close: () => undefined };
      }
      const entry = known ?? { newest: undefined, isDue, open: 0 };
      settling.set(messageId, entry);
      entry.open += 1;
      let isOpen = true;
      return {
        newest: () => entry.newest ?? receiptHandle,
        close() {
          if (!isOpen) return;
          isOpen = false;
          entry.open -= 1;
          if (entry.open === 0) settling.delete(messageId);
        },
      };
    },
    arrived(messageId, receiptHandle) {
      const entry = settling.get(messageId);
      if (entry === undefined || entry.isDue()) return false;
      entry.newest = receiptHandle;
      return true;
    },
    get size() {
      return settling.size;
    },
  };
}
