import { execFileSync, spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { REPOSITORY } from '../tooling/repository.ts';

interface PackedPackage {
  readonly name: string;
  readonly version: string;
  readonly filename: string;
  readonly files: readonly { readonly path: string }[];
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

beforeAll(() => {
  folder = mkdtempSync(path.join(tmpdir(), 'onlyonce-package-'));
  npm(REPOSITORY, 'run', 'build');
  library = pack();
  backends = pack('local-backends');

  project = path.join(folder, 'project');
  mkdirSync(project);
  writeFileSync(path.join(project, 'package.json'), '{ "name": "project", "private": true }');
  npm(project, 'install', '--no-audit', '--no-fund', path.join(folder, library.filename));
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

describe('the packed local backends', () => {
  it('hold their one module and the documents, and nothing else', () => {
    const files = backends.files.map((file) => file.path);

    expect(files).toEqual(expect.arrayContaining(['index.js', 'package.json']));
    expect(files.filter((file) => !/^(?:index\.js|index\.d\.ts|package\.json|README\.md|LICENSE)$/.test(file))).toEqual(
      [],
    );
  });
});
