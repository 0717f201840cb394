/**
 * Starts child processes that cannot be left behind: `stop` ends them in order, and the reaper ends them when this
 * process goes without calling it. Each child has a session of its own, so Ctrl-C on the terminal reaches only this process,
 * which then decides the order in which its children end.
 */
import { spawn, type ChildProcess } from 'node:child_process';
import { EnvironmentError } from '../errors.ts';
import { sleep, systemClock } from '../clock.ts';
import { ensureReaper, watchOver } from './reaper-link.ts';

/** How much of the end of a child's stderr is kept. Unit: UTF-16 code units. */
const STDERR_TAIL_LENGTH = 4_096;
/** A longer line is cut. Unit: UTF-16 code units. */
const MAX_LINE_LENGTH = 65_536;
/** How long after its end a child's pipes may stay open (a grandchild may hold them). Unit: ms. */
const PIPES_GRACE_MS = 250;
const DEFAULT_STOP_GRACE_MS = 5_000;

/** How a child ended: exactly one of the two is set. */
export interface ChildExit {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
}

/** What to start. */
export interface ChildOptions {
  /** What people call it, for error texts. */
  readonly name: string;
  /** A path, or the name of a program on the PATH. No shell is involved. */
  readonly command: string;
  readonly args: readonly string[];
  /** The whole environment of the child. @defaultValue that of this process */
  readonly env?: Readonly<Record<string, string | undefined>>;
  /** @defaultValue the working directory of this process */
  readonly cwd?: string;
  /** `open`: a pipe that ends when this process does. `none`: nothing to read. @defaultValue 'open' */
  readonly stdin?: 'open' | 'none';
  /** Called with each line of stdout, without its line end; lines over 64 Ki characters are cut. */
  readonly onStdoutLine?: (line: string) => void;
  /** Called with each line of stderr, likewise. */
  readonly onStderrLine?: (line: string) => void;
}

/** A running child. */
export interface Child {
  readonly name: string;
  readonly pid: number;
  /** Resolves when it has ended, however it came to that; never rejects. */
  readonly exited: Promise<ChildExit>;
  /** True until the child has ended. */
  isRunning(): boolean;
  /** The last 4 Ki characters it wrote to stderr. */
  stderrTail(): string;
  /** Sends a signal; harmless once the child has ended. */
  signal(signal: NodeJS.Signals): void;
  /**
   * Ends it: SIGTERM, and SIGKILL when it still runs after `graceMs`. Also ends a child that is stopped. Unit: ms.
   * Resolves when it has ended. @defaultValue graceMs 5000
   */
  stop(options?: { graceMs?: number }): Promise<void>;
}

/**
 * Starts a child under the eyes of the reaper.
 * @throws {EnvironmentError} when the command is missing or cannot be executed.
 */
export function startChild(options: ChildOptions): Child {
  ensureReaper();
  const child = spawn(options.command, options.args, {
    stdio: [options.stdin === 'none' ? 'ignore' : 'pipe', 'pipe', 'pipe'],
    env: { ...(options.env ?? process.env) },
    ...(options.cwd === undefined ? {} : { cwd: options.cwd }),
    detached: true,
    windowsHide: true,
  });
  // A failed start is told twice: by the missing pid, now, and by an event that nobody needs any more.
  child.on('error', () => undefined);
  const pid = child.pid;
  if (pid === undefined) {
    throw new EnvironmentError(
      `${options.name}: could not start ${options.command} (missing, or not an executable file)`,
    );
  }
  const forget = watchOver(pid);
  child.once('exit', forget);
  // Writing to a child that has ended is not a fault of ours.
  child.stdin?.on('error', () => undefined);
  const stderrTail = readOutput(child, options);
  const exited = exitOf(child);
  return {
    name: options.name,
    pid,
    exited,
    isRunning: () => child.exitCode === null && child.signalCode === null,
    stderrTail,
    signal: (signal) => void child.kill(signal),
    stop: (stopOptions = {}) => stop(child, exited, stopOptions.graceMs ?? DEFAULT_STOP_GRACE_MS),
  };
}

/** Says how a child ended, for error texts: `code 1`, `signal SIGKILL`. */
export function describeExit(exit: ChildExit): string {
  return exit.signal === null ? `code ${String(exit.code)}` : `signal ${exit.signal}`;
}

async function stop(child: ChildProcess, exited: Promise<ChildExit>, graceMs: number): Promise<void> {
  child.kill('SIGTERM');
  // A stopped process receives SIGTERM only once it runs again.
  child.kill('SIGCONT');
  const graceOver = new AbortController();
  const killLater = sleep(systemClock, graceMs, graceOver.signal).then(
    () => child.kill('SIGKILL'),
    () => false,
  );
  await exited;
  graceOver.abort();
  await killLater;
}

function exitOf(child: ChildProcess): Promise<ChildExit> {
  return new Promise((resolve) => {
    child.once('exit', (code, signal) => {
      const exit = { code, signal };
      // `close` comes when all output was read, so that stderrTail is whole; it does not come while a grandchild holds the pipes.
      const cancel = systemClock.schedule(() => {
        resolve(exit);
      }, PIPES_GRACE_MS);
      child.once('close', () => {
        cancel();
        resolve(exit);
      });
    });
  });
}

function readOutput(child: ChildProcess, options: ChildOptions): () => string {
  const onStdout = splitLines(options.onStdoutLine);
  const onStderr = splitLines(options.onStderrLine);
  let tail = '';
  child.stdout?.setEncoding('utf8').on('data', onStdout);
  child.stderr?.setEncoding('utf8').on('data', (text: string) => {
    tail = (tail + text).slice(-STDERR_TAIL_LENGTH);
    onStderr(text);
  });
  return () => tail.trim();
}

/** Cuts a stream of text into lines. What exceeds the longest line is dropped, so that memory stays bounded. */
function splitLines(onLine: ((line: string) => void) | undefined): (text: string) => void {
  if (onLine === undefined) return () => undefined;
  let rest = '';
  return (text) => {
    const parts = text.split('\n');
    parts.forEach((part, index) => {
      rest = (rest + part).slice(0, MAX_LINE_LENGTH);
      if (index === parts.length - 1) return;
      onLine(rest.endsWith('\r') ? rest.slice(0, -1) : rest);
      rest = '';
    });
  };
}
