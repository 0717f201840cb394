/**
 * What may be handed to a producer, and the checks before it is sent. One entry that SQS refuses can bring down the
 * whole request with the nine others in it, so whatever SQS would refuse is told apart here.
 */
import { createHash } from 'node:crypto';
import { messageOf } from '../errors.ts';
import type { MessageContract } from '../messages/contract.ts';
import { encodeMessage } from '../messages/envelope.ts';
import { MAX_DELAY_SECONDS, MAX_MESSAGE_BYTES } from '../messages/limits.ts';

export interface DeliveryOptions {
  /** Hidden for so long after it was sent. Unit: s. Range: 0-900. @defaultValue the queue's own delay */
  readonly delaySeconds?: number;
  /**
   * Messages of one group are delivered in order. Range: 1-128 letters, digits and punctuation.
   * @defaultValue on a FIFO queue the business key (its digest where SQS would not take the key itself), else none
   */
  readonly groupId?: string;
  /**
   * FIFO queues only: SQS drops what it has seen under the same id in the last five minutes. Range as for `groupId`.
   * @defaultValue the digest of the body
   */
  readonly deduplicationId?: string;
  /** String attributes, at most 10, none of them empty. They count towards the size of the message. */
  readonly attributes?: Readonly<Record<string, string>>;
}

/** A payload with its contract: encoded just before it is sent. */
export interface OutgoingMessage<Payload> extends DeliveryOptions {
  readonly contract: MessageContract<Payload>;
  readonly payload: Payload;
}

/** A body that is sent as it is: from `encodeMessage`, or one that is wrong on purpose. */
export interface OutgoingBody extends DeliveryOptions {
  readonly body: string;
  /** The business key, for results and for resuming. Not sent besides the body. */
  readonly key: string;
}

/** What a producer takes: a payload with its contract, or a body that is sent as it is. */
export type OutgoingEntry<Payload = unknown> = OutgoingMessage<Payload> | OutgoingBody;

/** Ready to be sent. */
export interface PreparedEntry {
  /** Its place among all entries of the call. */
  readonly index: number;
  readonly key: string;
  readonly body: string;
  /** As SQS counts it: UTF-8 of the body and of names, types and values of the attributes. */
  readonly bytes: number;
  readonly delaySeconds: number | undefined;
  readonly groupId: string | undefined;
  readonly deduplicationId: string | undefined;
  readonly attributes: Readonly<Record<string, string>>;
}

export type Preparation =
  { readonly kind: 'ready'; readonly entry: PreparedEntry } | { readonly kind: 'invalid'; readonly reason: string };

export const STRING_ATTRIBUTE = 'String';

