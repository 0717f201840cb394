/** What an effect record keeps about the steps of its handler: that one began, and what came of it. All under the fence. */
import type { Clock, Random } from '../../clock.ts';
import { repeatedUpdate, type UpdateTarget } from '../conditional-update.ts';
import type { Change } from '../expressions.ts';
import type { HeldLease } from '../leases/held-lease.ts';
import { heldBy } from '../leases/lease-grant.ts';
import type { StepBudget } from './step-budget.ts';
import { toStored } from './stored-value.ts';

/** What was kept of a step's result: all of it, its digest, or nothing for want of room. */
export type Kept = 'whole' | 'digest' | 'nothing';

/** What the steps need of a claimed effect. */
export interface StepHolder {
  readonly lease: HeldLease;
  readonly stepBudget: StepBudget;
}

export interface StepRecords {
  /**
   * Remembers a step's result, so that a later attempt does not repeat the step. Results of more than 64 KiB, and all
   * that would make the results of one record exceed 300 KiB, are not kept whole: those steps are repeated.
   * @throws {LeaseLostError} @throws {UnstorableValueError} when the result has no JSON.
   */
  storeStep(effect: StepHolder, step: string, result: unknown): Promise<Kept>;
  /**
   * Marks that a step begins, before its call leaves: for calls that must not be repeated. @throws {LeaseLostError}
   */
  startStep(effect: StepHolder, step: string): Promise<void>;
  /** Takes the mark off: the outside system has refused, and nothing happened. @throws {LeaseLostError} */
  unstartStep(effect: StepHolder, step: string): Promise<void>;
}

export function createStepRecords(deps: {
  readonly target: UpdateTarget;
  readonly clock: Clock;
  readonly random: Random;
}): StepRecords {
  async function updateHeld({ lease }: StepHolder, change: Change): Promise<void> {
    const answer = await repeatedUpdate(deps, { key: lease.grant.key, change, condition: heldBy(lease.grant) });
    if (answer.kind === 'refused') throw lease.lose(answer.item);
  }

  return {
    async storeStep(effect, step, result) {
      const wanted = toStored(result);
      await effect.lease.ensureHeld();
      const stored = effect.stepBudget.take(step, wanted);
      if (stored === undefined) return 'nothing';
      await updateHeld(effect, { set: { [`steps.${step}`]: stored } });
      return 'json' in stored ? 'whole' : 'digest';
    },
    async startStep(effect, step) {
      await effect.lease.ensureHeld();
      await updateHeld(effect, { set: { [`startedSteps.${step}`]: deps.clock.nowMs() } });
    },
    async unstartStep(effect, step) {
      await effect.lease.ensureHeld();
      await updateHeld(effect, { remove: [`startedSteps.${step}`] });
    },
  };
}
