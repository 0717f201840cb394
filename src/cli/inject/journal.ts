/** What was injected, one JSON object a line, in a file that only grows: written before the command goes on. */
import { closeSync, fstatSync, fsyncSync, openSync, readSync, writeSync } from 'node:fs';

export interface InjectJournal {
  /** Returns when the line is on disk. @throws when it cannot be written: nothing more may be injected then. */
  write(line: object): void;
  close(): void;
}

/** @throws when the file cannot be opened. */
export function openJournal(file: string): InjectJournal {
  const descriptor = openSync(file, 'a+');
  // A crash or a full disk may have left half a line: the next one must not become part of it.
  let isTorn = endsTorn(descriptor);
  return {
    write(line) {
      const text = Buffer.from(`${isTorn ? '\n' : ''}${JSON.stringify(line)}\n`);
      isTorn = true;
      for (let written = 0; written < text.length;) written += writeSync(descriptor, text, written);
      isTorn = false;
      fsyncSync(descriptor);
    },
    close() {
      closeSync(descriptor);
    },
  };
}

function endsTorn(descriptor: number): boolean {
  const { size } = fstatSync(descriptor);
  if (size === 0) return false;
  const last = Buffer.alloc(1);
  readSync(descriptor, last, 0, 1, size - 1);
  return last.toString() !== '\n';
}
