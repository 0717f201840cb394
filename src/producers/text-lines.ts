/**
 * Cuts a stream of bytes into lines of text, in bounded memory: a line that is too long is passed over, not gathered.
 */
export type TextLine =
  | { readonly kind: 'text'; readonly line: number; readonly text: string }
  | { readonly kind: 'bad'; readonly line: number; readonly reason: string };

const LINE_FEED = 0x0a;
const CARRIAGE_RETURN = 0x0d;
const FIRST_ROOM_BYTES = 4_096;

/**
 * @param maxLineBytes without the line's end. It bounds the memory, apart from the chunk that is being read.
 * @throws what the source throws.
 */
export async function* textLines(
  source: AsyncIterable<Uint8Array>,
  maxLineBytes: number,
): AsyncGenerator<TextLine, void> {
  // One more for the carriage return that is cut off at the end.
  const gathered = new LineBytes(maxLineBytes + 1);
  let line = 1;
  for await (const chunk of source) {
    let start = 0;
    for (let end = chunk.indexOf(LINE_FEED); end !== -1; end = chunk.indexOf(LINE_FEED, start)) {
      gathered.add(chunk.subarray(start, end));
      yield readLine(gathered, line, maxLineBytes);
      gathered.clear();
      line += 1;
      start = end + 1;
    }
    gathered.add(chunk.subarray(start));
  }
  if (gathered.totalBytes > 0) yield readLine(gathered, line, maxLineBytes);
}

function readLine(gathered: LineBytes, line: number, maxLineBytes: number): TextLine {
  const bytes = gathered.kept();
  const content = bytes.at(-1) === CARRIAGE_RETURN ? bytes.subarray(0, -1) : bytes;
  if (gathered.totalBytes > bytes.length || content.length > maxLineBytes) {
    const rule = `at most ${String(maxLineBytes)} bytes are allowed`;
    return { kind: 'bad', line, reason: `the line has ${String(gathered.totalBytes)} bytes, ${rule}` };
  }
  try {
    // A byte order mark at the start is left out; only the first line can rightly have one, elsewhere it does no harm.
    return { kind: 'text', line, text: new TextDecoder('utf-8', { fatal: true }).decode(content) };
  } catch {
    return { kind: 'bad', line, reason: 'the line is not valid UTF-8' };
  }
}

/** The bytes of the line that is being read. Copies them: a slice would keep its whole chunk in memory. */
class LineBytes {
  #room = new Uint8Array(FIRST_ROOM_BYTES);
  #length = 0;
  /** Of the whole line, also of what was passed over. */
  totalBytes = 0;
  readonly #maxBytes: number;

  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes;
  }

  add(bytes: Uint8Array): void {
    this.totalBytes += bytes.length;
    if (this.totalBytes > this.#maxBytes) return;
    const needed = this.#length + bytes.length;
    if (needed > this.#room.length) {
      const larger = new Uint8Array(Math.max(needed, Math.min(this.#maxBytes, this.#room.length * 2)));
      larger.set(this.#room.subarray(0, this.#length));
      this.#room = larger;
    }
    this.#room.set(bytes, this.#length);
    this.#length = needed;
  }

  kept(): Uint8Array {
    return this.#room.subarray(0, this.#length);
  }

  clear(): void {
    this.#length = 0;
    this.totalBytes = 0;
  }
}
