/**
 * The HTTP face of the local payment provider, on 127.0.0.1 only. This file listens, guards the host name and finds
 * the route.
 *
 * Endpoints: POST and GET /v1/charges, GET /health, POST, GET and DELETE /_faults, POST /_faults/release,
 * GET /_faults/held.
 */
import { createServer } from 'node:http';
import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import { systemClock } from '../clock.ts';
import type { Clock } from '../clock.ts';
import { EnvironmentError, messageOf } from '../errors.ts';
import { CHARGES_PATH } from './charge-contract.ts';
import { ChargeJournal } from './charge-journal.ts';
import { listCharges, postCharge, showHealth } from './charge-routes.ts';
import { addFault, clearFaults, listFaults, releaseHeld, watchHeld } from './fault-routes.ts';
import { RequestRefusedError, sendError } from './http-json.ts';
import { KeyMemory } from './key-memory.ts';
import { LocalProvider } from './local-provider.ts';
import { ProviderFaults } from './provider-faults.ts';
import type { ProviderParts, Route } from './provider-route.ts';
import { WaitingAnswers } from './waiting-answers.ts';

/** Options of `startLocalProvider`. */
export interface LocalProviderServerOptions {
  /** Range: 0-65535; 0 takes any free port. @defaultValue 0 */
  readonly port?: number;
  /** The journal; made when it does not exist. Only one provider may use a file at a time. */
  readonly journalFile: string;
  /** @defaultValue systemClock */
  readonly clock?: Clock;
}

/** A provider that is running. */
export interface RunningLocalProvider {
  readonly port: number;
  /** Bytes of a torn last line that were cut off the journal at the start. */
  readonly tornBytes: number;
  /** Cuts all connections, also those whose answers are held, and closes the journal. */
  close(): Promise<void>;
}

const ROUTES: Readonly<Record<string, Readonly<Record<string, Route>>>> = {
  [CHARGES_PATH]: { POST: postCharge, GET: listCharges },
  '/health': { GET: showHealth },
  '/_faults': { POST: addFault, GET: listFaults, DELETE: clearFaults },
  '/_faults/release': { POST: releaseHeld },
  '/_faults/held': { GET: watchHeld },
};

const LOOPBACK_HOST = /^(?:localhost|127(?:\.\d{1,3}){3}|\[::1\])(?::\d{1,5})?$/i;
/** Above what waits (128 answers, 32 watchers), so that a release always finds a connection. */
const MAX_CONNECTIONS = 512;

/**
 * Opens the journal and starts to listen.
 * @throws {EnvironmentError} when the journal cannot be used or the port is taken.
 */
export async function startLocalProvider(options: LocalProviderServerOptions): Promise<RunningLocalProvider> {
  const clock = options.clock ?? systemClock;
  const faults = new ProviderFaults();
  const memory = new KeyMemory(clock);
  const journal = await ChargeJournal.open(options.journalFile, (entry) => {
    memory.remember(entry);
  });
  const provider = new LocalProvider({ clock, faults, memory, log: journal });
  const parts: ProviderParts = { provider, memory, journal, faults, waiting: new WaitingAnswers(clock) };
  try {
    const server = await listen(parts, options.port ?? 0);
    const address = server.address();
    if (address === null || typeof address === 'string') throw new EnvironmentError('the server has no port');
    return { port: address.port, tornBytes: journal.tornBytes, close: () => stop(server, parts) };
  } catch (error) {
    await journal.close();
    throw error;
  }
}

function listen(parts: ProviderParts, port: number): Promise<Server> {
  const server = createServer({ requestTimeout: 30_000, headersTimeout: 10_000 }, (request, response) => {
    void serve(parts, request, response);
  });
  server.maxConnections = MAX_CONNECTIONS;
  return new Promise((resolve, reject) => {
    server.once('error', (error) => {
      reject(new EnvironmentError(`cannot listen on 127.0.0.1:${String(port)}: ${error.message}`, { cause: error }));
    });
    server.listen(port, '127.0.0.1', () => {
      resolve(server);
    });
  });
}

async function stop(server: Server, { journal }: ProviderParts): Promise<void> {
  await new Promise<void>((resolve) => {
    server.close(() => {
      resolve();
    });
    server.closeAllConnections();
  });
  await journal.close();
}

/** Never rejects: whatever goes wrong becomes an answer. */
async function serve(parts: ProviderParts, request: IncomingMessage, response: ServerResponse): Promise<void> {
  const gone = new AbortController();
  response.once('close', () => {
    gone.abort();
  });
  try {
    // Keeps a web page whose name was pointed at 127.0.0.1 from talking to us.
    if (!LOOPBACK_HOST.test(request.headers.host ?? '')) {
      throw new RequestRefusedError(403, 'foreign_host', 'only loopback host names are served');
    }
    const url = URL.parse(request.url ?? '', 'http://localhost');
    if (url === null) throw new RequestRefusedError(400, 'malformed_url', 'the URL is unreadable');
    await routeOf(request.method ?? '', url.pathname)(parts, { request, response, url, gone: gone.signal });
  } catch (error) {
    if (error instanceof RequestRefusedError) {
      sendError(response, error.status, { code: error.answerCode, message: error.message });
    } else {
      sendError(response, 500, { code: 'internal_error', message: messageOf(error) });
    }
  }
}

function routeOf(method: string, pathname: string): Route {
  const methods = ROUTES[pathname];
  if (methods === undefined) throw new RequestRefusedError(404, 'not_found', `nothing at ${pathname.slice(0, 100)}`);
  const route = methods[method];
  if (route !== undefined) return route;
  throw new RequestRefusedError(405, 'method_not_allowed', `allowed here: ${Object.keys(methods).join(', ')}`);
}
