/**
 * Checks the format of all files with Prettier, which passes as well when its ignore files leave it nothing to look at:
 * every file of src must be among those that it reads.
 */
import { spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { getFileInfo } from 'prettier';
import { sourceFiles } from './source-files.mjs';

const PRETTIER = fileURLToPath(new URL('bin/prettier.cjs', import.meta.resolve('prettier')));

const files = sourceFiles();
const infos = await Promise.all(
  files.map((file) => getFileInfo(file, { ignorePath: ['.gitignore', '.prettierignore'] })),
);
const unread = files.filter((_, index) => infos[index].ignored || infos[index].inferredParser === null);

for (const file of unread) process.stderr.write(`every-file-is-read: ${file} was not read\n`);
if (files.length === 0) process.stderr.write('every-file-is-read: there is no .ts file in src\n');

const check = spawnSync(process.execPath, [PRETTIER, '--check', '.'], { stdio: 'inherit' });
process.exitCode = check.status === 0 && unread.length === 0 && files.length > 0 ? 0 : 1;
