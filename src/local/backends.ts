/**
 * Starts the local SQS and DynamoDB as child processes, both or none.
 *
 * No signal handlers are installed here: the caller calls `stop()`, and the reaper ends the servers when this process goes
 * without doing so.
 */
import { ConfigurationError, EnvironmentError, type OptionFault } from '../errors.ts';
import { untilReady, type Backend, type StartOptions } from './backend-process.ts';
import { startChild } from './child-process.ts';
import { loadCompanion, type CompanionResolver } from './companion.ts';
import { findDynoxide, startDynoxide } from './dynoxide.ts';
import { siblingEntry } from './reaper-link.ts';

const DEFAULT_DEADLINE_MS = 10_000;

/** Where and for how long. */
export interface LocalBackendsOptions {
  /** The SQLite file that keeps the tables; its folder must exist. @defaultValue tables live in memory */
  readonly dbPath?: string;
  /** Range: 0-65535. @defaultValue 0, any free port */
  readonly sqsPort?: number;
  /** Range: 0-65535. @defaultValue 0, any free port */
  readonly dynamodbPort?: number;
  /** How long the servers may take to answer. Unit: ms. @defaultValue 10000 */
  readonly deadlineMs?: number;
  /** Gives up the start. Once the servers run it has no effect. */
  readonly signal?: AbortSignal;
  /** How to find the companion package. @defaultValue from onlyonce, then from the working directory */
  readonly resolveCompanion?: CompanionResolver;
}

/** How a server that was to go on running came to its end. */
export interface BackendExit {
  readonly name: 'SQS' | 'DynamoDB';
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
  /** The last it wrote to stderr. */
  readonly stderrTail: string;
}

/** Two running servers. */
export interface LocalBackends {
  readonly sqsEndpoint: string;
  readonly dynamodbEndpoint: string;
  /** Ends both and resolves when they have ended. May be called again. */
  stop(): Promise<void>;
  /** Resolves with the first server that ended by itself, or with undefined after `stop()`. Never rejects. */
  readonly exited: Promise<BackendExit | undefined>;
}

/**
 * Starts both servers and waits until both answer. When one fails, the other has ended too by the time this throws.
 * @throws {ConfigurationError} when a port is out of range.
 * @throws {EnvironmentError} when a part is missing or a server does not start; the text says which, why, and what to do.
 * @throws the reason of `signal` when that aborts first.
 */
export async function startLocalBackends(options: LocalBackendsOptions = {}): Promise<LocalBackends> {
  checkPorts(options);
  options.signal?.throwIfAborted();
  const companion = await loadCompanion(options.resolveCompanion);
  const binary = findDynoxide(companion.dynoxideBinary());
  const failed = new AbortController();
  const signal = options.signal === undefined ? failed.signal : AbortSignal.any([options.signal, failed.signal]);
  const shared = { deadlineMs: options.deadlineMs ?? DEFAULT_DEADLINE_MS, signal };
  const starts = [
    startQueues({ ...shared, port: options.sqsPort }),
    startDynoxide({ ...shared, port: options.dynamodbPort, binary, dbPath: options.dbPath }),
  ] as const;
  try {
    const [sqs, dynamodb] = await Promise.all(starts);
    return running(sqs, dynamodb);
  } catch (error) {
    // Cuts off the one that is still starting; one that already runs is stopped here.
    failed.abort(error);
    const settled = await Promise.allSettled(starts);
    for (const start of settled) if (start.status === 'fulfilled') await start.value.child.stop();
    throw error;
  }
}

async function startQueues(options: StartOptions): Promise<Backend> {
  const announced = Promise.withResolvers<number>();
  const child = startChild({
    name: 'SQS',
    command: process.execPath,
    args: [
      // The application opens node:sqlite, which warns on some versions; its stderr is for what went wrong.
      '--disable-warning=ExperimentalWarning',
      siblingEntry('queue-server', import.meta.url),
      '--port',
      String(options.port ?? 0),
    ],
    onStdoutLine: (line) => {
      const port = announcedPort(line);
      if (port !== undefined) announced.resolve(port);
    },
  });
  const port = await untilReady(child, options, async (signal) => {
    signal.addEventListener('abort', () => {
      announced.reject(signal.reason);
    });
    const announcedOn = await announced.promise;
    const health = await fetch(`http://127.0.0.1:${String(announcedOn)}/health`, { signal });
    if (!health.ok) throw new EnvironmentError(`the local SQS says it is not well (HTTP ${String(health.status)})`);
    return announcedOn;
  });
  return { child, port };
}

function running(sqs: Backend, dynamodb: Backend): LocalBackends {
  let stopping = false;
  const endOf = async (name: BackendExit['name'], { child }: Backend): Promise<BackendExit | undefined> => {
    const exit = await child.exited;
    return stopping ? undefined : { name, ...exit, stderrTail: child.stderrTail() };
  };
  return {
    sqsEndpoint: `http://127.0.0.1:${String(sqs.port)}`,
    dynamodbEndpoint: `http://127.0.0.1:${String(dynamodb.port)}`,
    exited: Promise.race([endOf('SQS', sqs), endOf('DynamoDB', dynamodb)]),
    stop: async () => {
      stopping = true;
      await Promise.all([sqs.child.stop(), dynamodb.child.stop()]);
    },
  };
}

function announcedPort(line: string): number | undefined {
  try {
    const value: unknown = JSON.parse(line);
    if (typeof value !== 'object' || value === null || !('port' in value)) return undefined;
    return typeof value.port === 'number' ? value.port : undefined;
  } catch {
    return undefined;
  }
}

function checkPorts(options: LocalBackendsOptions): void {
  const faults: OptionFault[] = [];
  for (const name of ['sqsPort', 'dynamodbPort'] as const) {
    const value = options[name];
    if (value === undefined || (Number.isInteger(value) && value >= 0 && value <= 65_535)) continue;
    faults.push({ name, rule: 'a whole number from 0 to 65535', value });
  }
  if (faults.length > 0) throw new ConfigurationError('local backends', faults);
}
