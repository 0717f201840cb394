import { execFileSync, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { text } from 'node:stream/consumers';
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import { startLocalBackends, type LocalBackends } from '../../src/local/backends.ts';
import { REPOSITORY } from '../tooling/repository.ts';
import { CONSOLE_TYPES, PROJECT_CONFIG, WRONG_LINES } from '../support/package-worker.ts';

interface PackedPackage {
  readonly name: string;
  readonly version: string;
  readonly filename: string;
  readonly files: readonly { readonly path: string }[];
}

interface Ended {
  readonly stdout: string;
  readonly stderr: string;
  readonly code: number | null;
}

/** What a user of the package gets to read. */
const PUBLISHED = /^(?:bin|dist|data)\/|^(?:README\.md|LICENSE|CHANGELOG\.md|package\.json)$/;

let folder: string;
let project: string;
let library: PackedPackage;
let backends: PackedPackage;

function npm(cwd: string, ...args: string[]): string {
  const run = spawnSync('npm', args, { cwd, encoding: 'utf8' });
  if (run.status !== 0) throw new Error(`npm ${args.join(' ')} failed:\n${run.stdout}${run.stderr}`);
  return run.stdout;
}

function pack(workspace?: string): PackedPackage {
  const scope = workspace === undefined ? [] : ['--workspace', workspace];
  const output = npm(REPOSITORY, 'pack', ...scope, '--json', '--pack-destination', folder);
  // A list in one major version of npm, an object by package name in another.
  const packed = Object.values(JSON.parse(output) as Record<string, PackedPackage>)[0];
  if (packed === undefined) throw new Error(`npm pack answered: ${output}`);
  return packed;
}

/** A project may have another one; the same is there already, and no more is fetched for it. */
function zodVersion(): string {
  const { dependencies } = JSON.parse(readFileSync(path.join(REPOSITORY, 'package.json'), 'utf8')) as {
    dependencies: Record<string, string>;
  };
  return dependencies['zod'] ?? '';
}

beforeAll(() => {
  folder = mkdtempSync(path.join(tmpdir(), 'onlyonce-package-'));
  npm(REPOSITORY, 'run', 'build');
  library = pack();
  backends = pack('local-backends');

  project = path.join(folder, 'project');
  mkdirSync(project);
  writeFileSync(path.join(project, 'package.json'), '{ "name": "project", "private": true }');
  npm(project, 'install', '--no-audit', '--no-fund', path.join(folder, library.filename), `zod@${zodVersion()}`);
});

afterAll(() => {
  rmSync(folder, { recursive: true, force: true });
});

describe('the packed library', () => {
  it('holds the built files and the documents, and nothing else', () => {
    const files = library.files.map((file) => file.path);

    expect(files.filter((file) => !PUBLISHED.test(file))).toEqual([]);
    expect(files).toEqual(
      expect.arrayContaining(['bin/onlyonce.js', 'dist/index.js', 'dist/index.d.ts', 'dist/cli/main.js', 'LICENSE']),
    );
  });

  it('can be imported from an empty project', () => {
    const script = "import('onlyonce').then((library) => console.log(Object.keys(library).length))";

    const exported = execFileSync(process.execPath, ['-e', script], { cwd: project, encoding: 'utf8' });

    expect(Number(exported)).toBeGreaterThan(0);
  });

  it('says its version on the command line', () => {
    expect(npm(project, 'exec', '--no', '--', 'onlyonce', '--version').trim()).toBe(library.version);
  });

  it('brings no emulator with it', () => {
    const lock = JSON.parse(readFileSync(path.join(project, 'package-lock.json'), 'utf8')) as {
      packages: Record<string, unknown>;
    };
    const installed = Object.keys(lock.packages);

    expect(installed).toContain('node_modules/@aws-sdk/client-sqs');
    expect(installed.filter((name) => /fauxqs|dynoxide|onlyonce-local-backends/.test(name))).toEqual([]);
  });
});

describe('a worker in a project of its own', () => {
  const tsc = path.join(REPOSITORY, 'node_modules/typescript/bin/tsc');

  it('is typed by the packed declarations, and acts once on each key of a contract with zod and of one without', async () => {
    // Arrange
    const example = readFileSync(path.join(REPOSITORY, 'examples/own-worker.ts'), 'utf8');
    writeFileSync(path.join(project, 'worker.mts'), example.replace('../src/index.ts', 'onlyonce'));
    writeFileSync(path.join(project, 'wrong.mts'), WRONG_LINES);
    writeFileSync(path.join(project, 'console.d.mts'), CONSOLE_TYPES);
    writeFileSync(path.join(project, 'tsconfig.json'), PROJECT_CONFIG);
    const backends = await startLocalBackends();
    onTestFinished(() => backends.stop());

    // Act
    const compiled = spawnSync(process.execPath, [tsc], { cwd: project, encoding: 'utf8' });
    const run = await runOwnWorker(backends);

    // Assert
    expect([compiled.stdout, compiled.status]).toEqual(['', 0]);
    expect([run.stderr, run.code]).toEqual(['', 0]);
    expect(JSON.parse(run.stdout)).toEqual({
      outcomes: { 'order-1': ['completed', 'replayed', 'replayed'], 'visit-1': ['completed', 'replayed', 'replayed'] },
      booked: 1,
      total: 30,
      visits: 1,
    });
  });

  /** With what a container is given: the environment. */
  async function runOwnWorker({ sqsEndpoint, dynamodbEndpoint }: LocalBackends): Promise<Ended> {
    const child = spawn(process.execPath, ['worker.mjs'], {
      cwd: project,
      timeout: 60_000,
      killSignal: 'SIGKILL',
      env: {
        PATH: process.env['PATH'],
        AWS_ENDPOINT_URL_SQS: sqsEndpoint,
        AWS_ENDPOINT_URL_DYNAMODB: dynamodbEndpoint,
        AWS_REGION: 'us-east-1',
        AWS_ACCESS_KEY_ID: 'local',
        AWS_SECRET_ACCESS_KEY: 'local',
      },
    });
    const [stdout, stderr, [code]] = await Promise.all([
      text(child.stdout),
      text(child.stderr),
      once(child, 'close') as Promise<[number | null]>,
    ]);
    return { stdout, stderr, code };
  }
});

describe('the packed local backends', () => {
  it('hold their one module and the documents, and nothing else', () => {
    const files = backends.files.map((file) => file.path);

    expect(files).toEqual(expect.arrayContaining(['index.js', 'package.json']));
    expect(files.filter((file) => !/^(?:index\.js|index\.d\.ts|package\.json|README\.md|LICENSE)$/.test(file))).toEqual(
      [],
    );
  });
});
