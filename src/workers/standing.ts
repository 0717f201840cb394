/** What stands in the way of a key, as the outcome of the delivery that met it. Pure. */
import type { Message } from '../messages/contract.ts';
import type { Standing } from '../store/effects/direct-effect.ts';
import type { Outcome } from './outcome.ts';

export function standingOutcome(standing: Standing, message: Message): Outcome {
  switch (standing.kind) {
    case 'completed':
      return { kind: 'replayed', answer: { status: 'COMPLETED', response: standing.response } };
    case 'rejected':
      return { kind: 'replayed', answer: { status: 'REJECTED', reason: standing.reason } };
    case 'conflict':
      return { kind: 'conflict', payloadHash: message.payloadHash, recordedHash: standing.recordedHash };
    case 'busy':
      return standing;
  }
}
