/** Calls to outside systems: done once as far as the outside system helps, and honest where it does not. */
import { isoTime, type Clock } from '../clock.ts';
import { ConfigurationError, OnlyonceError } from '../errors.ts';
import type { ClaimedEffect, EffectRecords } from '../store/effects/effect-record.ts';
import { idempotencyKeyOf } from '../store/effects/idempotency-key.ts';
import type { StepCall, StepOptions } from './handler.ts';

/** Nobody can tell whether the outside call was made: an operator must look. */
export class StepUnknownError extends OnlyonceError {
  readonly code = 'STEP_UNKNOWN';
  readonly retryable = false;
  readonly step: string;

  constructor(step: string, inDoubtSinceMs: number, why: string) {
    super(`step "${step}": a call made since ${isoTime(inDoubtSinceMs)} may have gone through, and ${why}`);
    this.step = step;
  }
}

/** Thrown by a step's call: the outside system has refused, and surely nothing happened there. */
export class StepRefused extends OnlyonceError {
  readonly code = 'STEP_REFUSED';
  readonly retryable = true;

  constructor(reason: string, options: { readonly cause?: unknown } = {}) {
    super(reason, options);
  }
}

export interface Steps {
  run<Result>(name: string, call: (call: StepCall) => Promise<Result>, options?: StepOptions<Result>): Promise<Result>;
  /** True when a call was made, now or in an earlier attempt, whose result may not be stored. */
  readonly isInDoubt: boolean;
}

export interface StepsOptions {
  readonly effects: EffectRecords;
  readonly effect: ClaimedEffect;
  readonly queue: string;
  readonly key: string;
  readonly signal: AbortSignal;
  readonly clock: Clock;
}

const STEP_NAME = /^[a-z][a-z0-9-]{0,63}$/;

/** Calls may still be on their way when the window ends; and clocks differ. */
const WINDOW_MARGIN_MS = 300_000;

export function createSteps(options: StepsOptions): Steps {
  const { effects, effect, clock } = options;
  const seen = new Set<string>();
  let openCalls = 0;

  /** Since when it is in doubt whether this step was done, where repeating its call could do it twice. */
  function doubtOf(name: string, { idempotentForMs }: StepOptions<unknown>): number | undefined {
    if (idempotentForMs === undefined) return effect.stepStartedAtMs(name);
    const sinceMs = effect.inDoubtSinceMs;
    const isForgotten = sinceMs !== undefined && clock.nowMs() - sinceMs > idempotentForMs - WINDOW_MARGIN_MS;
    return isForgotten ? sinceMs : undefined;
  }

  async function keep<Result>(name: string, result: Result): Promise<Result> {
    openCalls += 1;
    const kept = await effects.storeStep(effect, name, result);
    // A result that was too large to keep must be asked for again, and only while its key is remembered.
    if (kept === 'whole') openCalls -= 1;
    // Through JSON also the first time, so that the handler sees no difference when it is run again.
    return JSON.parse(JSON.stringify(result ?? null)) as Result;
  }

  async function make<Result>(name: string, make_: () => Promise<Result>, isMarked: boolean): Promise<Result> {
    await effect.lease.ensureHeld();
    if (isMarked) await effects.startStep(effect, name);
    openCalls += 1;
    try {
      return await make_();
    } catch (error) {
      if (!(error instanceof StepRefused)) throw error;
      if (isMarked) await effects.unstartStep(effect, name);
      openCalls -= 1;
      // It may be tried again by the same attempt: nothing has happened.
      seen.delete(name);
      throw error;
    }
  }

  return {
    get isInDoubt() {
      // The doubt that earlier attempts left stays: nothing that this one did tells which of the calls was meant.
      return openCalls > 0 || effect.inDoubtSinceMs !== undefined;
    },
    async run<Result>(name: string, call: (call: StepCall) => Promise<Result>, step: StepOptions<Result> = {}) {
      checkStep(name, step, seen);
      const stored = effect.stepResult(name);
      // What was stored is what an earlier attempt of this very code returned, through JSON.
      if (stored !== undefined && 'json' in stored) return JSON.parse(stored.json) as Result;
      const given = { idempotencyKey: idempotencyKeyOf(options.queue, options.key, name), signal: options.signal };
      const sinceMs = doubtOf(name, step);
      if (sinceMs !== undefined) {
        const answer = (await step.reconcile?.(given)) ?? { kind: 'unknown' };
        if (answer.kind === 'done') return keep(name, answer.result);
        if (answer.kind !== 'notDone') throw new StepUnknownError(name, sinceMs, whyUnknown(step));
      }
      const result = await make(name, () => call(given), step.idempotentForMs === undefined);
      openCalls -= 1;
      return keep(name, result);
    },
  };
}

function whyUnknown({ reconcile, idempotentForMs }: StepOptions<unknown>): string {
  if (reconcile !== undefined) return 'the outside system cannot tell';
  return idempotentForMs === undefined ? 'it may not be repeated' : 'its idempotency key is forgotten by now';
}

function checkStep(name: string, { idempotentForMs }: StepOptions<unknown>, seen: Set<string>): void {
  if (idempotentForMs !== undefined && !(idempotentForMs > 0)) {
    throw new ConfigurationError('step', [{ name: 'idempotentForMs', rule: 'ms, above 0', value: idempotentForMs }]);
  }
  if (!STEP_NAME.test(name)) {
    throw new ConfigurationError('step', [
      { name: 'name', rule: 'small letters, digits and -, at most 64', value: name },
    ]);
  }
  if (seen.has(name)) {
    throw new ConfigurationError('step', [{ name: 'name', rule: 'used once per handler', value: name }]);
  }
  seen.add(name);
}
