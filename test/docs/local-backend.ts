/** One `onlyonce up` for the tests of a file, and processes that work on it as a reader's terminals would. */
import { mkdtempSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { startChild, type Child } from '../../src/local/child-process.ts';
import { until } from '../support/until.ts';
import { REPOSITORY } from '../tooling/repository.ts';

type Variables = Readonly<Record<string, string>>;

export interface Terminal {
  readonly child: Child;
  /** What it has written to stdout and stderr so far. */
  readonly lines: readonly string[];
}

export interface Ended {
  readonly code: number | null;
  readonly output: string;
}

/** A checkout with the files of ours, in which commands may leave files of their own. */
export class Checkout implements AsyncDisposable {
  readonly folder: string = mkdtempSync(path.join(tmpdir(), 'onlyonce-docs-'));
  readonly #terminals: Terminal[] = [];
  #variables: Variables = {};

  constructor() {
    for (const name of ['package.json', 'node_modules', 'bin', 'src', 'data', 'examples', 'local-backends']) {
      symlinkSync(path.join(REPOSITORY, name), path.join(this.folder, name));
    }
  }

  /**
   * Starts what goes on until it is told to stop.
   * @param options.isReady knows the line to wait for. @defaultValue waits for none
   * @param options.variables are set besides those of `up`.
   */
  async start(
    args: readonly string[],
    options: { isReady?: (line: string) => boolean; variables?: Variables } = {},
  ): Promise<Terminal> {
    const { isReady, variables } = options;
    const lines: string[] = [];
    const add = (line: string): void => void lines.push(line);
    const child = startChild({
      name: args.join(' '),
      command: process.execPath,
      args,
      cwd: this.folder,
      env: { ...withoutSettings(), ...this.#variables, ...variables },
      onStdoutLine: add,
      onStderrLine: add,
    });
    const terminal = { child, lines };
    this.#terminals.push(terminal);
    await until(() => {
      if (isReady === undefined) return true;
      if (!child.isRunning()) throw new Error(`${child.name} ended early:\n${lines.join('\n')}`);
      return lines.some(isReady);
    });
    return terminal;
  }

  /** `onlyonce up`; its variables are set in every process that is started afterwards, as if they had been pasted. */
  async up(): Promise<Variables> {
    const { lines } = await this.start(['bin/onlyonce.js', 'up'], { isReady: (line) => line.startsWith('ready') });
    const pairs = lines.flatMap((line) => {
      const [, name, value] = /^export (\w+)=(.*)$/.exec(line) ?? [];
      return name === undefined || value === undefined ? [] : [[name, value] as const];
    });
    this.#variables = Object.fromEntries(pairs);
    return this.#variables;
  }

  /** Runs one line in a shell, to its end. */
  async run(line: string): Promise<Ended> {
    const output: string[] = [];
    const add = (text: string): void => void output.push(text);
    const child = startChild({
      name: line,
      command: 'bash',
      args: ['-o', 'pipefail', '-c', line],
      cwd: this.folder,
      env: { ...withoutSettings(), ...this.#variables },
      stdin: 'none',
      onStdoutLine: add,
      onStderrLine: add,
    });
    const { code } = await child.exited;
    return { code, output: output.join('\n') };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const { child } of this.#terminals.toReversed()) await child.stop();
    rmSync(this.folder, { recursive: true, force: true });
  }
}

/** Nothing of the settings of whoever runs the tests may get through. */
function withoutSettings(): Record<string, string | undefined> {
  const settings = /^(AWS_|ONLYONCE_|NODE_OPTIONS$|VITEST|npm_)/;
  return Object.fromEntries(Object.entries(process.env).filter(([name]) => !settings.test(name)));
}
