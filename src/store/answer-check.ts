/**
 * Refuses answers that DynamoDB never gives: an empty body, another status than 200, JSON that is no object. The SDK
 * reads all of them as an answer without fields, so that a write looks applied and a stored item looks absent.
 */
import type { DynamoDBClient } from '@aws-sdk/client-dynamodb';

/** Its status says to `classifyFault` that the request went out. */
class StrangeAnswerError extends Error {
  override readonly name = 'StrangeAnswer';
  readonly $metadata: { readonly httpStatusCode: number };

  constructor(statusCode: number) {
    super(`an answer with status ${String(statusCode)} that is no JSON object`);
    this.$metadata = { httpStatusCode: statusCode };
  }
}

export function attachAnswerCheck(client: DynamoDBClient): void {
  // The context belongs to one call, whose tries come one after another.
  const statusOf = new WeakMap<object, number>();
  client.middlewareStack.add(
    (next, context) => async (args) => {
      const result = await next(args);
      const { response } = result;
      if (!isSuccess(response)) return result;
      statusOf.set(context, response.statusCode);
      const body = await bytesOf(response.body);
      if (response.statusCode !== 200 || !isObjectText(body)) throw new StrangeAnswerError(response.statusCode);
      response.body = body;
      return result;
    },
    // Next to the wire: the SDK has not read the answer yet.
    { step: 'deserialize', priority: 'low', name: 'onlyonceAnswerCheck' },
  );
  client.middlewareStack.add(
    (next, context) => async (args) => {
      statusOf.delete(context);
      try {
        return await next(args);
      } catch (error) {
        const status = statusOf.get(context);
        // What fails while values are read out of an answer names no status: it would look as if nothing had been sent.
        if (status !== undefined && error instanceof Error && !('$metadata' in error)) {
          Object.assign(error, { $metadata: { httpStatusCode: status } });
        }
        throw error;
      }
    },
    { step: 'deserialize', priority: 'high', name: 'onlyonceAnswerStatus' },
  );
}

interface Success {
  readonly statusCode: number;
  body?: unknown;
}

/** Whatever else comes is an error, and the SDK takes it for one. */
function isSuccess(response: unknown): response is Success {
  if (typeof response !== 'object' || response === null || !('statusCode' in response)) return false;
  return typeof response.statusCode === 'number' && response.statusCode >= 200 && response.statusCode < 300;
}

async function bytesOf(body: unknown): Promise<Uint8Array> {
  if (body instanceof Uint8Array) return body;
  if (typeof body === 'string') return Buffer.from(body);
  if (!isByteStream(body)) return new Uint8Array();
  const chunks: Uint8Array[] = [];
  for await (const chunk of body) chunks.push(chunk);
  return Buffer.concat(chunks);
}

// The HTTP handler of the SDK sets no encoding: its streams hold bytes.
function isByteStream(body: unknown): body is AsyncIterable<Uint8Array> {
  return typeof body === 'object' && body !== null && Symbol.asyncIterator in body;
}

const BRACE = 0x7b;
const WHITESPACE: ReadonlySet<number | undefined> = new Set([0x20, 0x09, 0x0a, 0x0d]);

/** Whether it begins as an object does; whether it ends as one is for the SDK to find out. */
function isObjectText(body: Uint8Array): boolean {
  let start = 0;
  while (WHITESPACE.has(body[start])) start += 1;
  return body[start] === BRACE;
}
