import path from 'node:path';
import { describe, expect, it } from 'vitest';
import { readFiles } from './repository.ts';

/** The sources by their names from src, so that a test can hand in sources of its own. */
type Sources = ReadonlyMap<string, string>;

const ENTRY = 'index.ts';

/** No chain of re-exports is longer; a cycle is. */
const MAX_STEPS = 10;

const DECLARED = /^export (?:declare )?(?:abstract )?(?:async )?(?:interface|type|const|function\*?|class|enum) (\w+)/;

interface Export {
  /** By this name in `file`. */
  readonly name: string;
  readonly file: string;
  /** The public name. */
  readonly shown: string;
}

/** What is wrong with the comments of what is exported from the entry. */
function faultsOf(sources: Sources): string[] {
  return exportsOf(sources, ENTRY).flatMap((each) => faultOf(sources, each) ?? []);
}

/** All that `file` exports from other files, and of a namespace all that it holds. */
function exportsOf(sources: Sources, file: string): Export[] {
  const text = withoutComments(textOf(sources, file));
  const named = [...text.matchAll(/^export (?:type )?\{([^}]*)\} from '([^']+)';/gm)].flatMap(
    ([, names = '', from = '']) => namesIn(names).map((names) => ({ ...names, file: resolved(file, from) })),
  );
  const spaces = [...text.matchAll(/^export (?:type )?\* (?:as \w+ )?from '([^']+)';/gm)].flatMap(([, from = '']) =>
    everythingIn(sources, resolved(file, from)),
  );
  return [...named, ...spaces];
}

function everythingIn(sources: Sources, file: string): Export[] {
  const declared = textOf(sources, file)
    .split('\n')
    .flatMap((line) => DECLARED.exec(line)?.[1] ?? []);
  return [...declared.map((name) => ({ name, file, shown: name })), ...exportsOf(sources, file)];
}

function namesIn(list: string): { readonly name: string; readonly shown: string }[] {
  return list
    .split(',')
    .map((each) => each.trim().replace(/^type /, ''))
    .filter((each) => each !== '')
    .map((each) => {
      const [name = '', shown = name] = each.split(' as ');
      return { name, shown };
    });
}

function faultOf(sources: Sources, wanted: Export): string | undefined {
  const declaration = declarationOf(sources, wanted);
  if (declaration === undefined) return `${wanted.shown}: no declaration found, starting at ${wanted.file}`;
  return declaration.isDocumented ? undefined : `${wanted.shown}: no comment of its own in ${declaration.file}`;
}

interface Declaration {
  readonly file: string;
  readonly isDocumented: boolean;
}

/** Follows re-exports, and what is imported and exported under the same name. */
function declarationOf(sources: Sources, { name, file }: Export, steps = 0): Declaration | undefined {
  if (steps > MAX_STEPS) return undefined;
  const text = textOf(sources, file);
  const lines = text.split('\n');
  const index = lines.findIndex((line) => DECLARED.exec(line)?.[1] === name);
  if (index >= 0) return { file, isDocumented: hasComment(lines, index) };
  const next = exportsOf(sources, file).find((each) => each.shown === name && each.file !== file);
  return next && declarationOf(sources, next, steps + 1);
}

/** Directly in front, with words in it; the one at the top of the file speaks of the file. */
function hasComment(lines: readonly string[], index: number): boolean {
  if (!(lines[index - 1] ?? '').trimEnd().endsWith('*/')) return false;
  const start = lines.slice(0, index).findLastIndex((line) => line.startsWith('/*'));
  if (start < 1 || !(lines[start] ?? '').startsWith('/**')) return false;
  return /\w/.test(lines.slice(start, index).join('\n'));
}

