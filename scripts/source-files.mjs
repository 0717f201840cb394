import { existsSync, readdirSync } from 'node:fs';
import path from 'node:path';

/** All TypeScript files of src, with / between the parts on every system. */
export function sourceFiles() {
  if (!existsSync('src')) return [];
  return readdirSync('src', { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile() && entry.name.endsWith('.ts'))
    .map((entry) => path.join(entry.parentPath, entry.name).split(path.sep).join('/'))
    .sort();
}
