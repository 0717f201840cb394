/** Checks what callers hand to counters, before anything is sent. */
import { ConfigurationError, type OptionFault } from '../../errors.ts';
import { MAX_KEY_BYTES } from '../../messages/limits.ts';
import { COUNTER_LIMIT, isCounterValue, type CounterBounds } from './counter-value.ts';

/** With what stands in front of it, it fits a partition key of 2,048 bytes. */
const MAX_COUNTED_KEY_BYTES = 2_000;

/** As many as one read can sum up quickly; each takes about 1,000 writes a second. */
const MAX_SHARDS = 1_000;

/** Well below the ten minutes for which a request token is remembered. @see AWS: TransactWriteItems */
const MAX_NUMBERING_MS = 300_000;

/** @throws {ConfigurationError} with all faults. */
export function refuseFaults(subject: string, ...faults: readonly (readonly OptionFault[])[]): void {
  const found = faults.flat();
  if (found.length > 0) throw new ConfigurationError(subject, found);
}

export function faultsOfName(name: string): OptionFault[] {
  return faultsOfText('name', name, MAX_KEY_BYTES);
}

export function faultsOfCountedKey(key: string): OptionFault[] {
  return faultsOfText('key', key, MAX_COUNTED_KEY_BYTES);
}

export function faultsOfNumber(name: string, value: number): OptionFault[] {
  if (isCounterValue(value)) return [];
  const limit = String(COUNTER_LIMIT);
  return [{ name, rule: `a whole number from -${limit} to ${limit}`, value: shown(value) }];
}

export function faultsOfBounds({ floor, ceiling }: CounterBounds): OptionFault[] {
  const faults = [
    ...(floor === undefined ? [] : faultsOfNumber('floor', floor)),
    ...(ceiling === undefined ? [] : faultsOfNumber('ceiling', ceiling)),
  ];
  if (floor !== undefined && ceiling !== undefined && floor > ceiling) {
    faults.push({ name: 'floor', rule: `at most the ceiling (${String(ceiling)})`, value: floor });
  }
  return faults;
}

export function faultsOfShards(shards: number): OptionFault[] {
  return faultsOfRange('shards', shards, MAX_SHARDS);
}

export function faultsOfDeadline(deadlineMs: number): OptionFault[] {
  return faultsOfRange('deadlineMs', deadlineMs, MAX_NUMBERING_MS);
}

export function faultsOfRetention(retentionDays: number): OptionFault[] {
  return faultsOfRange('retentionDays', retentionDays, 3_650);
}

function faultsOfRange(name: string, value: number, max: number): OptionFault[] {
  if (Number.isInteger(value) && value >= 1 && value <= max) return [];
  return [{ name, rule: `a whole number from 1 to ${String(max)}`, value: shown(value) }];
}

function faultsOfText(name: string, value: string, maxBytes: number): OptionFault[] {
  // Half a surrogate pair becomes a replacement character on the wire: two such texts would be one counter.
  const isText = typeof value === 'string' && value.isWellFormed();
  const bytes = isText ? Buffer.byteLength(value) : 0;
  if (bytes >= 1 && bytes <= maxBytes) return [];
  return [{ name, rule: `a well-formed text of 1 to ${String(maxBytes)} bytes`, value }];
}

/** JSON has no NaN and no infinity, and would show both as null. */
function shown(value: unknown): unknown {
  return typeof value === 'number' && !Number.isFinite(value) ? String(value) : value;
}
