/** What the steps of a delivery are given. */
import type { DirectEffects } from '../store/effects/direct-effect.ts';
import type { EffectRecords } from '../store/effects/effect-record.ts';
import type { Acknowledger } from './acknowledger.ts';
import type { DeadLetters } from './dead-letter.ts';
import type { Delivery } from './delivery.ts';
import type { ResolvedWorkerOptions } from './options.ts';

/** Made once per worker. */
export interface PipelineDependencies {
  readonly options: ResolvedWorkerOptions;
  readonly effects: EffectRecords;
  readonly directEffects: DirectEffects;
  readonly acknowledger: Acknowledger;
  readonly deadLetters: DeadLetters;
}

export interface WorkContext {
  readonly delivery: Delivery;
  readonly deps: PipelineDependencies;
  /** Told of the handler's promise: it may go on long after the delivery has its outcome. */
  readonly onHandler: (running: Promise<unknown>) => void;
}
