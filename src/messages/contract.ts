/** A contract says what one kind of message looks like and which business key names its effect. */
import type { z } from 'zod';

/** One type and version of message. */
export interface MessageContract<Payload> {
  /** Dotted name in the past tense or as a request, for example `charge.requested`. */
  readonly type: string;
  /** Counts up with each change that old readers cannot take. */
  readonly version: number;
  readonly schema: z.ZodType<Payload>;
  /** The business key: what the effect is once per. Never a message id. */
  keyOf(payload: Payload): string;
}

/** A message whose envelope and payload were checked. */
export interface Message<Payload = unknown> {
  readonly type: string;
  readonly version: number;
  readonly key: string;
  readonly payload: Payload;
  /** SHA-256 over type, version and payload in canonical form: tells a duplicate from another message of that key. */
  readonly payloadHash: string;
}
