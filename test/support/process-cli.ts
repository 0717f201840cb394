/** The command line as users meet it: a process of its own, with its arguments, environment, output and end. */
import { spawn } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll } from 'vitest';
import type { ChildExit } from '../../src/local/child-process.ts';
import { watchOver, ensureReaper } from '../../src/local/reaper-link.ts';
import { Journal } from './worker-journal.ts';

const ENTRY = fileURLToPath(new URL('../../bin/onlyonce.js', import.meta.url));

/** Many processes load the same sources: compiled once, each start takes half the time. */
const compileCache = mkdtempSync(join(tmpdir(), 'onlyonce-test-'));
afterAll(() => {
  rmSync(compileCache, { recursive: true, force: true });
});

export interface CliOptions {
  /** Added to what every process needs; nothing of the caller's own AWS or onlyonce settings gets through. */
  readonly env?: Readonly<Record<string, string>>;
  /** Written to standard input, which then ends. @defaultValue standard input is no terminal and empty */
  readonly stdin?: string | Buffer;
  /** Standard input stays open and brings no more. */
  readonly keepStdinOpen?: boolean;
}

/** A command that has ended. */
export interface Finished extends ChildExit {
  readonly stdout: string;
  readonly stderr: string;
  /** Each line of stdout as JSON: throws when one is anything else. */
  json<Line = Record<string, unknown>>(): Line[];
}

/** A command that runs. */
export interface Running {
  readonly pid: number;
  /** Lines of stdout so far. */
  readonly stdout: Journal<string>;
  readonly stderr: Journal<string>;
  /** The first line, past or coming, that is a JSON object with these fields. */
  event(fields: Readonly<Record<string, unknown>>): Promise<Record<string, unknown>>;
  signal(name: NodeJS.Signals): void;
  /** No more is read of its stdout: it meets a closed pipe. */
  closeStdout(): void;
  readonly ended: Promise<Finished>;
  /** SIGKILL, and waits for the end. */
  kill(): Promise<Finished>;
}

export function startCli(args: readonly string[], options: CliOptions = {}): Running {
  ensureReaper();
  const child = spawn(process.execPath, [ENTRY, ...args], {
    stdio: 'pipe',
    env: { ...cleanEnvironment(), ...options.env },
  });
  const { pid } = child;
  if (pid === undefined) throw new Error('the command line did not start');
  const forget = watchOver(pid);
  const stdout = new Journal<string>();
  const stderr = new Journal<string>();
  const texts = { stdout: '', stderr: '' };
  for (const [name, journal] of [
    ['stdout', stdout],
    ['stderr', stderr],
  ] as const) {
    let rest = '';
    child[name].setEncoding('utf8').on('data', (text: string) => {
      texts[name] += text;
      const lines = (rest + text).split('\n');
      rest = lines.pop() ?? '';
      for (const line of lines) journal.add(line);
    });
  }
  child.stdin.on('error', () => undefined);
  child.stdin.write(options.stdin ?? '');
  if (options.keepStdinOpen !== true) child.stdin.end();
  const ended = new Promise<Finished>((resolve) => {
    child.once('close', (code, signal) => {
      forget();
      resolve({ code, signal, ...texts, json: () => linesOf(texts.stdout).map(parseLine<never>) });
    });
  });

  return {
    pid,
    stdout,
    stderr,
    async event(fields) {
      const [line = ''] = await stdout.when(1, (text) => isEvent(text, fields));
      return parseLine<Record<string, unknown>>(line);
    },
    signal: (name) => void child.kill(name),
    closeStdout: () => void child.stdout.destroy(),
    ended,
    kill() {
      child.kill('SIGKILL');
      return ended;
    },
  };
}

export function runCli(args: readonly string[], options: CliOptions = {}): Promise<Finished> {
  return startCli(args, options).ended;
}

function linesOf(text: string): string[] {
  return text.split('\n').filter((line) => line !== '');
}

function parseLine<Value>(line: string): Value {
  return JSON.parse(line) as Value;
}

function isEvent(line: string, fields: Readonly<Record<string, unknown>>): boolean {
  if (!line.startsWith('{')) return false;
  const value = parseLine<Record<string, unknown>>(line);
  return Object.entries(fields).every(([name, expected]) => value[name] === expected);
}

function cleanEnvironment(): NodeJS.ProcessEnv {
  const settings = /^(AWS_|ONLYONCE_|NODE_OPTIONS$|NODE_V8_COVERAGE$|VITEST)/;
  const kept = Object.entries(process.env).filter(([name]) => !settings.test(name));
  return {
    ...Object.fromEntries(kept),
    NODE_COMPILE_CACHE: compileCache,
    // No test may wait for a metadata service that is not there.
    AWS_EC2_METADATA_DISABLED: 'true',
  };
}
