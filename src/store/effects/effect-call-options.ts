/** What an effect call is told once, and what each call brings: checked before anything is sent. */
import { createHash } from 'node:crypto';
import { hostname } from 'node:os';
import { pid } from 'node:process';
import { ConfigurationError, InvalidMessageError, messageOf, type OptionFault } from '../../errors.ts';
import { canonicalJson, parseJson } from '../../messages/json.ts';
import { MAX_KEY_BYTES } from '../../messages/limits.ts';
import { resolveLeaseOptions, type LeaseOptions, type ResolvedLeaseOptions } from '../leases/lease-options.ts';
import { retentionFaults } from './retention.ts';

/** What all effect calls of a scope share. Wrong options are a ConfigurationError that lists all faults. */
export interface EffectCallOptions {
  /**
   * Keeps the keys of different uses apart. Letters, digits, - and _, at most 80. A scope and a queue of the same name
   * never meet: in the record's key a scope is written `scope:<scope>`, and no queue's name holds a colon.
   */
  readonly scope: string;
  readonly lease?: LeaseOptions;
  /**
   * How long a caller may come back with the same key. The record must outlive it. Unit: days. Range: more than 0, up
   * to the store's record retention. @defaultValue the store's record retention
   */
  readonly callersRetryForDays?: number;
  /** What becomes of a response that does not fit into the record: keep its digest, or refuse and apply nothing. @defaultValue digest */
  readonly largeResponse?: 'digest' | 'refuse';
  /** The longest that one call works and renews its lease, for work that hangs. Unit: ms. Range: leaseMs-43200000. @defaultValue 43200000 (12 h) */
  readonly maxHoldMs?: number;
  /** Who works, for people who read the table and for callers who are told `inProgress`. At most 200 characters. @defaultValue host:pid */
  readonly holder?: string;
}

export interface ResolvedEffectCallOptions {
  /** Stands where a queue's name stands in the record of a message. */
  readonly queue: string;
  readonly lease: ResolvedLeaseOptions;
  readonly largeResponse: 'digest' | 'refuse';
  readonly maxHoldMs: number;
  readonly holder: string;
}

const SCOPE = /^[\w-]{1,80}$/;
const SCOPE_PREFIX = 'scope:';
const MAX_HOLD_MS = 43_200_000;
const MAX_HOLDER_CHARACTERS = 200;

/** @throws {ConfigurationError} listing every wrong option. */
export function resolveEffectCallOptions(
  options: EffectCallOptions,
  recordRetentionDays: number,
): ResolvedEffectCallOptions {
  const { scope, callersRetryForDays = recordRetentionDays, largeResponse = 'digest' } = options;
  const { maxHoldMs = MAX_HOLD_MS, holder = `${hostname()}:${String(pid)}`.slice(0, MAX_HOLDER_CHARACTERS) } = options;
  const { lease, faults: leaseFaults } = resolveLeaseOptions(options.lease);
  const faults: OptionFault[] = leaseFaults.map((fault) => ({ ...fault, name: `lease.${fault.name}` }));
  if (typeof scope !== 'string' || !SCOPE.test(scope)) {
    faults.push({ name: 'scope', rule: 'from 1 to 80 letters, digits, - and _', value: scope });
  }
  faults.push(...retentionFaults(recordRetentionDays, { callersRetryForDays }));
  if (!['digest', 'refuse'].includes(largeResponse)) {
    faults.push({ name: 'largeResponse', rule: 'digest or refuse', value: largeResponse });
  }
  if (!(maxHoldMs >= lease.leaseMs && maxHoldMs <= MAX_HOLD_MS)) {
    faults.push({ name: 'maxHoldMs', rule: `from leaseMs to ${String(MAX_HOLD_MS)} ms`, value: maxHoldMs });
  }
  const isText = typeof holder === 'string' && holder.isWellFormed();
  if (!isText || holder.length < 1 || holder.length > MAX_HOLDER_CHARACTERS) {
    faults.push({
      name: 'holder',
      rule: `a well-formed text from 1 to ${String(MAX_HOLDER_CHARACTERS)} characters`,
      value: holder,
    });
  }
  if (faults.length > 0) throw new ConfigurationError('effect call', faults);
  return { queue: `${SCOPE_PREFIX}${scope}`, lease, largeResponse, maxHoldMs, holder };
}

/**
 * What tells payloads apart: SHA-256 over canonical JSON. Undefined without a payload.
 * @throws {InvalidMessageError} when the key or the payload cannot be used; nothing was sent.
 */
export function checkedCall(key: unknown, payload: unknown): { payloadHash: string | undefined } {
  const payloadJson = payload === undefined ? undefined : readPayload(payload);
  const faults = [faultOfKey(key), payloadJson?.fault].filter((fault) => fault !== undefined);
  if (faults.length > 0) throw new InvalidMessageError(`effect call: ${faults.join('; ')}`);
  if (payloadJson?.text === undefined) return { payloadHash: undefined };
  return { payloadHash: createHash('sha256').update(payloadJson.text).digest('hex') };
}

/** The rules of a message's key: a key that works here can later come through a queue. */
function faultOfKey(key: unknown): string | undefined {
  if (typeof key !== 'string' || key === '') return 'the key must be a text that is not empty';
  if (Buffer.byteLength(key) > MAX_KEY_BYTES) return `the key must not be over ${String(MAX_KEY_BYTES)} bytes`;
  // eslint-disable-next-line no-control-regex -- control characters are what this rule is about
  if (/[\u0000-\u001f\u007f]/.test(key)) return 'the key must not hold control characters';
  // Different halves are all written as the same replacement character: two keys would become one.
  return key.isWellFormed() ? undefined : 'the key holds half of a surrogate pair';
}

function readPayload(payload: unknown): { text?: string; fault?: string } {
  try {
    const text = JSON.stringify(payload, refuseNonFinite) as string | undefined;
    if (text === undefined) return { fault: `the payload has no JSON: it is a ${typeof payload}` };
    const parsed = parseJson(text);
    if (parsed.kind === 'refused') return { fault: `the payload cannot be compared: ${parsed.reason}` };
    return { text: canonicalJson(parsed.value) };
  } catch (error) {
    return { fault: `the payload has no JSON: ${messageOf(error)}` };
  }
}

/** JSON writes NaN as null: two different payloads would share their hash. */
function refuseNonFinite(_name: string, value: unknown): unknown {
  if (typeof value === 'number' && !Number.isFinite(value))
    throw new RangeError(`${String(value)} is no number of JSON`);
  return value;
}
