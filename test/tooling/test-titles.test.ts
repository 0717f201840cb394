import { describe, expect, it } from 'vitest';
import { readFiles } from './repository.ts';

/** A call of it or test, or of what their `each` gives, up to the end of its title. */
const TITLE = /\b(?:it|test)(?:\.\w+)*(?:\([^()]*\))?\(\s*(['"`])((?:\\.|(?!\1)[^\\])*)\1/g;

/**
 * Whatever keeps a test from running, or from failing at its first failure. `skipIf` is none: it names the reason, and
 * the count of skipped tests shows it.
 */
const EVASIONS: readonly RegExp[] = [
  /\b(?:it|test|describe|suite)(?:\.\w+)*\.(?:skip|only|todo|fails)\b/g,
  /\b[xf](?:it|test|describe)\(/g,
  /\b(?:context|ctx)\.skip\(/g,
  /\b(?:it|test|describe|suite)(?:\.\w+)*(?:\([^()]*\))?\([^{}]*\{[^{}]*\bretry\s*:/g,
];

/** What is wrong with the text of a test file. */
function faultsOf(text: string): string[] {
  const titles = [...text.matchAll(TITLE)].map((match) => match[2] ?? '');
  const repeated = titles.filter((title, index) => titles.indexOf(title) !== index);
  const evasions = EVASIONS.flatMap((evasion) => text.match(evasion) ?? []);
  return [
    ...repeated.map((title) => `the title "${title}" occurs twice`),
    ...evasions.map((evasion) => `"${evasion.trim()}" keeps a test from running or failing`),
  ];
}

/** Made from parts, since this file is read by its own test as well. */
function sourceOf(call: string, title: string): string {
  return `${call}('${title}', () => {});\n`;
}

describe('the files of test/', () => {
  it('say each title once and leave no test out', () => {
    const faults = readFiles('test', '.ts').flatMap(({ name, text }) =>
      faultsOf(text).map((fault) => `${name}: ${fault}`),
    );

    expect(faults).toEqual([]);
  });
});

describe('the reader of test files', () => {
  it('finds nothing wrong with titles that differ', () => {
    expect(faultsOf(sourceOf('it', 'one') + sourceOf('it', 'two'))).toEqual([]);
  });

  it('finds a title that occurs twice', () => {
    expect(faultsOf(sourceOf('it', 'one') + sourceOf('it', 'one'))).toEqual(['the title "one" occurs twice']);
  });

  it('finds a title that a table of cases repeats', () => {
    expect(faultsOf(sourceOf('it', 'one') + sourceOf('it.each(CASES)', 'one'))).toHaveLength(1);
  });

  it.each([
    ['it', 'skip'],
    ['describe', 'only'],
    ['test', 'todo'],
    ['it.concurrent', 'skip'],
    ['it', 'fails'],
  ])('finds %s with %s', (call, modifier) => {
    expect(faultsOf(sourceOf(`${call}.${modifier}`, 'one'))).toHaveLength(1);
  });

  it.each(['xit', 'fdescribe'])('finds %s', (call) => {
    expect(faultsOf(sourceOf(call, 'one'))).toHaveLength(1);
  });

  it('leaves a test alone that names when it cannot run', () => {
    expect(faultsOf(sourceOf('it.skipIf(onWindows)', 'one'))).toEqual([]);
  });

  it('finds a test that skips itself', () => {
    expect(faultsOf(['context', 'skip();'].join('.'))).toHaveLength(1);
  });

  it('finds a second try', () => {
    const options = `{ ${'retry'}: 2 }`;

    expect(faultsOf(`it('one', ${options}, () => {});`)).toHaveLength(1);
  });

  it('leaves other uses of the word retry alone', () => {
    expect(faultsOf("expect(decide(failure)).toEqual({ kind: 'retry', retry: true });")).toEqual([]);
  });
});
