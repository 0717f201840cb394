/**
 * The provider's books: an append-only NDJSON file of what it decided. `append` resolves only when the line is on the
 * disk, so whatever a caller was told is still true after a crash.
 *
 * Invariant: the file up to `#durableBytes` is whole lines that were synced. A line without its end can only be the
 * last one, was never answered for, and is cut off at the next start. After a failed write the end of the file is
 * unknown, so the journal takes nothing more until it is opened again.
 */
import { createReadStream } from 'node:fs';
import { open } from 'node:fs/promises';
import type { FileHandle } from 'node:fs/promises';
import path from 'node:path';
import { z } from 'zod';
import { EnvironmentError, messageOf } from '../errors.ts';
import { MAX_BODY_BYTES, chargeResultSchema } from './charge-contract.ts';
import type { ChargeResult } from './payment-provider.ts';

/** One decision. Declined ones are kept too, because their answer must survive a restart as well. */
export interface JournalEntry {
  readonly idempotencyKey: string | null;
  /** Tells whether a later request with the same key is the same request. */
  readonly requestHash: string;
  readonly reference: string;
  readonly accountId: string;
  readonly amountMinor: number;
  readonly currency: string;
  readonly caller: string | null;
  /** Wall clock of the provider, ms since the epoch. */
  readonly decidedAtMs: number;
  readonly result: ChargeResult;
}

/** What the provider needs of a journal. */
export interface ChargeLog {
  /** Resolves when the entry is durable. @throws {EnvironmentError} when it may not be. */
  append(entry: JournalEntry): Promise<void>;
}

const entrySchema: z.ZodType<JournalEntry> = z.strictObject({
  idempotencyKey: z.string().nullable(),
  requestHash: z.string(),
  reference: z.string(),
  accountId: z.string(),
  amountMinor: z.int(),
  currency: z.string(),
  caller: z.string().nullable(),
  decidedAtMs: z.number(),
  result: chargeResultSchema,
});

const NEWLINE = 0x0a;
/** No entry is longer than the request it came from, but escapes and header values add to it. */
const MAX_LINE_BYTES = 2 * MAX_BODY_BYTES;

interface Pending {
  readonly line: string;
  resolve(): void;
  reject(error: Error): void;
}

/** A journal file that this process alone writes to. */
export class ChargeJournal implements ChargeLog {
  readonly #file: string;
  readonly #handle: FileHandle;
  readonly #pending: Pending[] = [];
  #durableBytes: number;
  #flushing: Promise<void> | undefined;
  #failure: EnvironmentError | undefined;
  /** Bytes of an unfinished last line that were cut off when the file was opened; 0 when there was none. */
  readonly tornBytes: number;

  private constructor(file: string, handle: FileHandle, sizes: { durableBytes: number; tornBytes: number }) {
    this.#file = file;
    this.#handle = handle;
    this.#durableBytes = sizes.durableBytes;
    this.tornBytes = sizes.tornBytes;
  }

  /**
   * Opens or creates the file, gives each entry in it to `onEntry`, and cuts off a torn last line.
   * @throws {EnvironmentError} when the file cannot be opened, or a line that is not the last is unreadable.
   */
  static async open(file: string, onEntry: (entry: JournalEntry) => void): Promise<ChargeJournal> {
    const handle = await openForAppend(file);
    try {
      const { size } = await handle.stat();
      let durableBytes = 0;
      for await (const { entry, endOffset } of readEntries(file, size)) {
        durableBytes = endOffset;
        onEntry(entry);
      }
      if (durableBytes < size) await handle.truncate(durableBytes);
      await handle.sync();
      await syncFolder(path.dirname(path.resolve(file)));
      return new ChargeJournal(file, handle, { durableBytes, tornBytes: size - durableBytes });
    } catch (error) {
      await handle.close();
      throw error;
    }
  }

