/**
 * An operator's word on a step of which nobody could tell whether it was done. Only while nobody works on the key: what
 * is said here must not race with an attempt.
 */
import { all, attributeAbsent, equals } from '../conditions.ts';
import { repeatedUpdate, type UpdateTarget } from '../conditional-update.ts';
import type { Clock, Random } from '../../clock.ts';
import { ConfigurationError } from '../../errors.ts';
import type { Change } from '../expressions.ts';
import { effectRecordKey, type Item } from '../table.ts';
import { MAX_STORED_BYTES, toStored } from './stored-value.ts';

export interface StepResolution {
  readonly queue: string;
  readonly key: string;
  readonly step: string;
  readonly verdict:
    /** It was done, and this is what its call would have returned. The next attempt goes on with it. */
    | { readonly kind: 'done'; readonly result: unknown }
    /** It was not done. The next attempt makes the call. */
    | { readonly kind: 'notDone' };
}

export type ResolveAnswer =
  | { readonly kind: 'resolved'; readonly item: Item }
  | { readonly kind: 'absent' }
  /** Nothing is open: the effect was applied or rejected. */
  | { readonly kind: 'finished'; readonly status: string }
  /** Somebody works on it, or crashed at it and the lease was not taken over yet. */
  | { readonly kind: 'running'; readonly holder: string };

/** @throws {ConfigurationError} when the result is too large to be kept whole: a digest would help nobody. */
export async function resolveStep(
  deps: { readonly target: UpdateTarget; readonly clock: Clock; readonly random: Random },
  resolution: StepResolution,
): Promise<ResolveAnswer> {
  const answer = await repeatedUpdate(deps, {
    key: effectRecordKey(resolution.queue, resolution.key),
    change: changeOf(resolution),
    condition: all(equals('status', 'FAILED'), attributeAbsent('owner')),
  });
  if (answer.kind === 'updated') return { kind: 'resolved', item: answer.item };
  if (answer.item === undefined) return { kind: 'absent' };
  const status = String(answer.item['status']);
  return status === 'IN_PROGRESS'
    ? { kind: 'running', holder: String(answer.item['holder']) }
    : { kind: 'finished', status };
}

function changeOf({ step, verdict }: StepResolution): Change {
  const settled = ['unknownStep', `startedSteps.${step}`];
  // Whether a doubt is about this call or another is not known: who says "not done" vouches for the whole record.
  if (verdict.kind === 'notDone') return { remove: [...settled, 'inDoubtSinceMs'] };
  const stored = toStored(verdict.result);
  if (!('json' in stored)) {
    const rule = `at most ${String(MAX_STORED_BYTES)} bytes as JSON`;
    throw new ConfigurationError('resolve', [{ name: 'result', rule, value: stored.bytes }]);
  }
  return { set: { [`steps.${step}`]: stored }, remove: settled };
}
