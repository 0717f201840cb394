/** The documents of this repository, taken apart for the tests that hold them to what the code does. */
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { readFiles, REPOSITORY, type TextFile } from '../tooling/repository.ts';

export interface Block {
  readonly document: string;
  readonly language: string;
  readonly text: string;
  /** The line above the block, where a comment may name the file it shows. */
  readonly lineAbove: string;
}

export interface Table {
  readonly header: readonly string[];
  readonly rows: readonly (readonly string[])[];
}

/** README first: its commands are what a newcomer runs first. */
export function readDocuments(): TextFile[] {
  const top = ['README.md', 'CONTRIBUTING.md', 'CHANGELOG.md', 'localstack/README.md'].map((name) => ({
    name,
    text: readDocument(name),
  }));
  return [...top, ...readFiles('docs', '.md')];
}

export function readDocument(name: string): string {
  return readFileSync(path.join(REPOSITORY, name), 'utf8');
}

export function blocksOf({ name, text }: TextFile): Block[] {
  const lines = text.split('\n');
  const blocks: Block[] = [];
  for (let at = 0; at < lines.length; at += 1) {
    const language = /^```(\w+)$/.exec(lines[at] ?? '')?.[1];
    if (language === undefined) continue;
    const end = lines.indexOf('```', at + 1);
    if (end === -1) throw new Error(`${name}: the block at line ${String(at + 1)} has no end`);
    const above = lines.slice(0, at).findLast((line) => line !== '') ?? '';
    blocks.push({ document: name, language, text: `${lines.slice(at + 1, end).join('\n')}\n`, lineAbove: above });
    at = end;
  }
  return blocks;
}

/** The text without its blocks: what looks like a link or a heading in code is none. */
export function proseOf(text: string): string {
  return text.replaceAll(/^```[^]*?^```$/gm, '');
}

/** What GitHub makes of a heading: the part of a link behind the #. */
export function anchorsOf(text: string): string[] {
  return [...proseOf(text).matchAll(/^#+ (.+)$/gm)].map(([, heading = '']) =>
    heading
      .toLowerCase()
      .replaceAll(/[^\p{L}\p{N}\s_-]/gu, '')
      .trim()
      .replaceAll(/\s/g, '-'),
  );
}

/** From a heading to the next one of its level or above. */
export function sectionOf(text: string, heading: string): string {
  const lines = text.split('\n');
  const start = lines.indexOf(heading);
  if (start === -1) throw new Error(`there is no section "${heading}"`);
  const level = heading.indexOf(' ');
  const rest = lines.slice(start + 1);
  const end = rest.findIndex((line) => /^#+ /.test(line) && line.indexOf(' ') <= level);
  return rest.slice(0, end === -1 ? undefined : end).join('\n');
}

/** The first table in a text. Cells are trimmed; a bar inside a cell is written as `\|`. */
export function tableIn(text: string): Table {
  const lines = text.split('\n');
  const start = lines.findIndex((line) => line.startsWith('|'));
  const end = lines.findIndex((line, at) => at > start && !line.startsWith('|'));
  const [header, , ...rows] = lines.slice(start, end === -1 ? undefined : end).map(cellsOf);
  if (start === -1 || header === undefined) throw new Error('there is no table');
  return { header, rows };
}

function cellsOf(line: string): string[] {
  return line
    .split(/(?<!\\)\|/)
    .slice(1, -1)
    .map((cell) => cell.trim().replaceAll(String.raw`\|`, '|'));
}
