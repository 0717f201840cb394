/**
 * A small, clean project in a folder of its own, checked by the real configuration and the real npm scripts. Tests
 * plant faults in it. Our own sources are not used, so that a fault there does not decide about the tests of the tools.
 */
import { spawnSync } from 'node:child_process';
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { REPOSITORY } from './repository.ts';

const CONFIGURATION = [
  '.dependency-cruiser.mjs',
  '.oxlintrc.json',
  '.prettierignore',
  '.prettierrc',
  'bin',
  'knip.jsonc',
  'scripts',
  'tsconfig.json',
  'tsconfig.build.json',
  'vitest.config.ts',
  'vitest.heavy.config.ts',
];

const SOURCES: Readonly<Record<string, string>> = {
  'src/clock.ts': `export const systemClock: { nowMs(): number } = { nowMs: () => Date.now() };
`,
  'src/store/table.ts': `import { DynamoDBClient } from '@aws-sdk/client-dynamodb';
import { systemClock } from '../clock.ts';

export function openTable(): { client: DynamoDBClient; openedAtMs: number } {
  return { client: new DynamoDBClient({}), openedAtMs: systemClock.nowMs() };
}
`,
  'src/producers/producer.ts': `import { SQSClient } from '@aws-sdk/client-sqs';
import { openTable } from '../store/table.ts';

export async function produce(): Promise<number> {
  using stack = new DisposableStack();
  const client = stack.adopt(new SQSClient({}), (open) => {
    open.destroy();
  });
  await client.config.region();
  return openTable().openedAtMs;
}
`,
  'src/workers/worker.ts': `import { openTable } from '../store/table.ts';

export function work(): number {
  return openTable().openedAtMs;
}
`,
  'src/index.ts': `export { produce } from './producers/producer.ts';
export { work } from './workers/worker.ts';
`,
  'src/cli/main.ts': `import { produce, work } from '../index.ts';

console.log(await produce(), work());
`,
  'test/work.test.ts': `import { expect, it } from 'vitest';
import { work } from '../src/index.ts';

it('works', () => {
  expect(work()).toBeGreaterThan(0);
});
`,
};

/** Production dependencies that the sample uses; any other would be reported as unused. */
const USED_DEPENDENCIES = ['@aws-sdk/client-dynamodb', '@aws-sdk/client-sqs'];

/** Development dependencies that only our own tests use. `onlyonce-local-backends` stays: knip.jsonc names it. */
const UNUSED_DEVELOPMENT_DEPENDENCIES = ['arktype', 'fast-check', 'valibot'];

interface Manifest {
  readonly dependencies: Readonly<Record<string, string>>;
  readonly devDependencies: Readonly<Record<string, string>>;
}

export interface CheckRun {
  readonly exitCode: number | null;
  readonly output: string;
}

export class SampleProject {
  readonly folder: string = mkdtempSync(path.join(tmpdir(), 'onlyonce-sample-'));

  constructor() {
    for (const name of CONFIGURATION) cpSync(path.join(REPOSITORY, name), this.#at(name), { recursive: true });
    symlinkSync(path.join(REPOSITORY, 'node_modules'), this.#at('node_modules'), 'dir');
    this.write('package.json', JSON.stringify(sampleManifest(), null, 2));
    this.write('local-backends/package.json', JSON.stringify({ name: 'sample-backends', version: '1.0.0' }));
    this.write('local-backends/index.js', 'process.exitCode = 0;\n');
    for (const entry of plainEntries()) this.write(entry, 'process.exitCode = 0;\n');
    this.write('examples/example.ts', 'process.exitCode = 0;\n');
    this.write('test/support/worker-logger-process.ts', 'process.exitCode = 0;\n');
    this.write('test/support/lock-process.ts', 'process.exitCode = 0;\n');
    for (const [name, text] of Object.entries(SOURCES)) this.write(name, text);
  }

  write(name: string, text: string): void {
    mkdirSync(path.dirname(this.#at(name)), { recursive: true });
    writeFileSync(this.#at(name), text);
  }

  read(name: string): string {
    return readFileSync(this.#at(name), 'utf8');
  }

  append(name: string, text: string): void {
    this.write(name, this.read(name) + text);
  }

  prepend(name: string, text: string): void {
    this.write(name, text + this.read(name));
  }

  remove(name: string): void {
    rmSync(this.#at(name), { recursive: true });
  }

  /** Runs one of our npm scripts in the sample. */
  run(script: string): CheckRun {
    const run = spawnSync('npm', ['run', '--silent', script], {
      cwd: this.folder,
      encoding: 'utf8',
      env: plainEnvironment(),
      timeout: 15_000,
    });
    return { exitCode: run.status, output: run.stdout + run.stderr };
  }

  [Symbol.dispose](): void {
    rmSync(this.folder, { recursive: true, force: true });
  }

  #at(name: string): string {
    return path.join(this.folder, name);
  }
}

/** Tools color their output or put it in another form for CI; the tests read the plain one. */
function plainEnvironment(): NodeJS.ProcessEnv {
  const { CI: _ci, GITHUB_ACTIONS: _actions, FORCE_COLOR: _color, ...environment } = process.env;
  return { ...environment, NO_COLOR: '1' };
}

function sampleManifest(): Manifest {
  const manifest = JSON.parse(readFileSync(path.join(REPOSITORY, 'package.json'), 'utf8')) as Manifest;
  return {
    ...manifest,
    dependencies: pick(manifest.dependencies, (name) => USED_DEPENDENCIES.includes(name)),
    devDependencies: pick(manifest.devDependencies, (name) => !UNUSED_DEVELOPMENT_DEPENDENCIES.includes(name)),
  };
}

/** The sources that knip.jsonc names one by one: a missing one counts as a fault, so the sample has them all. */
function plainEntries(): string[] {
  const knip = readFileSync(path.join(REPOSITORY, 'knip.jsonc'), 'utf8');
  return [...knip.matchAll(/"(src\/[^"*]+\.ts)"/g)].flatMap((match) => match[1] ?? []);
}

function pick<Value>(
  record: Readonly<Record<string, Value>>,
  wanted: (name: string) => boolean,
): Record<string, Value> {
  return Object.fromEntries(Object.entries(record).filter(([name]) => wanted(name)));
}
