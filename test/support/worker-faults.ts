/** Faults on the way to SQS, put into a real client; and a proxy for faults on the way to DynamoDB. */
import { once } from 'node:events';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { SQSClient, ServiceInputTypes, ServiceOutputTypes } from '@aws-sdk/client-sqs';

/** `send` lets the request through, with another input if one is given. */
export type Interceptor<Input extends ServiceInputTypes, Output extends ServiceOutputTypes> = (
  input: Input,
  send: (input?: Input) => Promise<Output>,
) => Promise<Output>;

/** Puts `interceptor` around every command with this name, before the SDK's own retries. */
export function interceptCommand<Input extends ServiceInputTypes, Output extends ServiceOutputTypes>(
  client: SQSClient,
  commandName: string,
  interceptor: Interceptor<Input, Output>,
): void {
  client.middlewareStack.add(
    (next, context) => async (args) => {
      if (context.commandName !== commandName) return next(args);
      // The name of the command says which types its input and output have.
      const output = await interceptor(args.input as Input, async (input = args.input as Input) => {
        const result = await next({ ...args, input });
        return result.output as Output;
      });
      return { output, response: {} };
    },
    { step: 'initialize' },
  );
}

/** An error as the SDK throws it for an answer of the service. */
export function serviceError(name: string, httpStatusCode: number): Error {
  return Object.assign(new Error(`${name} (by the test)`), { name, $metadata: { httpStatusCode } });
}

/** An error as Node throws it when nobody listens. */
export function refusedConnection(): Error {
  return Object.assign(new Error('connect ECONNREFUSED (by the test)'), { code: 'ECONNREFUSED', syscall: 'connect' });
}

export interface StoreRequest {
  /** For example `UpdateItem`. */
  readonly operation: string;
  readonly body: string;
}

export interface StoreAnswer {
  readonly status: number;
  readonly body: string;
}

/** What becomes of a request; `cut` ends the connection without an answer. */
export type StoreFault = (
  request: StoreRequest,
  forward: (body?: string) => Promise<StoreAnswer>,
) => Promise<StoreAnswer | 'cut'>;

/** An HTTP proxy in front of DynamoDB that does to requests what a test asks for. */
export class StoreProxy {
  readonly #server: Server;
  readonly #target: string;
  fault: StoreFault = (_request, forward) => forward();

  private constructor(target: string) {
    this.#target = target;
    this.#server = createServer((request, response) => {
      void this.#serve(request, response);
    });
  }

  static async start(target: string): Promise<StoreProxy> {
    const proxy = new StoreProxy(target);
    proxy.#server.listen(0, '127.0.0.1');
    await once(proxy.#server, 'listening');
    return proxy;
  }

  get endpoint(): string {
    const { port } = this.#server.address() as AddressInfo;
    return `http://127.0.0.1:${String(port)}`;
  }

  async stop(): Promise<void> {
    this.#server.closeAllConnections();
    this.#server.close();
    await once(this.#server, 'close');
  }

  async #serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const chunks: Buffer[] = [];
    for await (const chunk of request as AsyncIterable<Buffer>) chunks.push(chunk);
    const body = Buffer.concat(chunks).toString();
    const target = String(request.headers['x-amz-target']);
    const forward = (changed = body): Promise<StoreAnswer> => this.#forward(request, changed);
    const operation = target.split('.').at(-1) ?? '';
    const answer = await this.fault({ operation, body }, forward).catch(() => 'cut' as const);
    if (answer === 'cut') {
      response.destroy();
      return;
    }
    response.writeHead(answer.status, { 'content-type': 'application/x-amz-json-1.0' });
    response.end(answer.body);
  }

  async #forward(request: IncomingMessage, body: string): Promise<StoreAnswer> {
    const headers: Record<string, string> = {};
    for (const name of ['content-type', 'x-amz-target', 'x-amz-date', 'authorization']) {
      headers[name] = String(request.headers[name]);
    }
    const answer = await fetch(this.#target, { method: 'POST', headers, body });
    return { status: answer.status, body: await answer.text() };
  }
}

/** An answer with an error, as DynamoDB writes it. */
export function storeError(status: number, name: string): StoreAnswer {
  return {
    status,
    body: JSON.stringify({ __type: `com.amazonaws.dynamodb.v20120810#${name}`, message: 'by the test' }),
  };
}
