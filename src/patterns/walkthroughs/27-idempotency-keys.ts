/** A caller that repeats a request gets the first answer again, and its card is charged once. */
import { createOnlyonceEffect, type EffectAnswer } from '../../store/effects/effect-call.ts';
import type { Json } from '../expected.ts';
import type { Pattern, Scene } from '../pattern.ts';

export const idempotencyKeys: Pattern = {
  number: 27,
  title: 'Idempotency keys',
  summary: 'a repeated request is answered from its record; the effect happens once',
  expected: {
    firstCall: { kind: 'completed', response: { chargeId: 'ch_1', amount: 50 } },
    sameKeyAgain: { kind: 'replayed', response: { chargeId: 'ch_1', amount: 50 } },
    newKey: { kind: 'completed', response: { chargeId: 'ch_2', amount: 20 } },
    charges: [50, 20],
  },
  run,
};

interface ChargeAnswer {
  readonly chargeId: string;
  readonly amount: number;
}

async function run(scene: Scene): Promise<void> {
  const once = createOnlyonceEffect(scene.store, { scope: 'payments' });
  /** Stands for the payment provider. */
  const charges: number[] = [];
  const charge = (amount: number): ChargeAnswer => {
    charges.push(amount);
    return { chargeId: `ch_${String(charges.length)}`, amount };
  };
  const pay = (key: string, amount: number): Promise<EffectAnswer<ChargeAnswer>> =>
    once(key, () => charge(amount), { payload: { amount }, signal: scene.signal });

  await scene.step({ heading: 'The first call', result: 'firstCall' }, () => pay('req-123', 50));
  await scene.step({ heading: 'The caller repeats it with the same key', result: 'sameKeyAgain' }, () =>
    pay('req-123', 50),
  );
  await scene.step({ heading: 'A new key', result: 'newKey' }, () => pay('req-456', 20));
  await scene.step({ heading: 'What was charged by the three calls', result: 'charges' }, () =>
    Promise.resolve<Json>(charges),
  );
}
