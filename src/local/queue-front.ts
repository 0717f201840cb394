/**
 * An HTTP server on 127.0.0.1 in front of the SQS application, which as shipped listens on every address, hands messages to
 * callers that have gone, and ends all long polls when one message comes.
 *
 * It forwards the SQS JSON protocol and changes one operation, ReceiveMessage. Invariant: a message is handed to a caller
 * that is there, or it goes back to its queue. It must never decide anything about a message beyond that.
 */
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { EnvironmentError, messageOf } from '../errors.ts';
import { sleep, systemClock } from '../clock.ts';
import type { QueueApp } from './companion.ts';
import { isLoopbackHost, readBody, refusal, type FrontAnswer } from './front-protocol.ts';
import { ReceiveOperation } from './receive-operation.ts';

const LOOPBACK = '127.0.0.1';
/** What goes on to the SQS application; the Authorization header holds the region. */
const FORWARDED_HEADERS = ['content-type', 'x-amz-target', 'authorization'] as const;
/** The operations whose answers hold queue URLs. */
const MAKES_QUEUE_URLS: ReadonlySet<string> = new Set(
  ['CreateQueue', 'GetQueueUrl', 'ListQueues'].map((operation) => `AmazonSQS.${operation}`),
);
/** How long requests under way may take to end when the server closes. Unit: ms. */
const CLOSE_GRACE_MS = 1_000;

/** What to serve, and where. */
export interface QueueFrontOptions {
  /** The application behind the front. It belongs to the front from now on and is closed with it. */
  readonly app: QueueApp;
  /** Range: 0-65535, 0 takes any free one. @defaultValue 0 */
  readonly port?: number;
  /** How many long polls may wait at the same time; more are refused with 503. @defaultValue 1000 */
  readonly maxWaitingPolls?: number;
}

/** A running front. */
export interface QueueFront {
  readonly port: number;
  /** How many long polls wait now. */
  waitingPolls(): number;
  /** Answers open polls empty, lets requests under way end, and closes the application. */
  close(): Promise<void>;
}

/**
 * Starts the front.
 * @throws {EnvironmentError} when the port is taken.
 */
export async function startQueueFront(options: QueueFrontOptions): Promise<QueueFront> {
  const front = new Front(options);
  try {
    return await front.listen(options.port ?? 0);
  } catch (cause) {
    await options.app.close();
    throw new EnvironmentError(`SQS cannot listen on port ${String(options.port ?? 0)}: ${messageOf(cause)}`, {
      cause,
    });
  }
}

class Front {
  readonly #app: QueueApp;
  readonly #server: Server;
  readonly #receive: ReceiveOperation;
  #port = 0;

