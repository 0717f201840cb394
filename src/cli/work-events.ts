/** What `work --json` prints: one line when a delivery begins, one when it ended. The demo and users read them. */
import { createHash } from 'node:crypto';
import { z } from 'zod';
import type { DeliveryReport } from '../workers/events.ts';
import type { Delivery } from '../workers/delivery.ts';

export type WorkEvent =
  | { readonly event: 'ready'; readonly worker: string }
  | { readonly event: 'delivery'; readonly worker: string; readonly messageId: string; readonly receiveCount: number }
  | {
      readonly event: 'outcome';
      readonly worker: string;
      readonly messageId: string;
      readonly receiveCount: number;
      readonly key?: string | undefined;
      readonly outcome: string;
      readonly attempt?: number | undefined;
      readonly takenOver?: boolean | undefined;
      /** A digest of the answer, the same for every delivery of a key. */
      readonly answer?: string | undefined;
      readonly reason?: string | undefined;
      readonly durationMs: number;
    };

export const workEventSchema: z.ZodType<WorkEvent> = z.discriminatedUnion('event', [
  z.object({ event: z.literal('ready'), worker: z.string() }),
  z.object({ event: z.literal('delivery'), worker: z.string(), messageId: z.string(), receiveCount: z.number() }),
  z.object({
    event: z.literal('outcome'),
    worker: z.string(),
    messageId: z.string(),
    receiveCount: z.number(),
    key: z.string().optional(),
    outcome: z.string(),
    attempt: z.number().optional(),
    takenOver: z.boolean().optional(),
    answer: z.string().optional(),
    reason: z.string().optional(),
    durationMs: z.number(),
  }),
]);

export function deliveryEvent(worker: string, delivery: Delivery): WorkEvent {
  return { event: 'delivery', worker, messageId: delivery.messageId, receiveCount: delivery.receiveCount };
}

export function outcomeEvent(worker: string, report: DeliveryReport): WorkEvent {
  const { delivery, key, outcome, durationMs } = report;
  return {
    event: 'outcome',
    worker,
    messageId: delivery.messageId,
    receiveCount: delivery.receiveCount,
    ...(key !== undefined && { key }),
    outcome: outcome.kind,
    ...('attempt' in outcome && { attempt: outcome.attempt }),
    ...('takenOver' in outcome && { takenOver: outcome.takenOver }),
    ...answerOf(report),
    ...('reason' in outcome && { reason: outcome.reason }),
    ...('error' in outcome && { reason: outcome.error }),
    durationMs,
  };
}

function answerOf({ outcome }: DeliveryReport): { answer?: string } {
  switch (outcome.kind) {
    case 'completed':
      return { answer: digest({ status: 'COMPLETED', response: outcome.response }) };
    case 'rejected':
      return { answer: digest({ status: 'REJECTED', reason: outcome.reason }) };
    case 'replayed':
      return { answer: digest(outcome.answer) };
    case 'conflict':
    case 'busy':
    case 'retry':
    case 'exhausted':
    case 'invalid':
    case 'lost':
      return {};
  }
}

function digest(answer: unknown): string {
  return createHash('sha256').update(JSON.stringify(answer)).digest('hex').slice(0, 16);
}

export function eventText(event: WorkEvent): string {
  if (event.event === 'ready') return `${event.worker}: ready`;
  if (event.event === 'delivery') return `${event.worker}: received ${event.messageId}`;
  const details = [
    event.attempt === undefined ? '' : `attempt ${String(event.attempt)}`,
    event.takenOver === true ? 'taken over' : '',
    event.reason ?? '',
    `${String(event.durationMs)} ms`,
  ].filter((detail) => detail !== '');
  return `${event.outcome.padEnd(9)}  ${event.key ?? event.messageId}  ${details.join(', ')}`;
}