function withoutComments(text: string): string {
  return text.replace(/\/\*[^]*?\*\//g, '').replace(/^\s*\/\/.*$/gm, '');
}

function resolved(file: string, from: string): string {
  return path.posix.join(path.posix.dirname(file), from);
}

/** @throws when there is none: an export that cannot be followed must not pass. */
function textOf(sources: Sources, file: string): string {
  const text = sources.get(file);
  if (text === undefined) throw new Error(`there is no src/${file}`);
  return text;
}

describe('the exports of src/index.ts', () => {
  const sources: Sources = new Map(readFiles('src', '.ts').map(({ name, text }) => [name.replace(/^src\//, ''), text]));

  it('are all found by the reader', () => {
    const entry = withoutComments(textOf(sources, ENTRY));

    expect(exportsOf(sources, ENTRY).length).toBeGreaterThan(150);
    // Each line that exports is of a form that the reader follows.
    expect(entry.match(/^export (?!(?:type )?\{[^}]*\} from '|\* as \w+ from ')/gm) ?? []).toEqual([]);
  });

  it('have a doc comment each, directly in front of their declaration', () => {
    expect(faultsOf(sources)).toEqual([]);
  });
});

describe('the reader of exports', () => {
  const HEADER = '/** What the file is for. */\n';

  function faultsIn(files: Readonly<Record<string, string>>): string[] {
    return faultsOf(new Map(Object.entries(files)));
  }

  it.each([
    ['an interface', 'export interface Wish {'],
    ['a type', 'export type Wish = string;'],
    ['a const', 'export const Wish: number = 1;'],
    ['a function', 'export function Wish(): void {}'],
    ['a generator', 'export async function* Wish() {}'],
    ['a class', 'export abstract class Wish {}'],
  ])('knows %s with a comment from one without', (_, declaration) => {
    const index = "export { Wish } from './wish.ts';";

    expect(faultsIn({ 'index.ts': index, 'wish.ts': `${HEADER}\n/** Wanted. */\n${declaration}\n` })).toEqual([]);
    expect(faultsIn({ 'index.ts': index, 'wish.ts': `${HEADER}\n${declaration}\n` })).toEqual([
      'Wish: no comment of its own in wish.ts',
    ]);
  });

  it.each([
    ['the header of the file', `${HEADER}export type Wish = string;`],
    ['a comment with a line between', `${HEADER}\n/** Wanted. */\n\nexport type Wish = string;`],
    ['the comment of what stands before', `${HEADER}\n/** Other. */\nexport type Other = 1;\nexport type Wish = 1;`],
    ['a comment that is no doc comment', `${HEADER}\n/* Wanted. */\nexport type Wish = string;`],
    ['a comment without words', `${HEADER}\n/** */\nexport type Wish = string;`],
    ['the comment of a longer name', `${HEADER}\n/** Wanted. */\nexport type Wishes = 1;\nexport type Wish = 1;`],
  ])('does not take %s for its comment', (_, text) => {
    expect(faultsIn({ 'index.ts': "export type { Wish } from './wish.ts';", 'wish.ts': text })).toHaveLength(1);
  });

  it('follows re-exports, renamed ones too, and lists over several lines', () => {
    const files = {
      'index.ts': "export {\n  type Wish,\n  other as Other,\n} from './a/all.ts';",
      'a/all.ts': "export { Wish } from '../wish.ts';\nexport { deep as other } from '../wish.ts';",
      'wish.ts': `${HEADER}\n/** Wanted. */\nexport type Wish = string;\nexport const deep = 1;`,
    };

    expect(faultsIn(files)).toEqual(['Other: no comment of its own in wish.ts']);
  });

  it('looks at all that a namespace holds', () => {
    const files = {
      'index.ts': "export * as wishes from './wish.ts';",
      'wish.ts': `${HEADER}\n/** Wanted. */\nexport type Wish = string;\nexport const bare = 1;`,
    };

    expect(faultsIn(files)).toEqual(['bare: no comment of its own in wish.ts']);
  });

  it('says which export has no declaration, also when re-exports run in a circle', () => {
    const files = {
      'index.ts': "export { Gone } from './a.ts';",
      'a.ts': "export { Gone } from './b.ts';",
      'b.ts': "export { Gone } from './a.ts';",
    };

    expect(faultsIn(files)).toEqual(['Gone: no declaration found, starting at a.ts']);
    expect(() => faultsIn({ 'index.ts': "export { Gone } from './none.ts';" })).toThrow('there is no src/none.ts');
  });
});