  readonly #send = (response: ServerResponse, answer: FrontAnswer): void => {
    // A closing server waits for its connections, and an idle one that is kept alive would hold it for seconds.
    const closing = this.#server.listening ? {} : { connection: 'close' };
    response.writeHead(answer.statusCode, { ...answer.headers, ...closing, 'content-length': answer.body.length });
    response.end(answer.body);
  };

  constructor(options: QueueFrontOptions) {
    this.#app = options.app;
    this.#receive = new ReceiveOperation({
      call: (headers, body) => this.#call(headers, body),
      maxWaiting: options.maxWaitingPolls ?? 1_000,
    });
    this.#server = createServer((request, response) => void this.#answer(request, response));
  }

  listen(port: number): Promise<QueueFront> {
    return new Promise((resolve, reject) => {
      this.#server.once('error', reject);
      this.#server.listen(port, LOOPBACK, () => {
        const address = this.#server.address();
        if (typeof address === 'object' && address !== null) this.#port = address.port;
        resolve({ port: this.#port, waitingPolls: () => this.#receive.waiting, close: () => this.#close() });
      });
    });
  }

  async #close(): Promise<void> {
    const closed = new Promise<void>((resolve) => {
      this.#server.close(() => {
        resolve();
      });
    });
    this.#receive.close();
    const graceOver = new AbortController();
    const cutLater = sleep(systemClock, CLOSE_GRACE_MS, graceOver.signal).then(
      () => {
        this.#server.closeAllConnections();
      },
      () => undefined,
    );
    await closed;
    graceOver.abort();
    await cutLater;
    await this.#app.close();
  }

  async #answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    // A caller that breaks off is no fault of ours; what it leaves behind is looked after where it matters.
    response.on('error', () => undefined);
    try {
      const refused = refuseAtOnce(request);
      if (refused !== undefined) this.#send(response, refused);
      else if (request.method === 'GET') this.#send(response, await this.#inspect(request.url ?? '/'));
      else await this.#operate(request, response);
    } catch (error) {
      if (!response.headersSent) this.#send(response, refusal(500, 'InternalFailure', messageOf(error)));
    }
  }

  async #operate(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const body = await readBody(request);
    if (!Buffer.isBuffer(body)) {
      this.#send(response, body);
      return;
    }
    const headers = forwardedHeaders(request);
    if (headers['x-amz-target'] === 'AmazonSQS.ReceiveMessage') {
      await this.#receive.run({ headers, body, response, send: this.#send });
    } else {
      this.#send(response, await this.#call(headers, body));
    }
  }

  /** Looks at queues without receiving: the state of the server, and what the application shows of its queues. */
  async #inspect(url: string): Promise<FrontAnswer> {
    const { pathname } = new URL(url, `http://${LOOPBACK}`);
    if (pathname !== '/health' && pathname !== '/_fauxqs/queues' && !pathname.startsWith('/_fauxqs/queues/')) {
      return refusal(404, 'NotFound', `nothing is served at ${pathname}`);
    }
    const answer = await this.#app.inject({ method: 'GET', url: pathname });
    return { statusCode: answer.statusCode, headers: answerHeaders(answer.headers), body: answer.rawPayload };
  }

  async #call(headers: Record<string, string>, payload: Buffer | string): Promise<FrontAnswer> {
    // The application puts this port into queue URLs, whatever name the caller used for the front.
    const host = `${LOOPBACK}:${String(this.#port)}`;
    const answer = await this.#app.inject({ method: 'POST', url: '/', headers: { ...headers, host }, payload });
    const makesUrls = MAKES_QUEUE_URLS.has(headers['x-amz-target'] ?? '');
    const body = makesUrls ? atLoopback(answer.rawPayload) : answer.rawPayload;
    return { statusCode: answer.statusCode, headers: answerHeaders(answer.headers), body };
  }
}

function refuseAtOnce(request: IncomingMessage): FrontAnswer | undefined {
  if (!isLoopbackHost(request.headers.host)) {
    return refusal(403, 'AccessDenied', 'this server answers to loopback names only (127.0.0.1, localhost)');
  }
  if (request.method === 'GET') return undefined;
  if (request.method !== 'POST') return refusal(405, 'InvalidMethod', 'only GET and POST are served');
  // A web page can send this type only after asking, and we never say yes: no page can reach the queues.
  if (request.headers['content-type']?.startsWith('application/x-amz-json-1.0') !== true) {
    return refusal(415, 'InvalidContentType', 'only the SQS JSON protocol (application/x-amz-json-1.0) is served');
  }
  return undefined;
}

function forwardedHeaders(request: IncomingMessage): Record<string, string> {
  const headers: Record<string, string> = {};
  for (const name of FORWARDED_HEADERS) {
    const value = request.headers[name];
    if (typeof value === 'string') headers[name] = value;
  }
  return headers;
}

/**
 * Puts 127.0.0.1 in the place of `sqs.<region>.localhost`, a name that not every machine resolves. The application finds a
 * queue by the last part of its URL, so that both forms name it.
 */
function atLoopback(body: Buffer): Buffer {
  return Buffer.from(body.toString('utf8').replace(/"http:\/\/sqs\.[a-z0-9-]+\.localhost:/g, `"http://${LOOPBACK}:`));
}

function answerHeaders(
  headers: Readonly<Record<string, number | string | string[] | undefined>>,
): Record<string, string> {
  const kept: Record<string, string> = {};
  for (const name of ['content-type', 'x-amzn-query-error', 'x-amz-request-id']) {
    const value = headers[name];
    if (typeof value === 'string') kept[name] = value;
  }
  return kept;
}