/** @see AWS: Amazon SQS message metadata */
const MAX_ATTRIBUTES = 10;
/** Group and deduplication ids. @see AWS: SendMessage, MessageGroupId */
const FIFO_ID = /^[\w!"#$%&'()*+,\-./:;<=>?@[\\\]^`{|}~]{1,128}$/;
const ATTRIBUTE_NAME = /^(?!aws\.|amazon\.|\.)(?!.*(\.\.|\.$))[\w.-]{1,256}$/i;

/** What SQS takes as text. @see AWS: SendMessage, MessageBody */
const REFUSED_CHARACTER = /[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\u{10000}-\u{10ffff}]/u;

/** Never throws: whatever is wrong with an entry is said with the name, the rule and the value. */
export function prepareEntry<Payload>(
  entry: OutgoingEntry<Payload>,
  index: number,
  queue: { readonly isFifo: boolean } = { isFifo: false },
): Preparation {
  const encoded = bodyOf(entry);
  const attributes = entry.attributes ?? {};
  const faults = [
    ...faultsOfDelay(entry.delaySeconds),
    ...faultsOfFifo(entry, queue.isFifo),
    ...faultsOfAttributes(attributes),
  ];
  if (encoded.kind === 'invalid') return invalid([encoded.reason, ...faults]);
  const { body, key } = encoded;
  const bytes = Buffer.byteLength(body) + bytesOfAttributes(attributes);
  if (body === '') faults.push('body: must not be empty (got "")');
  if (bytes > MAX_MESSAGE_BYTES) {
    faults.push(`body: at most ${String(MAX_MESSAGE_BYTES)} bytes with its attributes (got ${String(bytes)})`);
  }
  if (REFUSED_CHARACTER.test(body)) faults.push(`body: only characters that SQS takes (got ${refusedIn(body)})`);
  if (faults.length > 0) return invalid(faults);
  const ids = idsOf(entry, { key, body, isFifo: queue.isFifo });
  return { kind: 'ready', entry: { index, key, body, bytes, attributes, delaySeconds: entry.delaySeconds, ...ids } };
}

/** The business key of an entry without encoding it; undefined when its payload has none. */
export function keyOfEntry<Payload>(entry: OutgoingEntry<Payload>): string | undefined {
  if ('body' in entry) return entry.key;
  try {
    return entry.contract.keyOf(entry.payload);
  } catch {
    return undefined;
  }
}

function bodyOf<Payload>(
  entry: OutgoingEntry<Payload>,
): { kind: 'encoded'; body: string; key: string } | { kind: 'invalid'; reason: string } {
  if ('body' in entry) return { kind: 'encoded', body: entry.body, key: entry.key };
  try {
    const { body, key } = encodeMessage(entry.contract, entry.payload);
    return { kind: 'encoded', body, key };
  } catch (error) {
    // Not only InvalidMessageError: a contract's own code may throw anything at a payload it did not expect.
    return { kind: 'invalid', reason: messageOf(error) };
  }
}

function idsOf(
  entry: DeliveryOptions,
  { key, body, isFifo }: { readonly key: string; readonly body: string; readonly isFifo: boolean },
): Pick<PreparedEntry, 'groupId' | 'deduplicationId'> {
  if (!isFifo) return { groupId: entry.groupId, deduplicationId: undefined };
  return {
    groupId: entry.groupId ?? (FIFO_ID.test(key) ? key : digest(key)),
    deduplicationId: entry.deduplicationId ?? digest(body),
  };
}

function digest(text: string): string {
  return createHash('sha256').update(text).digest('hex');
}

function faultsOfFifo(entry: DeliveryOptions, isFifo: boolean): string[] {
  const faults: string[] = [];
  for (const name of ['groupId', 'deduplicationId'] as const) {
    const value = entry[name];
    if (value === undefined || FIFO_ID.test(value)) continue;
    faults.push(`${name}: from 1 to 128 letters, digits and punctuation (got ${JSON.stringify(value).slice(0, 80)})`);
  }
  if (!isFifo && entry.deduplicationId !== undefined) faults.push('deduplicationId: only on a FIFO queue');
  if (isFifo && entry.delaySeconds !== undefined)
    faults.push('delaySeconds: not on a FIFO queue, which delays as a whole');
  return faults;
}

function faultsOfDelay(delaySeconds: number | undefined): string[] {
  if (delaySeconds === undefined) return [];
  // Emulators take 901 and fractions; AWS refuses them, and with them perhaps the whole request.
  const fits = Number.isInteger(delaySeconds) && delaySeconds >= 0 && delaySeconds <= MAX_DELAY_SECONDS;
  if (fits) return [];
  return [`delaySeconds: a whole number from 0 to ${String(MAX_DELAY_SECONDS)} s (got ${String(delaySeconds)})`];
}

function faultsOfAttributes(attributes: Readonly<Record<string, string>>): string[] {
  const entries = Object.entries(attributes);
  const faults = entries.flatMap(([name, value]) => {
    if (!ATTRIBUTE_NAME.test(name)) return [`attributes: a name that SQS takes (got ${JSON.stringify(name)})`];
    if (value === '') return [`attributes.${name}: must not be empty (got "")`];
    return REFUSED_CHARACTER.test(value) ? [`attributes.${name}: only characters that SQS takes`] : [];
  });
  if (entries.length <= MAX_ATTRIBUTES) return faults;
  return [`attributes: at most ${String(MAX_ATTRIBUTES)} (got ${String(entries.length)})`, ...faults];
}

function bytesOfAttributes(attributes: Readonly<Record<string, string>>): number {
  const sizes = Object.entries(attributes).map(
    ([name, value]) => Buffer.byteLength(name) + STRING_ATTRIBUTE.length + Buffer.byteLength(value),
  );
  return sizes.reduce((sum, size) => sum + size, 0);
}

function refusedIn(body: string): string {
  const character = REFUSED_CHARACTER.exec(body)?.[0] ?? '';
  return `U+${(character.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, '0')}`;
}

function invalid(faults: readonly string[]): Preparation {
  return { kind: 'invalid', reason: faults.join('; ') };
}
