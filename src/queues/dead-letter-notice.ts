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
}

const noticeSchema: z.ZodType<DeadLetterNotice> = z.object({
  reason: z.string(),
  detail: z.string(),
  sourceQueue: z.string(),
  messageId: z.string(),
  receiveCount: z.number(),
  deadLetteredAtMs: z.number(),
});

/** Reads a notice; undefined when there is none, or when it is not one of ours. */
export function parseNotice(text: string | undefined): DeadLetterNotice | undefined {
  if (text === undefined) return undefined;
  try {
    return noticeSchema.safeParse(JSON.parse(text)).data;
  } catch {
    return undefined;
  }
}

/** Under this digest the store keeps the notice of a body that left no room for it in the message. */
export function bodyDigest(body: string): string {
  return createHash('sha256').update(body).digest('hex');
}
