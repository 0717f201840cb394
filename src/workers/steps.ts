/** Calls to outside systems: done once as far as the outside system helps, and honest where it does not. */
import { createHash } from 'node:crypto';
import { isoTime, type Clock } from '../clock.ts';
import { ConfigurationError, OnlyonceError } from '../errors.ts';
import type { ClaimedEffect, EffectRecords } from '../store/effects/effect-record.ts';
import type { StepCall, StepOptions } from './handler.ts';

/** Nobody can tell whether the outside call was made: an operator must look. */
export class StepUnknownError extends OnlyonceError {
  readonly code = 'STEP_UNKNOWN';
  readonly retryable = false;

  constructor(step: string, inDoubtSinceMs: number) {
    const since = isoTime(inDoubtSinceMs);
    super(
      `step "${step}": a call made since ${since} may have gone through, and its idempotency key is forgotten by now`,
    );
  }
}

export interface Steps {
  run<Result>(name: string, options: StepOptions, call: (call: StepCall) => Promise<Result>): Promise<Result>;
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

  return {
    get isInDoubt() {
      // The doubt that earlier attempts left stays: nothing that this one did tells which of the calls was meant.
      return openCalls > 0 || effect.inDoubtSinceMs !== undefined;
    },
    async run<Result>(name: string, step: StepOptions, call: (call: StepCall) => Promise<Result>): Promise<Result> {
      checkName(name, seen);
      const stored = effect.stepResult(name);
      // What was stored is what an earlier attempt of this very code returned, through JSON.
      if (stored !== undefined && 'json' in stored) return JSON.parse(stored.json) as Result;

      const sinceMs = effect.inDoubtSinceMs;
      if (sinceMs !== undefined && clock.nowMs() - sinceMs > step.idempotentForMs - WINDOW_MARGIN_MS) {
        throw new StepUnknownError(name, sinceMs);
      }
      await effect.lease.ensureHeld();
      openCalls += 1;
      const result = await call({ idempotencyKey: stepKey(options.queue, options.key, name), signal: options.signal });
      const kept = await effects.storeStep(effect, name, result);
      // A result that was too large to keep must be asked for again, and only while its key is remembered.
      if (kept === 'whole') openCalls -= 1;
      // Through JSON also the first time, so that the handler sees no difference when it is run again.
      return JSON.parse(JSON.stringify(result ?? null)) as Result;
    },
  };
}

/** Names the effect of a key for outside systems, the same for every delivery of it. */
export function keyOfEffect(queue: string, key: string): string {
  return stepKey(queue, key, '');
}

/** A digest: keys may hold anything and be long, and providers take about 255 plain characters. */
function stepKey(queue: string, key: string, step: string): string {
  // Lengths in front, so that no two different triples are written alike.
  const parts = [queue, key, step].map((part) => `${String(part.length)}:${part}`).join('|');
  return `onlyonce-${createHash('sha256').update(parts).digest('hex')}`;
}

function checkName(name: string, seen: Set<string>): void {
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
