/**
 * Effects that happen once per key, for people without a queue: HTTP handlers, cron jobs, scripts.
 * The same effect record, the same lease and the same fence as for a message.
 *
 *   claim -> fn, under a lease that renews itself -> commit: record and `commitWith`, all or nothing
 *
 * One request to claim and one to commit. A caller who comes back is answered by the claim itself.
 */
import type { Clock, Random } from '../../clock.ts';
import { BackendError, ConfigurationError, messageOf, OnlyonceError } from '../../errors.ts';
import { idempotencyKeyOf } from './idempotency-key.ts';
import { orAborted } from '../../or-aborted.ts';
import { keepAlive } from '../leases/keep-alive.ts';
import type { LeaseOptions } from '../leases/lease-options.ts';
import { checkShapes, type TransactionAction } from '../transactions/transaction.ts';
import {
  checkedCall,
  resolveEffectCallOptions,
  type EffectCallOptions,
  type ResolvedEffectCallOptions,
} from './effect-call-options.ts';
import type { Claim, ClaimedEffect, EffectRecords } from './effect-record.ts';
import { isStoredDigest, jsonOf, MAX_STORED_BYTES } from './stored-value.ts';

export type { EffectCallOptions } from './effect-call-options.ts';

/** What the work of an effect call knows and may do, for the time of one attempt. */
export interface EffectCallContext {
  /** Aborts when the lease is lost, another may be at work then; and when the caller's own signal does. */
  readonly signal: AbortSignal;
  /** From 1. */
  readonly attempt: number;
  /** The same for each attempt at this key: for providers that know idempotency keys. */
  readonly idempotencyKey: string;
  /** Grows with each grant: for systems that can refuse an older one. */
  readonly fencingToken: number;
  /** True when the attempt before this one crashed or was cut off: an outside call of it may have gone through. */
  readonly takenOver: boolean;
  /**
   * Since when an outside call may have gone through unnoticed: the start of the first attempt that did not complete,
   * whether it crashed, was cut off or threw. Repeat the call under the same `idempotencyKey` only while the provider
   * remembers keys for longer than this; later, ask the provider. Undefined when there was no such attempt. Unit: ms
   * since the epoch.
   */
  readonly inDoubtSinceMs: number | undefined;
  /**
   * Adds a write to the transaction that completes the record.
   * @throws {ConfigurationError} once `fn` has ended: the write would not be made; and for what is no action, such as a
   * list of them.
   */
  readonly commitWith: (...actions: readonly TransactionAction[]) => void;
}

/**
 * What a call under a key came to. Of all calls with one key, one at most is `completed` as long as its record is kept.
 */
export type EffectAnswer<Response> =
  /** Done now. The response has passed through JSON, as every later answer will. */
  | { readonly kind: 'completed'; readonly response: Response }
  /** Done before: the stored response, or its digest when it was too large to keep. */
  | { readonly kind: 'replayed'; readonly response: Response }
  | { readonly kind: 'replayedDigest'; readonly sha256: string; readonly bytes: number }
  /** Another is at work: answer 409 or 425 with Retry-After. By then it has finished, or its lease is over. From 1. */
  | { readonly kind: 'inProgress'; readonly holder: string; readonly retryAfterMs: number }
  /** The key was used with another payload: answer 422. Nothing was done. */
  | { readonly kind: 'conflict'; readonly recordedHash: string; readonly payloadHash: string };

/** What one call brings along, besides its key and its work. */
export interface EffectCallSettings {
  /**
   * What this request asks for, compared with what the key was first used with. Anything with JSON; the order of fields
   * does not matter. Without it, here or then, nothing is compared.
   */
  readonly payload?: unknown;
  /** Reaches `fn` as `context.signal`. When it has aborted before `fn` could start, its reason is thrown. */
  readonly signal?: AbortSignal;
}

