/** The files of this repository, for the tests that read them. */
import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';

export const REPOSITORY: string = path.resolve(import.meta.dirname, '../..');

export interface TextFile {
  /** Relative to the repository, with / between the parts. */
  readonly name: string;
  readonly text: string;
}

/**
 * All files under a folder of the repository whose names end that way.
 * @throws when there is none: a test that looked at nothing must not pass.
 */
export function readFiles(folder: string, ending: string): TextFile[] {
  const files = readdirSync(path.join(REPOSITORY, folder), { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile() && entry.name.endsWith(ending))
    .map((entry) => path.join(entry.parentPath, entry.name));
  if (files.length === 0) throw new Error(`no file under ${folder} ends in ${ending}`);
  return files.map((file) => ({
    name: path.relative(REPOSITORY, file).split(path.sep).join('/'),
    text: readFileSync(file, 'utf8'),
  }));
}
