/** What a dead-lettered copy says about itself, in one message attribute beside the original body. */
import { createHash } from 'node:crypto';
import { z } from 'zod';

/** One attribute, so that the (at most ten) attributes of the original fit beside it. */
export const NOTICE_ATTRIBUTE = 'onlyonce.deadLetter';

export interface DeadLetterNotice {
  readonly reason: string;
  /** For people: hashes, the last error, what the schema said. Never the payload. */
  readonly detail: string;
  readonly sourceQueue: string;
  /** Of the message that was dead-lettered; the copy has an id of its own. */
  readonly messageId: string;
  readonly receiveCount: number;
  readonly deadLetteredAtMs: number;
  /** Our own count, in the effect record. */
  readonly attempts?: number | undefined;
  readonly payloadHash?: string | undefined;
  /** Of the payload that was there first, for a conflict. */
  readonly recordedHash?: string | undefined;
  readonly sentAtMs?: number | undefined;
  readonly firstReceivedAtMs?: number | undefined;
  /** The name of the worker that gave the message up. */
  readonly worker?: string | undefined;
  /** W3C or X-Ray, as the original carried it. */
  readonly traceId?: string | undefined;
}

/** A field that came later: older notices lack it, and one that cannot be read must not hide the rest. */
const text = z.string().optional().catch(undefined);
const number = z.number().optional().catch(undefined);

const noticeSchema: z.ZodType<DeadLetterNotice> = z.object({
  reason: z.string(),
  detail: z.string(),
  sourceQueue: z.string(),
  messageId: z.string(),
  receiveCount: z.number(),
  deadLetteredAtMs: z.number(),
  attempts: number,
  payloadHash: text,
  recordedHash: text,
  sentAtMs: number,
  firstReceivedAtMs: number,
  worker: text,
  traceId: text,
});

/** Reads a notice; undefined when there is none, or when it is not one of ours. */
export function parseNotice(json: string | undefined): DeadLetterNotice | undefined {
  if (json === undefined) return undefined;
  try {
    return noticeSchema.safeParse(JSON.parse(json)).data;
  } catch {
    return undefined;
  }
}

/** Under this digest the store keeps the notice of a body that left no room for it in the message. */
export function bodyDigest(body: string): string {
  return createHash('sha256').update(body).digest('hex');
}

/**
 * The same for all copies of one message, and for nothing else. There is more than one copy when the answer to the send
 * was lost and it was repeated, or when the message came back before it was deleted.
 * @param notice from the copy itself: one that is kept in the table belongs to every message with that body.
 * @returns undefined when it cannot be told.
 */
export function originalOf(notice: DeadLetterNotice | undefined, body: string): string | undefined {
  if (notice === undefined || notice.messageId === '') return undefined;
  return `${notice.sourceQueue} ${notice.messageId} ${bodyDigest(body)}`;
}
