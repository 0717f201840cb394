/** The local DynamoDB: finds the `dynoxide` program, starts it on a free port, and waits until it answers. */
import { accessSync, constants, statSync } from 'node:fs';
import { createServer } from 'node:net';
import { delimiter, join, resolve } from 'node:path';
import { EnvironmentError } from '../errors.ts';
import { sleep, systemClock } from '../clock.ts';
import { saysPortTaken, untilReady, type Backend, type StartOptions } from './backend-process.ts';
import { startChild } from './child-process.ts';

const LOOPBACK = '127.0.0.1';
const LOOK_EVERY_MS = 20;
/** A port that was free a moment ago may be taken by the time the program listens. */
const MAX_PORT_TRIES = 5;

/**
 * Where the program is: `DYNOXIDE_BIN`, then the companion package, then the PATH.
 * @param packaged the path the companion package gave, if any.
 * @throws {EnvironmentError} when there is none, or `DYNOXIDE_BIN` names something that cannot be run.
 */
export function findDynoxide(
  packaged: string | undefined,
  env: Readonly<Record<string, string | undefined>> = process.env,
): string {
  const named = env['DYNOXIDE_BIN'];
  if (named !== undefined && named !== '') {
    const fault = whyNotExecutable(named);
    if (fault === undefined) return resolve(named);
    throw new EnvironmentError(
      `DYNOXIDE_BIN is ${named}, which ${fault}. Correct it, or unset it to use the packaged program.`,
    );
  }
  if (packaged !== undefined && whyNotExecutable(packaged) === undefined) return packaged;
  const program = process.platform === 'win32' ? 'dynoxide.exe' : 'dynoxide';
  for (const folder of (env['PATH'] ?? '').split(delimiter)) {
    const candidate = join(folder, program);
    if (folder !== '' && whyNotExecutable(candidate) === undefined) return candidate;
  }
  throw new EnvironmentError(noProgramText());
}

/** Where the program is, and where it keeps its tables. */
export interface DynoxideOptions extends StartOptions {
  readonly binary: string;
  /** An SQLite file, made when absent. @defaultValue the tables live in memory and end with the process */
  readonly dbPath?: string | undefined;
}

/**
 * Starts DynamoDB and waits until it answers.
 * @throws {EnvironmentError} when it cannot be started, or its port is taken.
 */
export async function startDynoxide(options: DynoxideOptions): Promise<Backend> {
  if (options.port !== undefined && options.port !== 0) return startOn(options.port, options);
  for (let attempt = 1; ; attempt += 1) {
    // The program prints `0` when asked for any port, so that the port must be chosen for it.
    const port = await freePort();
    try {
      return await startOn(port, options);
    } catch (error) {
      if (attempt >= MAX_PORT_TRIES || !saysPortTaken(error)) throw error;
    }
  }
}

async function startOn(port: number, options: DynoxideOptions): Promise<Backend> {
  const database = options.dbPath === undefined ? [] : ['--db-path', options.dbPath];
  const child = startChild({
    name: 'DynamoDB',
    command: options.binary,
    args: ['serve', '--host', LOOPBACK, '--port', String(port), ...database],
    stdin: 'none',
  });
  await untilReady(child, options, (signal) => untilHealthy(port, signal));
  return { child, port };
}

async function untilHealthy(port: number, signal: AbortSignal): Promise<void> {
  for (;;) {
    // The pause comes first: it is time for a program that found its port taken to end, before a stranger's answer counts.
    await sleep(systemClock, LOOK_EVERY_MS, signal);
    try {
      const answer = await fetch(`http://${LOOPBACK}:${String(port)}/`, { signal });
      await answer.body?.cancel();
      if (answer.ok && answer.headers.has('x-dynoxide-version')) return;
    } catch {
      // Not listening yet; the signal bounds this loop.
      signal.throwIfAborted();
    }
  }
}

function freePort(): Promise<number> {
  return new Promise((resolvePort, reject) => {
    const probe = createServer();
    probe.once('error', reject);
    probe.listen(0, LOOPBACK, () => {
      const address = probe.address();
      probe.close(() => {
        if (typeof address === 'object' && address !== null) resolvePort(address.port);
        else reject(new EnvironmentError('this machine gave no free port'));
      });
    });
  });
}

function whyNotExecutable(path: string): string | undefined {
  try {
    if (!statSync(path).isFile()) return 'is not a file';
    accessSync(path, constants.X_OK);
    return undefined;
  } catch (error) {
    const missing = error instanceof Error && 'code' in error && (error.code === 'ENOENT' || error.code === 'ENOTDIR');
    return missing ? 'does not exist' : 'is not executable';
  }
}

function noProgramText(): string {
  return [
    `There is no local DynamoDB for ${process.platform}-${process.arch} here: the packaged program is for linux-x64. One of these helps:`,
    '  docker compose up   (docker-compose.yml starts SQS and DynamoDB in containers)',
    '  set AWS_ENDPOINT_URL_DYNAMODB (and AWS_ENDPOINT_URL_SQS) to servers that already run',
    '  set DYNOXIDE_BIN to a dynoxide program for this machine, or put one on the PATH',
  ].join('\n');
}
