/**
 * A fault transport for the store: forwards DynamoDB requests to a real backend and, by rule, does to them what networks
 * and servers do: hold, lose, repeat, refuse, or never answer. Tests await what happened; they never wait for time.
 */
import { randomUUID } from 'node:crypto';
import { Agent, createServer, request, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

export type Fault =
  /** Kept back before it is sent on, until `release()`. */
  | { readonly kind: 'hold' }
  /** Sent on and applied; then the connection is cut. */
  | { readonly kind: 'lose the answer' }
  /** Never sent on; the connection is cut. */
  | { readonly kind: 'lose the request' }
  /** The connection is cut at once; the request is sent on late, by `release()`. */
  | { readonly kind: 'deliver late' }
  /** Sent on with another request token, as if the server had forgotten the first one (a restart, ten minutes). */
  | { readonly kind: 'under another token' }
  /** Sent on twice, as a network or proxy may do; the second answer is returned. */
  | { readonly kind: 'send twice' }
  /** Never sent on, never answered; the connection stays open. */
  | { readonly kind: 'never answer' }
  /** Never sent on; refused in the shape of AWS. */
  | { readonly kind: 'refuse'; readonly name: string; readonly status?: number; readonly reasons?: readonly string[] }
  /** Never sent on; answered with success and this body. */
  | { readonly kind: 'say'; readonly body: object };

export interface RuleOptions {
  /** The first matching request that is hit. @defaultValue 1 */
  readonly nth?: number;
  /** How many from there on. @defaultValue 1 */
  readonly times?: number;
  /** Narrows the rule down by the request. */
  readonly when?: (body: RequestBody) => boolean;
}

export type RequestBody = Readonly<Record<string, unknown>>;

export interface Rule {
  /** Resolves when the rule has hit a request: applied where it is to be applied, not yet answered where it is held. */
  readonly hit: Promise<RequestBody>;
  readonly hits: number;
  /** Sends on what is held. @returns when the backend has answered each. */
  release(): Promise<void>;
}

export interface SeenRequest {
  readonly operation: string;
  readonly body: RequestBody;
}

export interface StoreTransport {
  readonly endpoint: string;
  /** Every request that arrived, by arrival. */
  readonly seen: readonly SeenRequest[];
  /** How many requests of this operation arrived since the last `forget()`. */
  count(operation: string): number;
  forget(): void;
  fault(operation: string, fault: Fault, options?: RuleOptions): Rule;
  /** Ends all rules. What is held stays held. */
  heal(): void;
  close(): Promise<void>;
}

interface Answer {
  readonly status: number;
  readonly headers: IncomingMessage['headers'];
  readonly body: Buffer;
}

/** Sends a request on, with another body when one is given. */
type Forward = (payload?: Buffer) => Promise<Answer>;

const LOOPBACK = '127.0.0.1';
const CONTENT_TYPE = 'application/x-amz-json-1.0';

export async function startStoreTransport(backendEndpoint: string): Promise<StoreTransport> {
  const agent = new Agent({ keepAlive: true });
  let rules: ActiveRule[] = [];
  let seen: SeenRequest[] = [];

  const server = createServer((incoming, outgoing) => {
    // A client that gave up is no fault of the transport.
    outgoing.on('error', () => undefined);
    handle(incoming, outgoing).catch(() => incoming.socket.destroy());
  });

  async function handle(incoming: IncomingMessage, outgoing: ServerResponse): Promise<void> {
    const raw = await bodyOf(incoming);
    const operation = String(incoming.headers['x-amz-target']).split('.').at(-1) ?? '';
    const body = JSON.parse(raw.toString()) as RequestBody;
    seen.push({ operation, body });
    const forward: Forward = (payload = raw) => send(agent, backendEndpoint, { incoming, raw: payload });
    const rule = rules.find((candidate) => candidate.takes(operation, body));
    const answer = rule === undefined ? await forward() : await rule.apply(body, forward);
    if (answer === 'cut') incoming.socket.destroy();
    else if (answer !== 'silence') outgoing.writeHead(answer.status, answer.headers).end(answer.body);
  }

  await new Promise<void>((resolve) => server.listen(0, LOOPBACK, resolve));
  const { port } = server.address() as AddressInfo;
  return {
    endpoint: `http://${LOOPBACK}:${String(port)}`,
    get seen() {
      return seen;
    },
    count: (operation) => seen.filter((request_) => request_.operation === operation).length,
    forget() {
      seen = [];
    },
    fault(operation, fault, options = {}) {
      const rule = new ActiveRule(operation, fault, options);
      rules.push(rule);
      return rule;
    },
    heal() {
      rules = [];
    },
    async close() {
      server.closeAllConnections();
      agent.destroy();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

class ActiveRule implements Rule {
  hits = 0;
  readonly #operation: string;
  readonly #fault: Fault;
  readonly #options: RuleOptions;
  readonly #hit = Promise.withResolvers<RequestBody>();
  readonly #held: (() => Promise<unknown>)[] = [];
  #matched = 0;

  constructor(operation: string, fault: Fault, options: RuleOptions) {
    this.#operation = operation;
    this.#fault = fault;
    this.#options = options;
  }

  get hit(): Promise<RequestBody> {
    return this.#hit.promise;
  }

  takes(operation: string, body: RequestBody): boolean {
    const { nth = 1, times = 1, when } = this.#options;
    if (operation !== this.#operation || when?.(body) === false) return false;
    this.#matched += 1;
    return this.#matched >= nth && this.#matched < nth + times;
  }

  async apply(body: RequestBody, forward: Forward): Promise<Answer | 'cut' | 'silence'> {
    this.hits += 1;
    const fault = this.#fault;
    const isApplied = fault.kind === 'lose the answer' || fault.kind === 'send twice';
    if (isApplied) await forward();
    const held = fault.kind === 'hold' || fault.kind === 'deliver late' ? this.#hold(forward) : undefined;
    this.#hit.resolve(body);
    switch (fault.kind) {
      case 'hold':
        return held ?? 'cut';
      case 'send twice':
        return forward();
      case 'under another token':
        return forward(Buffer.from(JSON.stringify({ ...body, ClientRequestToken: randomUUID() })));
      case 'deliver late':
      case 'lose the answer':
      case 'lose the request':
        return 'cut';
      case 'never answer':
        return 'silence';
      case 'refuse':
        return refusal(fault);
      case 'say':
        return answerOf(200, fault.body);
    }
  }

  async release(): Promise<void> {
    await Promise.all(this.#held.splice(0).map((send_) => send_()));
  }

  #hold(forward: Forward): Promise<Answer> {
    const answered = Promise.withResolvers<Answer>();
    this.#held.push(async () => {
      const answer = await forward();
      answered.resolve(answer);
    });
    return answered.promise;
  }
}

function refusal(fault: Extract<Fault, { kind: 'refuse' }>): Answer {
  const body = {
    __type: `com.amazonaws.dynamodb.v20120810#${fault.name}`,
    message: 'refused by the test',
    ...(fault.reasons && { CancellationReasons: fault.reasons.map((code) => ({ Code: code })) }),
  };
  return answerOf(fault.status ?? 400, body);
}

function answerOf(status: number, body: object): Answer {
  return { status, headers: { 'content-type': CONTENT_TYPE }, body: Buffer.from(JSON.stringify(body)) };
}

async function bodyOf(message: IncomingMessage): Promise<Buffer> {
  const chunks: Buffer[] = [];
  for await (const chunk of message) chunks.push(chunk as Buffer);
  return Buffer.concat(chunks);
}

function send(agent: Agent, backend: string, original: { incoming: IncomingMessage; raw: Buffer }): Promise<Answer> {
  const { incoming, raw } = original;
  const headers = { ...incoming.headers, 'content-length': String(raw.length) };
  return new Promise((resolve, reject) => {
    const outgoing = request(backend, { agent, method: incoming.method ?? 'POST', path: incoming.url, headers });
    outgoing.on('error', reject);
    outgoing.on('response', (response) => {
      bodyOf(response).then((body) => {
        resolve({ status: response.statusCode ?? 500, headers: response.headers, body });
      }, reject);
    });
    outgoing.end(raw);
  });
}
