/** Reads charges from NDJSON, of a file or of standard input. A bad line is told with its number and never stops the rest. */
import { ConfigurationError } from '../errors.ts';
import { CHARGE_REQUESTED, type Charge } from '../messages/charge.ts';
import { decodeMessage } from '../messages/envelope.ts';
import { validate } from '../messages/schema.ts';
import { parseJson } from '../messages/json.ts';
import { MAX_MESSAGE_BYTES } from '../messages/limits.ts';
import { textLines } from './text-lines.ts';

export type ChargeLine =
  | { readonly kind: 'charge'; readonly line: number; readonly charge: Charge }
  | { readonly kind: 'bad'; readonly line: number; readonly reason: string };

export interface ReadChargesOptions {
  /** Without the line's end; a longer line is bad. Unit: bytes. Range: 1-1048576. @defaultValue 1048576 */
  readonly maxLineBytes?: number;
}

const READ_CHARGES_DEFAULTS: { readonly maxLineBytes: number } = { maxLineBytes: MAX_MESSAGE_BYTES };

/**
 * Gives each line that is not blank, in order. A line holds a charge, or a whole envelope with a charge as its payload.
 * Lines may end in CRLF, the last one needs no end, and a byte order mark is passed over.
 *
 * @remarks Keeps one line and one chunk of the source in memory.
 * @throws {ConfigurationError} when `maxLineBytes` is out of range.
 * @throws what the source throws: a file that cannot be read is not a matter of one line.
 */
export async function* readCharges(
  source: AsyncIterable<Uint8Array>,
  options: ReadChargesOptions = {},
): AsyncGenerator<ChargeLine, void> {
  const maxLineBytes = options.maxLineBytes ?? READ_CHARGES_DEFAULTS.maxLineBytes;
  if (!Number.isInteger(maxLineBytes) || maxLineBytes < 1 || maxLineBytes > MAX_MESSAGE_BYTES) {
    const rule = `a whole number from 1 to ${String(MAX_MESSAGE_BYTES)} bytes`;
    throw new ConfigurationError('readCharges', [{ name: 'maxLineBytes', rule, value: maxLineBytes }]);
  }
  for await (const read of textLines(source, maxLineBytes)) {
    if (read.kind === 'bad') yield read;
    else if (read.text.trim() !== '') yield { line: read.line, ...chargeOf(read.text) };
  }
}

function chargeOf(text: string): { kind: 'charge'; charge: Charge } | { kind: 'bad'; reason: string } {
  const json = parseJson(text);
  if (json.kind === 'refused') return { kind: 'bad', reason: json.reason.replace('the body', 'the line') };
  let candidate: unknown = json.value;
  if (isEnvelope(candidate)) {
    const decoded = decodeMessage(text, [CHARGE_REQUESTED]);
    if (decoded.kind === 'invalid') return { kind: 'bad', reason: decoded.reason };
    candidate = decoded.message.payload;
  }
  const checked = validate(CHARGE_REQUESTED.schema, candidate);
  return checked.kind === 'valid' ? { kind: 'charge', charge: checked.value } : { kind: 'bad', reason: checked.reason };
}

/** No charge has a field `payload`, so a line with one was meant as an envelope and is judged as one. */
function isEnvelope(value: unknown): boolean {
  return typeof value === 'object' && value !== null && Object.hasOwn(value, 'payload');
}
