import { conditions, type Handler, type StepCall } from '../src/index.ts';
import { POINTS_EARNED, type PointsEarned } from './contract.ts';

/** What the outside system offers: it answers a repeated key with its first answer for 24 hours. */
export interface Mailer {
  send(memberId: string, text: string, call: StepCall): Promise<{ readonly mailId: string }>;
}

export function createMailHandler(mailer: Mailer): Handler<PointsEarned> {
  return {
    contract: POINTS_EARNED,
    async handle({ payload: { purchaseId, memberId, points } }, context) {
      // Made once per key as far as the mailer helps: `call.idempotencyKey` is the same for every attempt, and the
      // result is stored, so that a later attempt does not ask again.
      const { mailId } = await context.step(
        'mail',
        (call) => mailer.send(memberId, `${String(points)} points for you`, call),
        { idempotentForMs: 86_400_000 },
      );
      const item = { PK: `MEMBER#${memberId}`, SK: `MAIL#${purchaseId}`, mailId };
      const effects = [{ kind: 'put' as const, label: 'mail', item, condition: conditions.absent() }];
      return { kind: 'completed', response: { mailId }, effects };
    },
  };
}
