/**
 * A lease while this process holds it: renewing, noticing its loss, giving it back.
 *
 *   HELD --validity over--> SUSPECT --one renewal: still ours--> HELD
 *   HELD | SUSPECT --refused, or no renewal in time--> LOST        (terminal: a lost lease never renews again)
 *   HELD --release() | end()--> ENDED                              (terminal)
 *
 * Renewals, fenced writes and the release of one lease never overlap in this process. That alone makes nothing safe:
 * what decides is the condition on owner and token inside each write.
 */
import { fullJitterMs } from '../../backoff.ts';
import { sleep, type Cancel, type Clock, type Random } from '../../clock.ts';
import type { BackendError } from '../../errors.ts';
import { toBackendError } from '../backend-error.ts';
import { conditionalUpdate, repeatedUpdate, type UpdateAnswer, type UpdateTarget } from '../conditional-update.ts';
import type { Change } from '../expressions.ts';
import { heldBy, releaseChange, renewChange, retained, type LeaseGrant } from './lease-grant.ts';
import { LeaseLostError, lossReason, tokenOf, type LossReason } from './lease-loss.ts';
import type { ResolvedLeaseOptions } from './lease-options.ts';
import { instantOf, LeaseValidity, type Instant } from './lease-validity.ts';
import type { Item } from '../table.ts';

export { LeaseLostError, type LossReason } from './lease-loss.ts';

export interface HeldLeaseDependencies {
  /** A client of its own for renewals, with one try per request: its time-outs must not wait behind other work. */
  readonly target: UpdateTarget;
  readonly clock: Clock;
  readonly random: Random;
  readonly lease: ResolvedLeaseOptions;
  /** After a pause beyond the lease: ask once whether it is still ours, or give up at once. @defaultValue revalidate */
  readonly onStall?: 'revalidate' | 'abort';
  /** How long the item outlives its last write. Unit: days. @defaultValue no `ttl` is written by the lease */
  readonly retentionDays?: number;
  /** Gives each renewal its turn, so that not all leases of a process are renewed at once. @defaultValue at once */
  readonly beatTurn?: BeatTurn;
}

/** Runs `beat` when there is room for it. */
export type BeatTurn = <Result>(beat: () => Promise<Result>) => Promise<Result>;

/** Who wants to know what becomes of a lease, besides its loss. */
export interface LeaseWatcher {
  /** A renewal has succeeded, or a write that renews. */
  renewed(): void;
  /** A renewal failed for a reason that does not pass by itself; the lease is held until its time is over. */
  beatRefused(error: BackendError): void;
  /** A timer fired this much late. Unit: ms. */
  stalled(pausedMs: number): void;
}

const RENEW_BACKOFF = { baseMs: 50, capMs: 500 } as const;

/** A timer that fires this much late, on either clock, tells that the process or the machine was paused. */
const STALL_MS = 1_000;

/**
 * A lease that was granted to this process. It renews nothing by itself: call `renew` every `heartbeatMs`, or take a
 * lock of `store.locks()`, which does. Writes are safe only with its fence in their transaction (`fenceCheck`,
 * `fenceAndRenew`, `fenceAndFinish`).
 */
export class HeldLease {
  readonly grant: LeaseGrant;
  readonly #deps: HeldLeaseDependencies;
  readonly #validity: LeaseValidity;
  readonly #loss = new AbortController();
  #ended = false;
  #lostTo: Item | undefined;
  #watcher: LeaseWatcher | undefined;
  #beatUnderWay: AbortController | undefined;
  #queue: Promise<unknown> = Promise.resolve();
  #cancelWatchdog: Cancel = () => undefined;

  /** @param sentAt when the acquiring request was sent: the lease counts from before it left. */
  constructor(grant: LeaseGrant, sentAt: Instant, deps: HeldLeaseDependencies) {
    this.grant = grant;
    this.#deps = deps;
    this.#validity = new LeaseValidity(sentAt, deps.lease.leaseMs - deps.lease.safetyMarginMs);
    this.#armWatchdog();
  }

