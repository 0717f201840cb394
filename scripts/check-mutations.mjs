/**
 * Removes one protection after the other and demands that the named test fails: a test that still passes without what
 * it tests proves nothing. The work is done in a copy, never in this tree.
 *
 * node scripts/check-mutations.mjs [list] [text]
 *   list   test/mutations/<list>.json: scenarios (the default), hard-times, or workers (a quarter of an hour)
 *   text   only mutations whose id holds it
 */
import { spawnSync } from 'node:child_process';
import { cpSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const REPOSITORY = fileURLToPath(new URL('..', import.meta.url));
const COPIED = [
  'src',
  'test',
  'bin',
  'data',
  'examples',
  'local-backends',
  'package.json',
  'tsconfig.json',
  'vitest.config.ts',
  'vitest.heavy.config.ts',
];
const TEST_LIMIT_MS = 180_000;

const [list = 'scenarios', wanted = ''] = process.argv.slice(2);
const mutations = JSON.parse(readFileSync(join(REPOSITORY, `test/mutations/${list}.json`), 'utf8')).filter(({ id }) =>
  id.includes(wanted),
);
if (mutations.length === 0) {
  console.error(`no mutation has "${wanted}" in its id`);
  process.exit(1);
}

const copy = mkdtempSync(join(tmpdir(), 'onlyonce-mutations-'));
let survived = 0;
try {
  for (const name of COPIED) cpSync(join(REPOSITORY, name), join(copy, name), { recursive: true });
  symlinkSync(join(REPOSITORY, 'node_modules'), join(copy, 'node_modules'));
  for (const mutation of mutations) {
    const fault = tryMutation(mutation);
    console.log(
      `${fault === undefined ? 'caught  ' : 'SURVIVED'}  ${mutation.id}${fault === undefined ? '' : `: ${fault}`}`,
    );
    if (fault !== undefined) survived += 1;
  }
} finally {
  rmSync(copy, { recursive: true, force: true });
}
console.log(`${mutations.length - survived} of ${mutations.length} removed protections were noticed`);
process.exitCode = survived === 0 ? 0 : 1;

/** Says what is wrong, or nothing when the test failed as it must. */
function tryMutation({ file, find, replace, test, title }) {
  const path = join(copy, file);
  const original = readFileSync(path, 'utf8');
  if (original.split(find).length !== 2) return `${file} does not hold the text to replace exactly once`;
  writeFileSync(
    path,
    original.replace(find, () => replace),
  );
  try {
    const run = runTest(test, title);
    if (run.total === 0) return `${test} has no test "${title}"`;
    return run.failed === 0 ? `"${title}" passes without it` : undefined;
  } finally {
    writeFileSync(path, original);
  }
}

function runTest(test, title) {
  const report = join(copy, 'report.json');
  rmSync(report, { force: true });
  const config = test.includes('/heavy/') ? 'vitest.heavy.config.ts' : 'vitest.config.ts';
  const pattern = `${title.replace(/[.*+?^${}()|[\]\\]/g, '\\$&')}$`;
  const args = [
    'vitest',
    'run',
    '--config',
    config,
    test,
    '-t',
    pattern,
    '--reporter=json',
    `--outputFile.json=${report}`,
  ];
  const run = spawnSync('npx', ['--no-install', ...args], { cwd: copy, stdio: 'ignore', timeout: TEST_LIMIT_MS });
  // A test that hangs without its protection has failed too; vitest itself cuts off a test long before this limit.
  if (run.error?.code === 'ETIMEDOUT') return { total: 1, failed: 1 };
  const { numPassedTests, numFailedTests } = JSON.parse(readFileSync(report, 'utf8'));
  return { total: numPassedTests + numFailedTests, failed: numFailedTests };
}
