import { describe, expect, it } from 'vitest';
import { readFiles } from './repository.ts';

/** The longest file that is still read in one go. */
const MAX_LINES = 300;

/** Made from parts, so that a search for them finds only real ones. */
const UNFINISHED = new RegExp(`\\b(?:${['TO' + 'DO', 'FIX' + 'ME'].join('|')})\\b`);

function faultsOf(text: string): string[] {
  const lines = text.replace(/\n$/, '').split('\n');
  const unfinished = lines.flatMap((line, index) =>
    UNFINISHED.test(line) ? [`line ${String(index + 1)} is marked as unfinished`] : [],
  );
  const tooLong = lines.length > MAX_LINES ? [`${String(lines.length)} lines, ${String(MAX_LINES)} are allowed`] : [];
  return [...unfinished, ...tooLong];
}

describe('the files of src/', () => {
  it('are short and finished', () => {
    const faults = readFiles('src', '.ts').flatMap(({ name, text }) =>
      faultsOf(text).map((fault) => `${name}: ${fault}`),
    );

    expect(faults).toEqual([]);
  });
});

describe('the reader of sources', () => {
  it('finds nothing wrong with a file of 300 lines', () => {
    expect(faultsOf('line\n'.repeat(300))).toEqual([]);
  });

  it('finds a file of 301 lines', () => {
    expect(faultsOf('line\n'.repeat(301))).toEqual(['301 lines, 300 are allowed']);
  });

  it.each(['TO' + 'DO', 'FIX' + 'ME'])('finds a line marked %s', (mark) => {
    expect(faultsOf(`one\n// ${mark}: later\n`)).toEqual(['line 2 is marked as unfinished']);
  });

  it('refuses to pass when there is no file to read', () => {
    expect(() => readFiles('src', '.no-such-ending')).toThrow('no file under src');
  });
});