  append(entry: JournalEntry): Promise<void> {
    return new Promise((resolve, reject) => {
      if (this.#failure !== undefined) {
        reject(this.#failure);
        return;
      }
      this.#pending.push({ line: `${JSON.stringify(entry)}\n`, resolve, reject });
      this.#flushing ??= this.#flush();
    });
  }

  /** Why nothing more can be written, or undefined while all is well. */
  get failure(): EnvironmentError | undefined {
    return this.#failure;
  }

  /** The durable entries in order, read from the file as they are asked for. */
  async *entries(): AsyncGenerator<JournalEntry> {
    for await (const { entry } of readEntries(this.#file, this.#durableBytes)) yield entry;
  }

  /** Waits for what is being written, then closes the file. Later appends fail. */
  async close(): Promise<void> {
    await this.#flushing;
    this.#failure ??= new EnvironmentError('the charge journal is closed');
    await this.#handle.close();
  }

  /** One write and one sync for all that arrived during the sync before: requests share the wait, none skips it. */
  async #flush(): Promise<void> {
    while (this.#pending.length > 0) {
      const batch = this.#pending.splice(0);
      try {
        await this.#write(Buffer.from(batch.map(({ line }) => line).join('')));
        for (const pending of batch) pending.resolve();
      } catch (error) {
        this.#failure = new EnvironmentError(`the charge journal cannot be written: ${messageOf(error)}`, {
          cause: error,
        });
        for (const pending of [...batch, ...this.#pending.splice(0)]) pending.reject(this.#failure);
      }
    }
    this.#flushing = undefined;
  }

  async #write(lines: Buffer): Promise<void> {
    const { size } = await this.#handle.stat();
    // Two providers on one file would each know only half of the keys, and charge twice.
    if (size !== this.#durableBytes) throw new EnvironmentError('another process has changed the file');
    await this.#handle.appendFile(lines);
    await this.#handle.sync();
    this.#durableBytes += lines.byteLength;
  }
}

async function openForAppend(file: string): Promise<FileHandle> {
  try {
    return await open(file, 'a+', 0o600);
  } catch (error) {
    throw new EnvironmentError(`the charge journal cannot be opened: ${messageOf(error)}`, { cause: error });
  }
}

/** A new file survives a power cut only when its name in the folder was synced too. */
async function syncFolder(folder: string): Promise<void> {
  if (process.platform === 'win32') return; // Windows cannot open a folder for syncing.
  const handle = await open(folder, 'r');
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}

/** The whole lines within the first `sizeBytes` of the file; a last line without its end is left out. */
async function* readEntries(
  file: string,
  sizeBytes: number,
): AsyncGenerator<{ entry: JournalEntry; endOffset: number }> {
  if (sizeBytes === 0) return;
  let rest = Buffer.alloc(0);
  let endOffset = 0;
  let lineNumber = 0;
  // The stream is made without an encoding, so it gives Buffers.
  for await (const chunk of createReadStream(file, { start: 0, end: sizeBytes - 1 }) as AsyncIterable<Buffer>) {
    rest = Buffer.concat([rest, chunk]);
    let start = 0;
    for (let end = rest.indexOf(NEWLINE); end !== -1; end = rest.indexOf(NEWLINE, start)) {
      lineNumber += 1;
      endOffset += end + 1 - start;
      yield { entry: parseLine(rest.toString('utf8', start, end), lineNumber), endOffset };
      start = end + 1;
    }
    rest = rest.subarray(start);
    if (rest.byteLength > MAX_LINE_BYTES) {
      throw new EnvironmentError(`the charge journal is damaged: line ${String(lineNumber + 1)} has no end`);
    }
  }
}

function parseLine(line: string, lineNumber: number): JournalEntry {
  try {
    return entrySchema.parse(JSON.parse(line));
  } catch (error) {
    throw new EnvironmentError(
      `the charge journal is damaged at line ${String(lineNumber)}; repair or move the file, nothing was changed`,
      { cause: error },
    );
  }
}
