/** What the front knows of HTTP and of the SQS JSON protocol: whom it answers, what it reads, how it refuses. */
import { isUtf8 } from 'node:buffer';
import type { IncomingMessage } from 'node:http';

/** One answer of the front, complete. */
export interface FrontAnswer {
  readonly statusCode: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Buffer;
}

/**
 * SQS takes 1 MiB of messages in one request, of which JSON may make two (each quote or line end becomes two characters);
 * the rest is for names and handles around them. Unit: bytes.
 */
const MAX_BODY_BYTES = 2 * 1_048_576 + 65_536;

/** A body over the limit is still read to its end, so that its sender sees the answer, but not over this. Unit: bytes. */
const MAX_DISCARDED_BYTES = 16 * 1_048_576;

/**
 * True when the Host header names this machine. Any other name came through DNS: a web page may have had its own name
 * resolved to 127.0.0.1 to get past the browser's same-origin rule.
 */
export function isLoopbackHost(host: string | undefined): boolean {
  if (host === undefined) return false;
  const name = host.replace(/:\d+$/, '').toLowerCase();
  return name === 'localhost' || name.endsWith('.localhost') || name === '[::1]' || /^127(\.\d{1,3}){3}$/.test(name);
}

/** An error as SQS shapes it. `code` becomes the `name` of the error in the SDK. */
export function refusal(statusCode: number, code: string, message: string): FrontAnswer {
  return {
    statusCode,
    headers: {
      'content-type': 'application/x-amz-json-1.0',
      'x-amzn-query-error': `${code};${statusCode < 500 ? 'Sender' : 'Receiver'}`,
    },
    body: Buffer.from(JSON.stringify({ __type: `com.amazonaws.sqs#${code}`, message })),
  };
}

/** Reads a body, or says why it is refused: too long, or not UTF-8. */
export async function readBody(request: IncomingMessage): Promise<Buffer | FrontAnswer> {
  const chunks: Buffer[] = [];
  let length = 0;
  for await (const chunk of request as AsyncIterable<Buffer>) {
    length += chunk.length;
    if (length <= MAX_BODY_BYTES) chunks.push(chunk);
    else chunks.length = 0;
    if (length > MAX_DISCARDED_BYTES) break;
  }
  if (length > MAX_BODY_BYTES) {
    return refusal(413, 'RequestTooLong', `a request may hold ${String(MAX_BODY_BYTES)} bytes`);
  }
  const body = Buffer.concat(chunks, length);
  // The application would put U+FFFD in the place of broken bytes and keep another message than was sent.
  return isUtf8(body) ? body : refusal(400, 'InvalidMessageContents', 'the request holds bytes that are not UTF-8');
}
