/**
 * The envelope `{type, version, key, payload}`: checked when it is sent and again when it is received, since anybody
 * with access to the queue can put anything there.
 */
import { createHash } from 'node:crypto';
import { z } from 'zod';
import { ConfigurationError, InvalidMessageError, messageOf } from '../errors.ts';
import type { Message, MessageContract } from './contract.ts';
import { canonicalJson, parseJson, type Json } from './json.ts';
import { MAX_KEY_BYTES, MAX_MESSAGE_BYTES } from './limits.ts';
import { validate, type Validated } from './schema.ts';

/** Why a body is no message. Stable: dead letters and metrics carry it. */
export type InvalidCode =
  | 'TOO_LARGE'
  | 'NOT_JSON'
  | 'ENVELOPE'
  | 'UNKNOWN_TYPE'
  | 'UNKNOWN_VERSION'
  | 'SCHEMA'
  | 'KEY_MISMATCH'
  /** The contract's own code (schema, upcaster, keyOf) threw on it. */
  | 'CONTRACT_FAILED';

/** What a body holds: a message that was checked, or why it is none. */
export type DecodedMessage =
  | { readonly kind: 'valid'; readonly message: Message }
  | { readonly kind: 'invalid'; readonly code: InvalidCode; readonly reason: string };

/** What is sent: the body for SQS and the key and hash that every duplicate of it shares. */
export interface EncodedMessage {
  readonly body: string;
  readonly bodyBytes: number;
  readonly key: string;
  readonly payloadHash: string;
}

const MAX_REASON_CHARACTERS = 500;

const keySchema = z
  .string()
  .min(1, 'must not be empty')
  .refine((key) => Buffer.byteLength(key) <= MAX_KEY_BYTES, `must not be over ${String(MAX_KEY_BYTES)} bytes`)
  // eslint-disable-next-line no-control-regex -- control characters are what this rule is about
  .refine((key) => !/[\u0000-\u001f\u007f]/.test(key), 'must not hold control characters');

const envelopeSchema = z.strictObject({
  type: z.string().min(1).max(128),
  version: z.int().min(1),
  key: keySchema,
  // Not z.json(): parseJson has seen to it already, and a second walk over a hostile body of 1 MiB takes a second.
  payload: z.custom<Json>((payload) => payload !== undefined, 'is missing'),
});

/**
 * Builds the body of a message.
 * @throws {InvalidMessageError} when the payload is against its contract, the key is unfit, or the body over 1 MiB.
 */
export function encodeMessage<Payload>(contract: MessageContract<Payload>, payload: Payload): EncodedMessage {
  const checked = validate(contract.schema, payload, 'payload');
  if (checked.kind === 'refused') throw new InvalidMessageError(storable(checked.reason));
  const envelope = {
    type: contract.type,
    version: contract.version,
    key: keyOf(contract, checked.value),
    payload: checked.value,
  };
  const body = toBody(JSON.stringify(envelope));
  // The sender's own message takes the receiver's way: what would be refused there is refused here.
  const decoded = decodeMessage(body, [contract]);
  if (decoded.kind === 'invalid') throw new InvalidMessageError(decoded.reason);
  // The receiver runs the schema again, on what the sender's run gave: a change that is made twice is another message.
  if (JSON.stringify(decoded.message.payload) !== JSON.stringify(checked.value)) {
    throw new InvalidMessageError(
      `the schema of "${contract.type}" changes its own output: a transform may run only once`,
    );
  }
  const { key, payloadHash } = decoded.message;
  return { body, bodyBytes: Buffer.byteLength(body), key, payloadHash };
}

function keyOf<Payload>(contract: MessageContract<Payload>, payload: Payload): string {
  try {
    return contract.keyOf(payload);
  } catch (cause) {
    throw new InvalidMessageError(`keyOf of "${contract.type}" threw: ${messageOf(cause)}`, { cause });
  }
}