/** Effects that happen once per key of a scope: `const effect = createOnlyonceEffect(store, { scope })`. */
export interface EffectCall {
  /**
   * Runs `fn` once per key, or answers what became of it.
   * @param key 1 to 512 bytes, no control characters.
   * @throws what `fn` throws, unchanged: nothing was written, and the next call tries again. Throw only when nothing was
   * done outside, or when it may be repeated under the same `idempotencyKey`.
   * @throws {ConfigurationError} when `fn` is no function; nothing was sent.
   * @throws {InvalidMessageError} when key or payload cannot be used; nothing was sent.
   * @throws {LeaseLostError} when the lease was lost: another may be at work, and nothing was written by this call.
   * @throws {TransactionCancelledError} when the condition of a `commitWith` action failed: nothing was written.
   * @throws {ResponseTooLargeError} @throws {UnstorableValueError} before the commit: nothing was written.
   * @throws {BackendError} with reason `ambiguous` when it cannot be told whether the commit landed: call again with the
   * same key, the record knows.
   */
  <Response>(
    key: string,
    fn: (context: EffectCallContext) => Promise<Response> | Response,
    settings?: EffectCallSettings,
  ): Promise<EffectAnswer<Response>>;
}

/** What of the store an effect call needs; a `Store` has it all. */
export interface EffectCallStore {
  readonly clock: Clock;
  readonly random: Random;
  readonly recordRetentionDays: number;
  effectRecords(options?: LeaseOptions): EffectRecords;
}

/** The response does not fit into the record, and was to be refused then. Nothing was written. */
export class ResponseTooLargeError extends OnlyonceError {
  readonly code = 'RESPONSE_TOO_LARGE';
  readonly retryable = false;
  readonly bytes: number;
  readonly maxBytes: number = MAX_STORED_BYTES;

  constructor(bytes: number) {
    super(`a response of ${String(bytes)} bytes; at most ${String(MAX_STORED_BYTES)} can be kept`);
    this.bytes = bytes;
  }
}

/** For all tries to give a record back. Its lease ends by itself if none succeeds. Unit: ms. */
const RELEASE_LIMIT_MS = 5_000;

/** Callers who are told to wait for one lease do not all come back at once. Unit: ms. */
const MIN_SPREAD_MS = 500;

interface CallParts {
  readonly store: EffectCallStore;
  readonly effects: EffectRecords;
  readonly options: ResolvedEffectCallOptions;
}

/** @throws {ConfigurationError} listing every wrong option. */
export function createOnlyonceEffect(store: EffectCallStore, options: EffectCallOptions): EffectCall {
  const resolved = resolveEffectCallOptions(options, store.recordRetentionDays);
  const parts: CallParts = { store, options: resolved, effects: store.effectRecords(resolved.lease) };

  return async (key, fn, { payload, signal } = {}) => {
    const { payloadHash } = checkedCall(key, payload);
    refuseNoFunction(fn);
    signal?.throwIfAborted();
    const { queue, holder } = resolved;
    const claim = await parts.effects.claim({ queue, key, payloadHash, holder });
    if (claim.kind !== 'claimed') return answerOf(claim, { payloadHash, random: store.random });
    const idempotencyKey = idempotencyKeyOf(queue, key);
    return new Attempt(parts, claim.effect, { idempotencyKey, signal }).run(fn);
  };
}

/** A promise without a function to follow is kept all the same: the key would be completed, and nothing done. */
function refuseNoFunction(fn: unknown): void {
  if (typeof fn === 'function') return;
  throw new ConfigurationError('effect call', [{ name: 'fn', rule: 'a function', value: fn }]);
}

/** One claimed key: works, commits, and gives the record back whatever happens. */
class Attempt {
  readonly #parts: CallParts;
  readonly #effect: ClaimedEffect;
  readonly #caller: { readonly idempotencyKey: string; readonly signal: AbortSignal | undefined };
  readonly #actions: TransactionAction[] = [];
  #phase: 'not started' | 'working' | 'ended' = 'not started';

  constructor(
    parts: CallParts,
    effect: ClaimedEffect,
    caller: { readonly idempotencyKey: string; readonly signal: AbortSignal | undefined },
  ) {
    this.#parts = parts;
    this.#effect = effect;
    this.#caller = caller;
  }

