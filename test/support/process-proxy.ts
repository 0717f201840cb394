/**
 * Stands between one worker process and its three backends, names every request that belongs to its charge, and can
 * strike at one of them: kill the worker before the request is sent on, or after it was answered and before the worker
 * learns of it. What is held back is never answered.
 */
import {
  createServer,
  request as sendRequest,
  type IncomingMessage,
  type Server,
  type ServerResponse,
} from 'node:http';

export interface Endpoints {
  readonly sqs: string;
  readonly dynamodb: string;
  readonly provider: string;
}

export type Phase = 'before' | 'after';

/** Where to strike: the first request of that name. */
export interface Strike {
  readonly point: string;
  readonly phase: Phase;
  /** Ends the worker. The request goes no further and is not answered. */
  kill(): void;
}

export interface Proxies extends AsyncDisposable {
  readonly endpoints: Endpoints;
  /** The names of the charge's requests in the order in which they were answered, or struck. */
  readonly trail: readonly string[];
  /** Resolves once a request of that name was answered to the worker. */
  answered(point: string): Promise<void>;
}

/** A request is a point of the charge when it moves it on. Receives that bring nothing and heartbeats are none. */
const RECEIVE = 'receive';

/**
 * @remarks A receive counts once it brings a message, except where the strike is before it: then the first one is
 * struck, so the charge must be on the queue already.
 */
export async function startProxies(targets: Endpoints, strike?: Strike): Promise<Proxies> {
  const observer = new TrailObserver(strike);
  const servers: Server[] = [];
  const open = async (target: string): Promise<string> => {
    const server = createServer((request, response) => void forward({ request, response, target, observer }));
    servers.push(server);
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const address = server.address();
    if (typeof address !== 'object' || address === null) throw new Error('the proxy has no port');
    return `http://127.0.0.1:${String(address.port)}`;
  };
  return {
    endpoints: {
      sqs: await open(targets.sqs),
      dynamodb: await open(targets.dynamodb),
      provider: await open(targets.provider),
    },
    trail: observer.trail,
    answered: (point) => observer.answered(point),
    async [Symbol.asyncDispose]() {
      const closed = servers.map(
        (server) =>
          new Promise<void>((resolve) =>
            server.close(() => {
              resolve();
            }),
          ),
      );
      for (const server of servers) server.closeAllConnections();
      await Promise.all(closed);
    },
  };
}

interface Answer {
  readonly status: number;
  readonly headers: IncomingMessage['headers'];
  readonly body: Buffer;
}

interface Exchange {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  readonly target: string;
  readonly observer: TrailObserver;
}

async function forward({ request, response, target, observer }: Exchange): Promise<void> {
  response.on('error', () => undefined);
  const gone = new AbortController();
  response.once('close', () => {
    gone.abort();
  });
  try {
    const body = await readAll(request);
    const name = pointOf(request, body);
    if (name !== undefined && observer.strikesBefore(name)) return;
    const answer = await call(target, request, { body, signal: gone.signal });
    if (name !== undefined && observer.strikesAfter(name, answer)) return;
    response.writeHead(answer.status, { ...withoutHopHeaders(answer.headers), 'content-length': answer.body.length });
    response.end(answer.body, () => {
      if (name !== undefined) observer.tellAnswered(name);
    });
  } catch {
    // The worker has gone, or the backend has: either way there is nobody to answer properly.
    response.destroy();
  }
}

class TrailObserver {
  readonly trail: string[] = [];
  readonly #strike: Strike | undefined;
  readonly #answered = new Map<string, PromiseWithResolvers<void>>();
  #hasStruck = false;

  constructor(strike: Strike | undefined) {
    this.#strike = strike;
  }

  strikesBefore(name: string): boolean {
    return this.#hits(name, 'before');
  }

  strikesAfter(name: string, answer: Answer): boolean {
    if (name === RECEIVE && !answer.body.includes('"ReceiptHandle"')) return this.#hasStruck;
    if (this.#hits(name, 'after')) return true;
    this.trail.push(name);
    return false;
  }

  tellAnswered(name: string): void {
    this.#waiterFor(name).resolve();
  }

  answered(name: string): Promise<void> {
    return this.#waiterFor(name).promise;
  }

  #hits(name: string, phase: Phase): boolean {
    // Once the worker is dead, nothing that it still had under way goes any further.
    if (this.#hasStruck || this.#strike === undefined) return this.#hasStruck;
    if (this.#strike.point !== name || this.#strike.phase !== phase) return false;
    this.#hasStruck = true;
    this.trail.push(name);
    this.#strike.kill();
    return true;
  }

  #waiterFor(name: string): PromiseWithResolvers<void> {
    const waiter = this.#answered.get(name) ?? Promise.withResolvers<void>();
    this.#answered.set(name, waiter);
    return waiter;
  }
}

/** What a request does for the charge; undefined when it does nothing for it. */
function pointOf(request: IncomingMessage, body: Buffer): string | undefined {
  if (request.url === '/v1/charges' && request.method === 'POST') return 'charge at the provider';
  const operation =
    String(request.headers['x-amz-target'] ?? '')
      .split('.')
      .at(-1) ?? '';
  switch (operation) {
    case 'ReceiveMessage':
      return RECEIVE;
    case 'TransactWriteItems':
      return 'commit';
    case 'DeleteMessageBatch':
    case 'DeleteMessage':
      return 'delete';
    case 'GetItem':
      return body.includes('"CHARGE#') ? 'read the ledger entry' : 'read the account';
    case 'UpdateItem':
      return pointOfUpdate(body.toString('utf8'));
    default:
      return undefined;
  }
}

function pointOfUpdate(body: string): string | undefined {
  if (body.includes('"ACCOUNT#')) return 'open the account';
  // A grant names whom it displaced; a renewal only moves the expiry.
  if (body.includes('"takenFrom"')) return 'claim';
  return body.includes('"steps') ? 'store the step' : undefined;
}

async function call(
  target: string,
  request: IncomingMessage,
  { body, signal }: { body: Buffer; signal: AbortSignal },
): Promise<Answer> {
  const { host, hostname, port } = new URL(target);
  const headers = { ...withoutHopHeaders(request.headers), host, 'content-length': body.length };
  const incoming = await new Promise<IncomingMessage>((resolve, reject) => {
    const sent = sendRequest({ hostname, port, method: request.method, path: request.url, headers, signal }, resolve);
    sent.on('error', reject);
    sent.end(body);
  });
  return { status: incoming.statusCode ?? 502, headers: incoming.headers, body: await readAll(incoming) };
}

/** These are about one connection, and there are two here. */
function withoutHopHeaders(headers: IncomingMessage['headers']): IncomingMessage['headers'] {
  const { connection: _connection, 'keep-alive': _keepAlive, 'transfer-encoding': _encoding, ...rest } = headers;
  return rest;
}

async function readAll(stream: IncomingMessage): Promise<Buffer> {
  const chunks: Buffer[] = [];
  for await (const chunk of stream) chunks.push(chunk as Buffer);
  return Buffer.concat(chunks);
}
