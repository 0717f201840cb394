/** How locks are held, waited for and given up. One place for defaults and rules. */
import { hostname } from 'node:os';
import { ConfigurationError, type OptionFault } from '../../errors.ts';
import { resolveLeaseOptions, type LeaseOptions, type ResolvedLeaseOptions } from '../leases/lease-options.ts';

/**
 * How the locks of one `store.locks()` are held, waited for and given up. Wrong options are a ConfigurationError that
 * lists all faults.
 */
export interface LockOptions extends LeaseOptions {
  /** Who asks, for people who read the table. 1-256 characters. @defaultValue host:pid */
  readonly holder?: string;
  /**
   * `expiry-or-observed`: by the clock, or by observed silence. `observed`: by silence alone, for work without a fence;
   * a crashed holder's lock is then free one whole lease after it was first seen. @defaultValue expiry-or-observed
   */
  readonly takeover?: 'expiry-or-observed' | 'observed';
  /** After a pause beyond the lease: ask once whether it is still ours, or give up at once. @defaultValue revalidate */
  readonly onStall?: 'revalidate' | 'abort';
  /**
   * Who renews: a timer of ours, or the caller by `renew()` and `write()`, for processes that are frozen between calls.
   * @defaultValue automatic
   */
  readonly beats?: 'automatic' | 'manual';
  /**
   * The `danger` event comes this long after the last renewal. Unit: ms. Range: heartbeatMs to the end of the lease
   * less safetyMarginMs. @defaultValue leaseMs / 2
   */
  readonly dangerAfterMs?: number;
  /**
   * The longest that a lock is held and renewed, for work that hangs. Unit: ms. Range: leaseMs-604800000 (7 days).
   * @defaultValue 43200000 (12 h)
   */
  readonly maxHoldMs?: number;
  /**
   * Gives up a lock whose holder has not called `progress()` for this long. Unit: ms. Range: heartbeatMs-604800000.
   * @defaultValue off
   */
  readonly requireProgressMs?: number;
  /** The shortest time between two looks at a lock that is waited for. Unit: ms. Range: 10-pollMaxMs. @defaultValue 100 */
  readonly pollMinMs?: number;
  /** The longest time between two looks. Unit: ms. Range: pollMinMs-60000. @defaultValue 1000 */
  readonly pollMaxMs?: number;
  /**
   * How long the item of a lock outlives its last write. Unit: days. Range: 1-3650, and at least 100 leases, so that it
   * outlives the lease by far. It decides nothing. @defaultValue 30
   */
  readonly retentionDays?: number;
}

/** Total, but for what is off by default. */
export interface ResolvedLockOptions extends Required<
  Omit<LockOptions, keyof LeaseOptions | 'requireProgressMs' | 'holder'>
> {
  readonly holder: string;
  readonly requireProgressMs: number | undefined;
  readonly lease: ResolvedLeaseOptions;
}

/**
 * What `LockOptions` leave out, besides `LEASE_DEFAULTS`. Times in ms, `retentionDays` in days. `dangerAfterMs` is half
 * of `leaseMs`, and `requireProgressMs` is off.
 */
export const LOCK_DEFAULTS = {
  takeover: 'expiry-or-observed',
  onStall: 'revalidate',
  beats: 'automatic',
  maxHoldMs: 43_200_000,
  pollMinMs: 100,
  pollMaxMs: 1_000,
  retentionDays: 30,
} as const;

const WEEK_MS = 604_800_000;
const DAY_MS = 86_400_000;
const MAX_HOLDER_CHARACTERS = 256;

/** @throws {ConfigurationError} listing every wrong option. */
export function checkedLockOptions(options: LockOptions = {}): ResolvedLockOptions {
  const { lease, faults } = resolveLeaseOptions(options);
  const resolved: ResolvedLockOptions = {
    lease,
    holder: options.holder ?? `${hostname()}:${String(process.pid)}`,
    takeover: options.takeover ?? LOCK_DEFAULTS.takeover,
    onStall: options.onStall ?? LOCK_DEFAULTS.onStall,
    beats: options.beats ?? LOCK_DEFAULTS.beats,
    dangerAfterMs: options.dangerAfterMs ?? Math.round(lease.leaseMs / 2),
    maxHoldMs: options.maxHoldMs ?? LOCK_DEFAULTS.maxHoldMs,
    requireProgressMs: options.requireProgressMs,
    pollMinMs: options.pollMinMs ?? Math.min(LOCK_DEFAULTS.pollMinMs, options.pollMaxMs ?? Infinity),
    pollMaxMs: options.pollMaxMs ?? Math.max(LOCK_DEFAULTS.pollMaxMs, options.pollMinMs ?? 0),
    retentionDays: options.retentionDays ?? LOCK_DEFAULTS.retentionDays,
  };
  const all = [...faults, ...faultsOfChoices(resolved), ...faultsOfTimes(resolved)];
  if (all.length > 0) throw new ConfigurationError('locks', all);
  return resolved;
}

function faultsOfChoices(options: ResolvedLockOptions): OptionFault[] {
  const choices = [
    ['takeover', options.takeover, ['expiry-or-observed', 'observed']],
    ['onStall', options.onStall, ['revalidate', 'abort']],
    ['beats', options.beats, ['automatic', 'manual']],
  ] as const;
  const faults = choices.flatMap(([name, value, allowed]): OptionFault[] =>
    // Callers without types can give anything.
    (allowed as readonly unknown[]).includes(value) ? [] : [{ name, rule: allowed.join(' or '), value }],
  );
  const { holder } = options;
  const isWellFormed = typeof holder === 'string' && holder.isWellFormed();
  const isText = isWellFormed && holder.length > 0 && holder.length <= MAX_HOLDER_CHARACTERS;
  if (!isText) {
    faults.push({
      name: 'holder',
      rule: `well-formed text of 1 to ${String(MAX_HOLDER_CHARACTERS)} characters`,
      value: holder,
    });
  }
  return faults;
}

type Range = readonly [name: string, value: number, min: number, max: number, unit: string];

function faultsOfTimes(options: ResolvedLockOptions): OptionFault[] {
  const { lease, requireProgressMs, pollMinMs, pollMaxMs, retentionDays } = options;
  const lastDangerMs = lease.leaseMs - lease.safetyMarginMs;
  const minRetentionDays = Math.max(1, Math.ceil((100 * lease.leaseMs) / DAY_MS));
  const ranges: Range[] = [
    ['dangerAfterMs', options.dangerAfterMs, lease.heartbeatMs, lastDangerMs, 'ms'],
    ['maxHoldMs', options.maxHoldMs, lease.leaseMs, WEEK_MS, 'ms'],
    ['pollMinMs', pollMinMs, 10, 60_000, 'ms'],
    ['pollMaxMs', pollMaxMs, pollMinMs, 60_000, 'ms'],
    ['retentionDays', retentionDays, minRetentionDays, 3_650, 'days, and 100 leases'],
  ];
  if (requireProgressMs !== undefined) {
    ranges.push(['requireProgressMs', requireProgressMs, lease.heartbeatMs, WEEK_MS, 'ms']);
  }
  return ranges.flatMap(([name, value, min, max, unit]): OptionFault[] => {
    const isIn = Number.isFinite(value) && value >= min && value <= max;
    return isIn ? [] : [{ name, rule: `from ${String(min)} to ${String(max)} ${unit}`, value }];
  });
}