/** Reads a body. Everything that can be wrong with it is an answer, never an exception. */
export function decodeMessage(body: string, contracts: readonly MessageContract<unknown>[]): DecodedMessage {
  const bytes = Buffer.byteLength(body);
  if (bytes > MAX_MESSAGE_BYTES) {
    return invalid('TOO_LARGE', `the body has ${String(bytes)} bytes, ${String(MAX_MESSAGE_BYTES)} are allowed`);
  }
  const json = parseJson(body);
  if (json.kind === 'refused') return invalid('NOT_JSON', json.reason);
  const envelope = validate(envelopeSchema, json.value);
  if (envelope.kind === 'refused') return invalid('ENVELOPE', envelope.reason);
  const { type, version, key, payload } = envelope.value;

  const ofType = contracts.filter((contract) => contract.type === type);
  if (ofType.length === 0) return invalid('UNKNOWN_TYPE', `no contract for type "${type}"`);
  const contract = ofType.find((candidate) => versionsOf(candidate).includes(version));
  if (contract === undefined) {
    const known = ofType.flatMap(versionsOf).join(', ');
    return invalid('UNKNOWN_VERSION', `version ${String(version)} of "${type}" is not known, only ${known}`);
  }
  const read = readPayload(contract, version, payload);
  if (read.kind !== 'valid') return invalid(read.code, read.reason);
  if (read.key !== key) {
    return invalid('KEY_MISMATCH', 'the key of the envelope is not the business key of its payload');
  }
  const payloadHash = hashOf({ type, version, payload });
  return { kind: 'valid', message: { type, version: contract.version, key, payload: read.payload, payloadHash } };
}

type ReadPayload<Payload> =
  | { readonly kind: 'valid'; readonly payload: Payload; readonly key: string }
  | { readonly kind: 'invalid'; readonly code: InvalidCode; readonly reason: string };

/** Brings a payload to the contract's version and checks it. The contract's code is the user's and may throw. */
function readPayload<Payload>(contract: MessageContract<Payload>, version: number, sent: Json): ReadPayload<Payload> {
  try {
    // A copy, so that an upcaster or schema that changes what it gets does not change what is hashed.
    let payload: unknown = structuredClone(sent);
    for (let from = version; from < contract.version; from += 1) payload = upcasterOf(contract, from)(payload);
    const checked: Validated<Payload> = validate(contract.schema, payload, 'payload');
    if (checked.kind === 'refused') return { kind: 'invalid', code: 'SCHEMA', reason: checked.reason };
    return { kind: 'valid', payload: checked.value, key: contract.keyOf(checked.value) };
  } catch (error) {
    // The contract is misused, and every message would tell the same: that is for its author, not for a dead letter.
    if (error instanceof ConfigurationError) throw error;
    const reason = `the contract of "${contract.type}" threw on version ${String(version)}: ${messageOf(error)}`;
    return { kind: 'invalid', code: 'CONTRACT_FAILED', reason };
  }
}

function upcasterOf(contract: MessageContract<unknown>, fromVersion: number): (payload: unknown) => unknown {
  const upcaster = contract.upcasters?.find((each) => each.fromVersion === fromVersion);
  if (upcaster === undefined) throw new TypeError(`no upcaster from version ${String(fromVersion)}`);
  return (payload) => upcaster.up(payload);
}

/** The versions that a contract reads: its own, and those it has upcasters from. */
function versionsOf(contract: MessageContract<unknown>): number[] {
  return [...(contract.upcasters ?? []).map((upcaster) => upcaster.fromVersion), contract.version];
}

function hashOf(content: { type: string; version: number; payload: Json }): string {
  return createHash('sha256').update(canonicalJson(content)).digest('hex');
}

/**
 * Text that SQS takes: characters it refuses, and pairs of surrogates (which some emulators refuse), are written as
 * escapes. Inside JSON text they can only stand in strings, where an escape means the same.
 * @see AWS: SendMessage, the list of allowed Unicode characters
 */
export function toBody(json: string): string {
  return json.replace(/[\ud800-\udfff\ufffe\uffff]/g, (unit) => `\\u${unit.charCodeAt(0).toString(16)}`);
}

/**
 * Reasons quote names and types out of the message and go into attributes of the dead-lettered one: characters that
 * SQS refuses there, and half a pair of surrogates where the text is cut, would keep it from being dead-lettered.
 */
function storable(reason: string): string {
  const short = reason.slice(0, MAX_REASON_CHARACTERS);
  return short.replace(/[^\u0020-\u007e\u00a0-\ud7ff\ue000-\ufffd\u{10000}-\u{10ffff}]/gu, '\ufffd');
}

function invalid(code: InvalidCode, reason: string): DecodedMessage {
  return { kind: 'invalid', code, reason: storable(reason) };
}
