/** Data goes to stdout, talk to stderr: `onlyonce ... --json | jq` always works. */
import { LOG_LEVELS, type LogLevel } from '../telemetry/logger.ts';

export interface Output {
  readonly isJson: boolean;
  /** One object or line of data. In JSON mode `value` is printed, else `text`. */
  data(value: unknown, text: string): void;
  /** For people only; never part of the data. */
  note(text: string): void;
  /** Overwrites itself on a terminal, and is silent elsewhere. */
  progress(text: string): void;
}

export function createOutput(isJson: boolean): Output {
  const isTerminal = process.stderr.isTTY;
  let isLineOpen = false;
  const closeLine = (): void => {
    if (isLineOpen) process.stderr.write('\n');
    isLineOpen = false;
  };
  return {
    isJson,
    data(value, text) {
      closeLine();
      process.stdout.write(`${isJson ? JSON.stringify(value) : text}\n`);
    },
    note(text) {
      closeLine();
      process.stderr.write(`${text}\n`);
    },
    progress(text) {
      if (!isTerminal) return;
      process.stderr.write(`\r\u001b[K${text}`);
      isLineOpen = true;
    },
  };
}

/** Columns padded to their widest cell; numbers to the right. */
export function textTable(rows: readonly (readonly (string | number)[])[]): string {
  const widths: number[] = [];
  for (const row of rows) {
    for (const [column, cell] of row.entries()) {
      widths[column] = Math.max(widths[column] ?? 0, String(cell).length);
    }
  }
  return rows
    .map((row) =>
      row
        .map((cell, column) => {
          const width = widths[column] ?? 0;
          return typeof cell === 'number' ? String(cell).padStart(width) : cell.padEnd(width);
        })
        .join('  ')
        .trimEnd(),
    )
    .join('\n');
}

/** A name and a value a line. */
export function textFields(fields: Readonly<Record<string, unknown>>): string {
  return textTable(
    Object.entries(fields).map(([name, value]) => [
      name,
      typeof value === 'string' ? value : (JSON.stringify(value) ?? '-'),
    ]),
  );
}

export function isLogLevel(text: string): text is LogLevel {
  return (LOG_LEVELS as readonly string[]).includes(text);
}
