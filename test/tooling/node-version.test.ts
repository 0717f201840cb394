import { spawnSync } from 'node:child_process';
import { cpSync, existsSync, mkdirSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { REPOSITORY } from './repository.ts';

interface Launch {
  readonly exitCode: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

/** A package of its own around our bin file, so that each test decides which other files are there. */
let folder: string;

beforeEach(() => {
  folder = mkdtempSync(path.join(tmpdir(), 'onlyonce-bin-'));
  cpSync(path.join(REPOSITORY, 'bin'), path.join(folder, 'bin'), { recursive: true });
  write('package.json', '{ "type": "module" }');
});

afterEach(() => {
  rmSync(folder, { recursive: true, force: true });
});

function write(name: string, text: string): void {
  mkdirSync(path.dirname(path.join(folder, name)), { recursive: true });
  writeFileSync(path.join(folder, name), text);
}

function launch(nodeArguments: readonly string[] = [], node: string = process.execPath): Launch {
  const run = spawnSync(node, [...nodeArguments, path.join(folder, 'bin/onlyonce.js')], { encoding: 'utf8' });
  return { exitCode: run.status, stdout: run.stdout, stderr: run.stderr };
}

/** Node's arguments that make our bin file believe it runs on another version. */
function pretend(version: string): string[] {
  const versions = `{ ...process.versions, node: ${JSON.stringify(version)} }`;
  write('pretend.cjs', `Object.defineProperty(process, 'versions', { value: ${versions} });`);
  return ['--require', path.join(folder, 'pretend.cjs')];
}

/** A Node on the PATH that is too old for us, with its version. Most machines have none. */
function findOldNode(): { node: string; version: string } | undefined {
  const candidates = (process.env['PATH'] ?? '')
    .split(path.delimiter)
    .map((entry) => path.join(entry, 'node'))
    .filter((file) => existsSync(file) && !realpathSync(file).includes('node_modules'));
  return candidates
    .map((node) => ({
      node,
      version: spawnSync(node, ['-p', 'process.versions.node'], { encoding: 'utf8' }).stdout.trim(),
    }))
    .find(({ version }) => /^(?:1[2-9]|2[01])\./.test(version));
}

describe('bin/onlyonce.js', () => {
  it('says on an old Node what it needs, what is running and what to do', () => {
    write('dist/cli/main.js', "console.log('started');");
    // The real thing where there is one: only that shows that old syntax rules can read the file.
    const old = findOldNode();
    const version = old?.version ?? '20.20.2';

    const run = old === undefined ? launch(pretend(version)) : launch([], old.node);

    expect(run).toEqual({
      exitCode: 1,
      stdout: '',
      stderr:
        `onlyonce needs Node 22.12 or newer; this is ${version}.\n` +
        'Run through npm (`npm run onlyonce -- ...`), which uses the pinned Node 24, or install Node 22.12+.\n',
    });
  });

  it.each(['12.22.12', '18.20.8', '20.20.2', '22.11.0'])('refuses to start on Node %s', (version) => {
    write('dist/cli/main.js', "console.log('started');");

    const { exitCode, stdout, stderr } = launch(pretend(version));

    expect(stderr).toContain(`this is ${version}.`);
    expect({ exitCode, stdout }).toEqual({ exitCode: 1, stdout: '' });
  });

  it.each(['22.12.0', '23.0.0', '24.21.0', '100.1.0'])('starts on Node %s', (version) => {
    write('dist/cli/main.js', "console.log('started');");

    expect(launch(pretend(version))).toEqual({ exitCode: 0, stdout: 'started\n', stderr: '' });
  });

  it('starts the sources of a checkout even when there are built files', () => {
    write('src/cli/main.ts', "const from: string = 'sources';\nconsole.log(from);");
    write('dist/cli/main.js', "console.log('built files');");

    expect(launch().stdout).toBe('sources\n');
  });

  it('starts the built files of a checkout on a Node that does not read TypeScript', () => {
    write('src/cli/main.ts', "console.log('sources');");
    write('dist/cli/main.js', "console.log('built files');");

    expect(launch(['--no-strip-types']).stdout).toBe('built files\n');
  });

  it('says so when there are only sources and Node does not read TypeScript', () => {
    write('src/cli/main.ts', "console.log('sources');");

    const { exitCode, stderr } = launch(['--no-strip-types']);

    expect(stderr).toContain('runs from TypeScript here');
    expect(stderr).toContain('npm run build');
    expect(exitCode).toBe(1);
  });

  it('says so when the package has no built files', () => {
    const { exitCode, stderr } = launch();

    expect(stderr).toContain('its built files (dist) are missing');
    expect(exitCode).toBe(1);
  });

  it('shows why the command line could not be loaded', () => {
    write('dist/cli/main.js', "throw new Error('broken on purpose');");

    const { exitCode, stderr } = launch();

    expect(stderr).toContain('broken on purpose');
    expect(exitCode).toBe(1);
  });
});
