import { describe, expect, it } from 'vitest';
import { readFiles } from '../tooling/repository.ts';
import { blocksOf, readDocuments, type Block } from './markdown.ts';

/** In a project of its own the library goes by its name; here it is a folder away, or two. */
const HERE = /'(?:\.\.\/)+src\/index\.ts'/g;
const INSTALLED = "'onlyonce'";

const examples = readFiles('examples', '.ts');
const shown = readDocuments()
  .flatMap(blocksOf)
  .filter(({ language }) => language === 'ts');

/** Each block says in a comment above it which file it shows: `<!-- examples/worker.ts -->`. */
function fileOf(block: Block): string | undefined {
  return /^<!-- (\S+) -->$/.exec(block.lineAbove)?.[1];
}

describe('TypeScript in the documents', () => {
  it('is that of the example whose name stands above it', () => {
    const textOf = new Map(examples.map(({ name, text }) => [name, text.replaceAll(HERE, INSTALLED)]));

    expect(shown.length).toBeGreaterThan(0);
    for (const block of shown)
      expect([fileOf(block), block.text]).toEqual([fileOf(block), textOf.get(fileOf(block) ?? '')]);
  });

  it('shows every example somewhere', () => {
    const files = new Set(shown.map(fileOf));

    expect(examples.map(({ name }) => name).filter((name) => !files.has(name))).toEqual([]);
  });
});
