/** How long a lease lasts, how often it is renewed, and when another may take it. One place for defaults and rules. */
import { ConfigurationError, type OptionFault } from '../../errors.ts';

/**
 * How long a lease lasts, how often it is renewed, and when another may take it. `leaseMs` must be at least 3 x
 * `heartbeatMs` + `safetyMarginMs`. Wrong options are a ConfigurationError that lists all faults.
 */
export interface LeaseOptions {
  /** How long the holder may act without renewing. Unit: ms. Range: 500-3600000. @defaultValue 20000 */
  readonly leaseMs?: number;
  /** Between two renewals. Unit: ms. Range: 100-leaseMs/3. @defaultValue leaseMs / 4 */
  readonly heartbeatMs?: number;
  /** The holder stops this long before the lease ends. Unit: ms. Range: 50-leaseMs/2. @defaultValue leaseMs / 10 */
  readonly safetyMarginMs?: number;
  /** How far two machines' clocks may differ before a takeover by the clock comes too early. Unit: ms.
   * Range: 0-60000. A wrong value costs a needless takeover, never a second effect. @defaultValue leaseMs / 10, at most 60000 */
  readonly maxClockSkewMs?: number;
  /** Added when silence is observed instead of read off a clock. Unit: ms. Range: 0-60000. @defaultValue 250 */
  readonly takeoverGraceMs?: number;
}

export type ResolvedLeaseOptions = Required<LeaseOptions>;

/** What `LeaseOptions` leave out. Unit: ms. All else is derived from `leaseMs`. */
export const LEASE_DEFAULTS = { leaseMs: 20_000, takeoverGraceMs: 250 } as const;

const MAX_CLOCK_SKEW_MS = 60_000;

/** The most that one clock runs faster than another: 1 %. */
export const MAX_CLOCK_DRIFT = 0.01;

/** Fills in the defaults. The faults are returned, so that a worker can report them together with its own. */
export function resolveLeaseOptions(options: LeaseOptions = {}): {
  readonly lease: ResolvedLeaseOptions;
  readonly faults: readonly OptionFault[];
} {
  const leaseMs = options.leaseMs ?? LEASE_DEFAULTS.leaseMs;
  const lease: ResolvedLeaseOptions = {
    leaseMs,
    heartbeatMs: options.heartbeatMs ?? Math.round(leaseMs / 4),
    safetyMarginMs: options.safetyMarginMs ?? Math.round(leaseMs / 10),
    maxClockSkewMs: options.maxClockSkewMs ?? Math.min(MAX_CLOCK_SKEW_MS, Math.round(leaseMs / 10)),
    takeoverGraceMs: options.takeoverGraceMs ?? LEASE_DEFAULTS.takeoverGraceMs,
  };
  return { lease, faults: findFaults(lease) };
}

/** @throws {ConfigurationError} listing every wrong option. */
export function checkedLeaseOptions(options: LeaseOptions = {}): ResolvedLeaseOptions {
  const { lease, faults } = resolveLeaseOptions(options);
  if (faults.length > 0) throw new ConfigurationError('lease', faults);
  return lease;
}

function findFaults(lease: ResolvedLeaseOptions): OptionFault[] {
  const ranges: Record<keyof ResolvedLeaseOptions, readonly [number, number]> = {
    leaseMs: [500, 3_600_000],
    heartbeatMs: [100, 1_200_000],
    safetyMarginMs: [50, 1_800_000],
    maxClockSkewMs: [0, MAX_CLOCK_SKEW_MS],
    takeoverGraceMs: [0, 60_000],
  };
  const faults = (Object.keys(ranges) as (keyof ResolvedLeaseOptions)[]).flatMap((name): OptionFault[] => {
    const [min, max] = ranges[name];
    const value = lease[name];
    const fits = Number.isFinite(value) && value >= min && value <= max;
    return fits ? [] : [{ name, rule: `from ${String(min)} to ${String(max)} ms`, value }];
  });
  // Two beats may fail and the third still comes in time.
  const needed = 3 * lease.heartbeatMs + lease.safetyMarginMs;
  if (lease.leaseMs < needed) {
    faults.push({ name: 'leaseMs', rule: 'at least 3 x heartbeatMs + safetyMarginMs', value: lease.leaseMs });
  }
  return faults;
}
