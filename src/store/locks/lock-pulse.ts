/**
 * The timers of one held lock: the next beat, the danger mark, the longest hold, and progress. All are background
 * timers: they keep no process alive. Beats run on the event loop of the work, so a blocked loop stops beating.
 */
import type { Cancel, Clock, Random } from '../../clock.ts';
import type { HeldLease } from '../leases/held-lease.ts';
import { instantOf, type Instant } from '../leases/lease-validity.ts';
import type { ResolvedLockOptions } from './lock-options.ts';

export interface PulseParts {
  readonly lease: HeldLease;
  readonly clock: Clock;
  readonly random: Random;
  readonly options: ResolvedLockOptions;
  onDanger(): void;
  onStall(pausedMs: number): void;
}

/** A timer that is this much late, or by one heartbeat, tells of a pause. */
const MIN_STALL_MS = 1_000;

export class LockPulse {
  readonly #parts: PulseParts;
  readonly #cancels = new Map<string, Cancel>();
  #isStopped = false;
  /** When the next beat is due. Undefined while one is on its way. */
  #due: Instant | undefined;

  constructor(parts: PulseParts) {
    this.#parts = parts;
    const { options, lease } = parts;
    this.#arm('maxHold', options.maxHoldMs, () => {
      lease.giveUp('maxHold');
    });
    this.progress();
    this.renewed();
  }

  /** A renewal succeeded, by a beat or by a write: the next beat and the danger mark are counted from now. */
  renewed(): void {
    this.#scheduleBeat();
    this.#arm('danger', this.#parts.options.dangerAfterMs, () => {
      this.noticeStall();
      this.#parts.onDanger();
    });
  }

  progress(): void {
    const { options, lease } = this.#parts;
    if (options.requireProgressMs === undefined) return;
    this.#arm('progress', options.requireProgressMs, () => {
      lease.giveUp('noProgress');
    });
  }

  /** Ends the beats alone: the lease is left to its end. */
  stopBeating(): void {
    this.#isStopped = true;
    this.#due = undefined;
    for (const name of ['beat', 'danger']) this.#cancels.get(name)?.();
  }

  stop(): void {
    this.stopBeating();
    for (const cancel of this.#cancels.values()) cancel();
    this.#cancels.clear();
  }

  /**
   * Tells once when the next beat is overdue by more than timers ever are. Called by whatever runs first after a pause:
   * timers come late and in any order then.
   */
  noticeStall(): void {
    if (this.#due === undefined) return;
    const now = instantOf(this.#parts.clock);
    const lateMs = Math.max(now.wallMs - this.#due.wallMs, now.monoMs - this.#due.monoMs);
    if (lateMs <= Math.max(MIN_STALL_MS, this.#parts.options.lease.heartbeatMs)) return;
    this.#due = undefined;
    this.#parts.onStall(lateMs);
  }

  #scheduleBeat(): void {
    const { clock, random, lease, options } = this.#parts;
    if (this.#isStopped || options.beats === 'manual') return;
    const { heartbeatMs } = options.lease;
    // Jitter keeps locks that were acquired together from beating together.
    const regularMs = heartbeatMs * (0.9 + random() * 0.2);
    // A slow grant or beat has used up a part of the lease already: the next beat comes sooner then.
    const delayMs = Math.min(regularMs, Math.max(lease.remainingMs() / 2, heartbeatMs / 4));
    const now = instantOf(clock);
    this.#due = { wallMs: now.wallMs + delayMs, monoMs: now.monoMs + delayMs };
    this.#arm('beat', delayMs, () => {
      void this.#beat();
    });
  }

  async #beat(): Promise<void> {
    this.noticeStall();
    this.#due = undefined;
    const dueBefore = this.#cancels.get('beat');
    await this.#parts.lease.renew().catch(() => false);
    // A beat that succeeded has scheduled the next one. One that was refused, and is held still, tries again later.
    if (this.#cancels.get('beat') === dueBefore) this.#scheduleBeat();
  }

  #arm(name: string, delayMs: number, fn: () => void): void {
    this.#cancels.get(name)?.();
    if (this.#isStopped) return;
    this.#cancels.set(name, this.#parts.clock.schedule(fn, delayMs, { background: true }));
  }
}
