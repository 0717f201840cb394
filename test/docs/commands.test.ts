import { existsSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { openConnection, type Connection } from '../../src/cli/connection.ts';
import { readDepth, totalOf } from '../../src/queues/depth.ts';
import { until } from '../support/until.ts';
import { REPOSITORY } from '../tooling/repository.ts';
import { Checkout, type Terminal } from './local-backend.ts';
import { blocksOf, readDocuments } from './markdown.ts';

/** Too long to be run here, or the business of an npm script that has tests of its own: the script must exist. */
const RUN_ELSEWHERE = [
  'npm ci && npm run demo',
  'npm ci && npm test',
  'npm run demo',
  'npm run -s demo -- --json',
  'npm run demo -- --protection none',
  'npm run check',
  'npm run build',
  'npm run test:heavy',
];
/** There is no Docker where these tests run: the file that they need must be there. */
const NEEDS_DOCKER = ['docker compose up --wait', 'docker compose down'];
const INSTALLS_BACKENDS = 'npm install --save-dev onlyonce-local-backends';
const RUNS_ONE_FILE = /^npx vitest run (\S+)$/;

/** These go on until they are told to stop: a reader gives each a terminal of its own. */
const UP = 'npm run onlyonce -- up';
const WORK = 'npm run onlyonce -- work charges';

/** Each command of the documents once, in the order in which a reader meets them. */
const commands = [
  ...new Set(
    readDocuments()
      .flatMap(blocksOf)
      .filter(({ language }) => language === 'sh')
      .flatMap(({ text }) => text.split('\n').filter((line) => line !== '')),
  ),
];

function isRunHere(command: string): boolean {
  const elsewhere = [...RUN_ELSEWHERE, ...NEEDS_DOCKER, INSTALLS_BACKENDS, UP, WORK];
  return !elsewhere.includes(command) && !RUNS_ONE_FILE.test(command);
}

interface Manifest {
  readonly name: string;
  readonly scripts: Readonly<Record<string, string>>;
}

function manifestOf(folder: string): Manifest {
  return JSON.parse(readFileSync(path.join(REPOSITORY, folder, 'package.json'), 'utf8')) as Manifest;
}

describe('commands in the documents', () => {
  let checkout: Checkout;
  let connection: Connection;
  let worker: Terminal;

  beforeAll(async () => {
    checkout = new Checkout();
    const variables = await checkout.up();
    const sqs = variables['AWS_ENDPOINT_URL_SQS'] ?? '';
    const dynamodb = variables['AWS_ENDPOINT_URL_DYNAMODB'] ?? '';
    connection = openConnection({ sqs, dynamodb }, { table: 'onlyonce', prefix: '', logLevel: 'error' });
    // A short lease, so that a duplicate of what is being worked on is not kept waiting for long.
    const impatient = { ONLYONCE_LEASE_MS: '1500', ONLYONCE_VISIBILITY_SECONDS: '3', ONLYONCE_WAIT_SECONDS: '1' };
    const isReady = (line: string): boolean => line.endsWith(': ready');
    worker = await checkout.start(['bin/onlyonce.js', 'work', 'charges'], { isReady, variables: impatient });
  });
  afterAll(async () => {
    await connection.close();
    await checkout[Symbol.asyncDispose]();
  });

  async function drained(): Promise<void> {
    const { queue } = await connection.find('charges');
    const isEmpty = async (): Promise<boolean> => totalOf(await readDepth(connection.queues, queue.url)) === 0;
    await until(isEmpty, { withinMs: 60_000 });
  }

  it.each(commands.filter(isRunHere))(
    'can be run as they stand: %s',
    async (command) => {
      const ended = await checkout.run(command);
      if (/ produce /.test(command)) await drained();

      expect(ended).toMatchObject({ code: 0 });
    },
    90_000,
  );

  it('start a worker that ends in order when it is told to', async () => {
    await worker.child.stop();

    expect(commands).toEqual(expect.arrayContaining([UP, WORK]));
    // What these tests started without npm is what npm would have started.
    expect(manifestOf('.').scripts['onlyonce']).toBe('node bin/onlyonce.js');
    expect(await worker.child.exited).toEqual({ code: 0, signal: null });
  });

  it('name npm scripts that exist, files that are there, and the package of the local servers', () => {
    const shown = new Set(commands);
    const scripts = RUN_ELSEWHERE.flatMap((command) => [...command.matchAll(/npm (?:run (?:-s )?)?([\w:]+)/g)])
      .map(([, script = '']) => script)
      .filter((script) => script !== 'ci');
    const files = commands.flatMap((command) => RUNS_ONE_FILE.exec(command)?.[1] ?? []);

    // What no document shows any more must leave the list.
    expect([...RUN_ELSEWHERE, ...NEEDS_DOCKER, INSTALLS_BACKENDS].filter((command) => !shown.has(command))).toEqual([]);
    expect(Object.keys(manifestOf('.').scripts)).toEqual(expect.arrayContaining(scripts));
    expect(files.filter((file) => !existsSync(path.join(REPOSITORY, file)))).toEqual([]);
    expect(existsSync(path.join(REPOSITORY, 'docker-compose.yml'))).toBe(true);
    expect(INSTALLS_BACKENDS).toContain(` ${manifestOf('local-backends').name}`);
  });

  it('are run whole by CI where they are not run here', () => {
    const ci = readFileSync(path.join(REPOSITORY, '.ci/run'), 'utf8');

    for (const leg of [/npm ci/, /test_leg \d+ test$/m, /run check/, /run build/, /test:heavy/, /demo -- --json/]) {
      expect(ci).toMatch(leg);
    }
  });
});