  /** Aborts with a {@link LeaseLostError} when the lease is lost for good. */
  get signal(): AbortSignal {
    return this.#loss.signal;
  }

  /** True while both clocks say that the lease is ours. Says nothing about the next instant: writes carry the fence. */
  isHeld(): boolean {
    return !this.#ended && !this.#loss.signal.aborted && this.remainingMs() > 0;
  }

  remainingMs(): number {
    return this.#validity.remainingMs(instantOf(this.#deps.clock));
  }

  /**
   * Sends one renewal, repeated on passing faults while the lease lasts. After a pause, one try decides.
   * @returns false when the lease is lost or ended. A fault that stays leaves it held until its time is over.
   */
  renew(): Promise<boolean> {
    return this.exclusively(async () => {
      await (this.remainingMs() > 0 ? this.#renewWhileValid() : this.#decide());
      return this.isHeld();
    });
  }

  /**
   * Makes sure of the lease before a fenced write: after a pause, one renewal decides whether it is still ours.
   * @throws {LeaseLostError}
   */
  async ensureHeld(): Promise<void> {
    if (!this.isHeld()) await this.whileHeld(() => Promise.resolve());
  }

  /**
   * Runs `fn` while the lease is held and no renewal or release of it is on its way. After a pause, one renewal decides
   * first whether it is still ours.
   * @throws {LeaseLostError} when it is not; `fn` has not run then.
   */
  whileHeld<Result>(fn: () => Promise<Result>): Promise<Result> {
    return this.exclusively(async () => {
      await this.#decide();
      this.#loss.signal.throwIfAborted();
      if (!this.isHeld()) throw new LeaseLostError('released', this.grant);
      return fn();
    });
  }

  /** Tells `watcher` from now on. */
  watch(watcher: LeaseWatcher): void {
    this.#watcher = watcher;
  }

  /** What was on the item when the loss was noticed, if the item said so. */
  get lostTo(): Item | undefined {
    return this.#lostTo;
  }

  /** A write that carries the renewal, sent at `sentAt`, has succeeded. */
  renewedBy(sentAt: Instant): void {
    if (this.#ended || this.#loss.signal.aborted) return;
    this.#validity.renewed(sentAt);
    this.#armWatchdog();
    this.#watcher?.renewed();
  }

  /** Given up by this process itself: aborts the signal and never renews again. The item is left to expire. */
  giveUp(reason: LossReason): void {
    if (!this.#loss.signal.aborted) this.#abort(new LeaseLostError(reason, this.grant));
  }

  /** Runs `fn` while no renewal or release of this lease is on its way. */
  exclusively<Result>(fn: () => Promise<Result>): Promise<Result> {
    const turn = this.#queue.then(fn);
    this.#queue = turn.catch(() => undefined);
    return turn;
  }

  /**
   * Gives the lease back, together with `change` on the same item.
   * @param signal ends the tries; what was sent may still be applied.
   * @returns false when it was no longer ours; nothing was written then.
   */
  release(change: Change = {}, signal?: AbortSignal): Promise<boolean> {
    // Ended first, so that a renewal which is being repeated stops and lets us through.
    this.end();
    return this.exclusively(async () => {
      const answer = await repeatedUpdate(this.#deps, {
        key: this.grant.key,
        change: releaseChange(retained(change, this.#deps)),
        condition: heldBy(this.grant),
        ...(signal !== undefined && { signal }),
      });
      // No owner and our token: an earlier try of this very release landed and its answer was lost.
      return answer.kind === 'updated' || lossReason(answer.item, this.grant) === 'released';
    });
  }

  /** True once a commit or a release has ended it. */
  get isEnded(): boolean {
    return this.#ended;
  }

  /** The lease ended with a commit or a release: no more renewals, no loss will be told. */
  end(): void {
    this.#ended = true;
    this.#cancelWatchdog();
  }

  /** A fenced write was refused: the item says who holds it now. */
  lose(item: Item | undefined): LeaseLostError {
    const reason = lossReason(item, this.grant);
    this.#lostTo ??= item;
    return this.#abort(new LeaseLostError(reason, this.grant, tokenOf(item)));
  }

  async #renewWhileValid(): Promise<void> {
    for (let attempt = 1; !this.#ended && !this.#loss.signal.aborted; attempt += 1) {
      const remainingMs = this.remainingMs();
      if (remainingMs <= 0) return;
      const { heartbeatMs } = this.#deps.lease;
      const outcome = await this.#renewOnce(Math.max(50, Math.min(heartbeatMs, remainingMs / 3)));
      if (outcome !== 'try again') return;
      const delayMs = fullJitterMs(attempt, RENEW_BACKOFF, this.#deps.random);
      await sleep(this.#deps.clock, delayMs, this.#loss.signal).catch(() => undefined);
    }
  }

  #renewOnce(timeoutMs: number): Promise<'settled' | 'try again'> {
    const beat = (): Promise<'settled' | 'try again'> => this.#sendBeat(timeoutMs);
    return this.#deps.beatTurn === undefined ? beat() : this.#deps.beatTurn(beat);
  }

  async #sendBeat(timeoutMs: number): Promise<'settled' | 'try again'> {
    // It may have been lost while it waited for its turn.
    if (this.#ended || this.#loss.signal.aborted) return 'settled';
    const { target, clock, lease } = this.#deps;
    const sentAt = instantOf(clock);
    const timeout = new AbortController();
    this.#beatUnderWay = timeout;
    const cancelTimeout = clock.schedule(() => {
      timeout.abort();
    }, timeoutMs);
    try {
      const answer: UpdateAnswer = await conditionalUpdate(target, {
        key: this.grant.key,
        change: retained(renewChange(sentAt.wallMs, lease.leaseMs), this.#deps),
        condition: heldBy(this.grant),
        signal: timeout.signal,
      });
      if (answer.kind === 'updated') this.renewedBy(sentAt);
      else if (!this.#ended) this.lose(answer.item);
      return 'settled';
    } catch (error) {
      // A time-out of our own arrives as an abort. A lost answer is harmless: the same beat may be applied twice.
      const fault = toBackendError(error);
      if (timeout.signal.aborted || fault.retryable) return 'try again';
      if (!this.#ended) this.#watcher?.beatRefused(fault);
      return 'settled';
    } finally {
      cancelTimeout();
      this.#beatUnderWay = undefined;
    }
  }

  /** After a pause, exactly one renewal: it succeeds when nobody took over, and then the fence was never broken. */
  async #decide(): Promise<void> {
    if (this.#ended || this.#loss.signal.aborted || this.remainingMs() > 0) return;
    if (this.#deps.onStall !== 'abort') await this.#renewOnce(this.#deps.lease.heartbeatMs);
    if (this.remainingMs() <= 0) this.#abort(new LeaseLostError('deadline', this.grant));
  }

  #armWatchdog(): void {
    this.#cancelWatchdog();
    if (this.#ended || this.#loss.signal.aborted) return;
    const { clock } = this.#deps;
    const remainingMs = this.remainingMs();
    const armedAt = instantOf(clock);
    const onDue = (): void => {
      if (this.#ended) return;
      const now = instantOf(clock);
      const lateMs = Math.max(now.monoMs - armedAt.monoMs, now.wallMs - armedAt.wallMs) - remainingMs;
      if (lateMs > STALL_MS) this.#watcher?.stalled(lateMs);
      if (this.remainingMs() > 0) this.#armWatchdog();
      else if (lateMs > STALL_MS) void this.exclusively(() => this.#decide());
      else this.#abort(new LeaseLostError('deadline', this.grant));
    };
    this.#cancelWatchdog = clock.schedule(onDue, remainingMs, { background: true });
  }

  #abort(error: LeaseLostError): LeaseLostError {
    this.#cancelWatchdog();
    if (!this.#ended) this.#loss.abort(error);
    // A beat that may hang until its time-out would keep a last release waiting.
    this.#beatUnderWay?.abort();
    return error;
  }
}
