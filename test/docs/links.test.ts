import { existsSync, statSync } from 'node:fs';
import path from 'node:path';
import { describe, expect, it } from 'vitest';
import { REPOSITORY } from '../tooling/repository.ts';
import { anchorsOf, proseOf, readDocument, readDocuments } from './markdown.ts';

/** Targets of links that stay within the repository. */
function localLinks(text: string): string[] {
  return [...proseOf(text).matchAll(/\]\(([^)\s]+)\)/g)]
    .map(([, target = '']) => target)
    .filter((target) => !/^[a-z]+:/.test(target));
}

function faultOf(document: string, target: string): string | undefined {
  const [file = '', anchor] = target.split('#');
  const name = file === '' ? document : path.posix.join(path.posix.dirname(document), file);
  const full = path.join(REPOSITORY, name);
  if (!existsSync(full)) return `${document}: ${target} leads nowhere`;
  if (anchor === undefined || statSync(full).isDirectory()) return undefined;
  return anchorsOf(readDocument(name)).includes(anchor) ? undefined : `${document}: ${target} has no such heading`;
}

describe('links between the documents', () => {
  it('lead to files and headings that exist', () => {
    const links = readDocuments().flatMap(({ name, text }) => localLinks(text).map((target) => ({ name, target })));

    const faults = links.map(({ name, target }) => faultOf(name, target)).filter((fault) => fault !== undefined);

    expect(links.length).toBeGreaterThan(20);
    expect(faults).toEqual([]);
  });

  it('are found broken when the file or the heading is missing', () => {
    expect(faultOf('README.md', 'docs/nowhere.md')).toContain('leads nowhere');
    expect(faultOf('README.md', 'docs/guarantees.md#no-such-heading')).toContain('no such heading');
  });

  it('reach every document from the README', () => {
    const reached = new Set(['README.md']);
    for (const document of reached) {
      for (const target of localLinks(readDocument(document))) {
        const file = target.split('#')[0] ?? '';
        const name = path.posix.join(path.posix.dirname(document), file);
        if (file.endsWith('.md') && existsSync(path.join(REPOSITORY, name))) reached.add(name);
      }
    }

    const unreached = readDocuments().filter(({ name }) => !reached.has(name));

    expect(unreached.map(({ name }) => name)).toEqual([]);
  });
});
