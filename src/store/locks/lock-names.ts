/** Names of locks, and the one order in which everybody takes several. */
import { ConfigurationError, type OptionFault } from '../../errors.ts';
import { lockKey } from '../table.ts';

/** @see AWS: Naming rules and limits, partition key values */
const MAX_KEY_BYTES = 2_048;
/** Each lock is one action of a transaction of at most 100, and something must be left to write. */
const MAX_LOCKS_AT_ONCE = 99;

/** @throws {ConfigurationError} when a name cannot be the key of a lock. */
export function checkName(name: string): void {
  const fault = faultOf(name);
  if (fault !== undefined) throw new ConfigurationError('lock', [fault]);
}

/**
 * Each name once, by the bytes of its key in UTF-8: the same on every host, whatever its language.
 * @throws {ConfigurationError} for a wrong name, no name, or more than 99.
 */
export function inLockOrder(names: readonly string[]): string[] {
  const unique = [...new Set(names)];
  const faults = unique.flatMap((name) => faultOf(name) ?? []);
  if (unique.length === 0 || unique.length > MAX_LOCKS_AT_ONCE) {
    faults.push({ name: 'names', rule: `from 1 to ${String(MAX_LOCKS_AT_ONCE)} locks`, value: unique.length });
  }
  if (faults.length > 0) throw new ConfigurationError('locks', faults);
  return unique.toSorted((left, right) => Buffer.compare(bytesOf(left), bytesOf(right)));
}

function bytesOf(name: string): Buffer {
  return Buffer.from(lockKey(name).PK);
}

function faultOf(name: unknown): OptionFault | undefined {
  if (typeof name !== 'string' || name === '')
    return { name: 'name', rule: 'text of at least 1 character', value: name };
  // Half of a surrogate pair has no UTF-8: two such names would be one key.
  if (!name.isWellFormed()) return { name: 'name', rule: 'well-formed Unicode', value: name };
  const bytes = bytesOf(name).length;
  if (bytes <= MAX_KEY_BYTES) return undefined;
  return { name: 'name', rule: `a key of at most ${String(MAX_KEY_BYTES)} bytes`, value: bytes };
}
