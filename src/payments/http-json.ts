/** Reading and writing of JSON for the provider's HTTP server: bounded bodies, validated values, one error shape. */
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { z } from 'zod';
import { OnlyonceError } from '../errors.ts';
import { MAX_BODY_BYTES, describeIssues } from './charge-contract.ts';
import type { ErrorBody } from './charge-contract.ts';

/** The request gets this status and code, and nothing was done for it. */
export class RequestRefusedError extends OnlyonceError {
  readonly code = 'REQUEST_REFUSED';
  readonly retryable: boolean;
  readonly status: number;
  /** The code in the answer, which is part of the API. */
  readonly answerCode: string;

  constructor(status: number, answerCode: string, message: string) {
    super(message);
    this.status = status;
    this.answerCode = answerCode;
    this.retryable = status >= 500;
  }
}

/** Read on to here before a too large body is refused: a client that is still sending would miss the answer. */
const MAX_DRAINED_BYTES = 1_048_576;

/**
 * Reads a JSON body of at most 64 KiB and checks it.
 * @throws {RequestRefusedError} 415, 413, 400 or 422.
 */
export async function readJson<T>(request: IncomingMessage, schema: z.ZodType<T>): Promise<T> {
  // A page in a browser can send other content types to a foreign server without asking; JSON it cannot.
  if (!/^application\/json(?:\s*;|$)/i.test(request.headers['content-type'] ?? '')) {
    throw new RequestRefusedError(415, 'unsupported_content_type', 'content-type must be application/json');
  }
  const parsed = schema.safeParse(parseJson(await readBody(request)));
  if (parsed.success) return parsed.data;
  throw new RequestRefusedError(422, 'invalid_request', describeIssues(parsed.error));
}

/**
 * A whole number from the query; 0 when it is not there.
 * @throws {RequestRefusedError} 400.
 */
export function readNumber(url: URL, name: string, max: number): number {
  const text = url.searchParams.get(name);
  if (text === null) return 0;
  const value = /^\d+$/.test(text) ? Number(text) : Number.NaN;
  if (value <= max) return value;
  throw new RequestRefusedError(400, 'invalid_query', `${name} must be a whole number from 0 to ${String(max)}`);
}

/**
 * A header that passes its schema; null when it is not there.
 * @throws {RequestRefusedError} 400.
 */
export function readHeader(request: IncomingMessage, name: string, schema: z.ZodType<string>): string | null {
  const value = request.headers[name];
  if (value === undefined) return null;
  const parsed = schema.safeParse(value);
  if (parsed.success) return parsed.data;
  throw new RequestRefusedError(400, 'invalid_header', `${name}: ${describeIssues(parsed.error)}`);
}

/** Answers with a status and a JSON body. Does nothing when the caller is gone. */
export function sendJson(response: ServerResponse, status: number, value: unknown): void {
  if (response.destroyed || response.headersSent) return;
  response.writeHead(status, { 'content-type': 'application/json; charset=utf-8', 'cache-control': 'no-store' });
  response.end(`${JSON.stringify(value)}\n`);
}

/** Answers with the error shape of the contract. */
export function sendError(response: ServerResponse, status: number, error: ErrorBody['error']): void {
  // Closing is safe whatever is still unread of the request's body.
  if (!response.headersSent) response.setHeader('connection', 'close');
  sendJson(response, status, { error });
}

async function readBody(request: IncomingMessage): Promise<Buffer> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  // A body that says it is too large to be drained is refused while there is still a connection to answer on.
  if (Number(request.headers['content-length'] ?? 0) > MAX_DRAINED_BYTES) throw bodyTooLarge();
  // No encoding is set on the request, so it gives Buffers.
  for await (const chunk of request as AsyncIterable<Buffer>) {
    bytes += chunk.byteLength;
    if (bytes <= MAX_BODY_BYTES) chunks.push(chunk);
    if (bytes > MAX_DRAINED_BYTES) break;
  }
  if (bytes <= MAX_BODY_BYTES) return Buffer.concat(chunks);
  throw bodyTooLarge();
}

function bodyTooLarge(): RequestRefusedError {
  return new RequestRefusedError(413, 'body_too_large', `the body is larger than ${String(MAX_BODY_BYTES)} bytes`);
}

function parseJson(body: Buffer): unknown {
  try {
    return JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(body));
  } catch {
    throw new RequestRefusedError(400, 'malformed_json', 'the body is not JSON in UTF-8');
  }
}