  async run<Response>(
    fn: (context: EffectCallContext) => Promise<Response> | Response,
  ): Promise<EffectAnswer<Response>> {
    const { options, effects, store } = this.#parts;
    const { clock, random } = store;
    const { lease } = this.#effect;
    const { heartbeatMs } = options.lease;
    const beats = keepAlive({ lease, heartbeatMs, maxHoldMs: options.maxHoldMs, clock, random });
    try {
      this.#caller.signal?.throwIfAborted();
      const json = this.#checked(await this.#work(fn));
      // What is committed is what this caller gets too: a response may change while it is on its way.
      const verdict = { status: 'COMPLETED', response: JSON.parse(json) as unknown, effects: this.#actions } as const;
      await effects.commit(this.#effect, verdict, lease.signal);
      // Through JSON it is what a later caller reads; that it still fits the type is the promise of who wrote `fn`.
      return { kind: 'completed', response: JSON.parse(json) as Response };
    } catch (error) {
      // Whoever lost the lease touches nothing: the record is another's by now, or free when its time is over. But a
      // commit without an answer is not said to have written nothing.
      if (!isOpen(error)) lease.signal.throwIfAborted();
      await this.#giveBack(error);
      throw error;
    } finally {
      await beats.stop();
    }
  }

  async #work<Response>(fn: (context: EffectCallContext) => Promise<Response> | Response): Promise<Response> {
    const { signal } = this.#effect.lease;
    this.#phase = 'working';
    try {
      // Starts in a turn of its own: an `fn` that throws at once must not skip the release.
      const running = Promise.resolve(this.#context()).then(fn);
      // An `fn` that ignores its signal is not waited for; what it returns later is not committed.
      return await orAborted(running, signal);
    } finally {
      this.#phase = 'ended';
    }
  }

  #context(): EffectCallContext {
    const { lease, attempt, takenOver, inDoubtSinceMs } = this.#effect;
    const { idempotencyKey, signal } = this.#caller;
    return {
      signal: signal === undefined ? lease.signal : AbortSignal.any([lease.signal, signal]),
      attempt,
      idempotencyKey,
      fencingToken: lease.grant.fencingToken,
      takenOver,
      inDoubtSinceMs,
      commitWith: (...actions) => {
        if (this.#phase !== 'working') {
          const rule = 'called before fn has ended';
          throw new ConfigurationError('effect call', [{ name: 'commitWith', rule, value: actions.length }]);
        }
        checkShapes(actions);
        this.#actions.push(...actions);
      },
    };
  }

  /** The response as JSON that can be committed. */
  #checked(response: unknown): string {
    const json = jsonOf(response);
    const bytes = Buffer.byteLength(json);
    if (bytes > MAX_STORED_BYTES && this.#parts.options.largeResponse === 'refuse')
      throw new ResponseTooLargeError(bytes);
    return json;
  }

  /** Frees the record for the next attempt, within a bound. What went wrong before is the error, not this. */
  async #giveBack(error: unknown): Promise<void> {
    const { store, effects } = this.#parts;
    const limit = new AbortController();
    const cancel = store.clock.schedule(() => {
      limit.abort();
    }, RELEASE_LIMIT_MS);
    // Once `fn` has run, only its author knows what it did outside.
    const inDoubt = this.#phase !== 'not started' || this.#effect.inDoubtSinceMs !== undefined;
    const failure = { error: textOf(error), inDoubt, startAfresh: false };
    await effects.release(this.#effect, failure, limit.signal).catch(() => false);
    cancel();
  }
}

function answerOf<Response>(
  claim: Exclude<Claim, { kind: 'claimed' }>,
  call: { readonly payloadHash: string | undefined; readonly random: Random },
): EffectAnswer<Response> {
  switch (claim.kind) {
    case 'completed': {
      const { response } = claim;
      if (isStoredDigest(response)) return { kind: 'replayedDigest', sha256: response.sha256, bytes: response.bytes };
      // What an earlier call of this scope and key returned, through JSON.
      return { kind: 'replayed', response: response as Response };
    }
    case 'conflict':
      return { kind: 'conflict', recordedHash: claim.recordedHash, payloadHash: call.payloadHash ?? '' };
    case 'busy': {
      const spreadMs = call.random() * Math.max(MIN_SPREAD_MS, claim.waitMs / 10);
      return {
        kind: 'inProgress',
        holder: claim.holder,
        retryAfterMs: Math.max(1, Math.ceil(claim.waitMs + spreadMs)),
      };
    }
    case 'rejected': {
      const message = `the key is REJECTED (${claim.reason}), which no effect call writes`;
      throw new BackendError(message, { reason: 'unknown', retryable: false });
    }
  }
}

/** True when a request may have been applied although it failed. */
function isOpen(error: unknown): boolean {
  return error instanceof BackendError && (error.reason === 'ambiguous' || error.reason === 'inProgress');
}

/** Anything can be thrown, also what has no text. */
function textOf(error: unknown): string {
  try {
    return messageOf(error);
  } catch {
    return typeof error;
  }
}
