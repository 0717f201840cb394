/** What a worker tells about its work. Listeners that throw do no harm. */
import type { Delivery } from './delivery.ts';
import type { Outcome } from './outcome.ts';

export interface DeliveryReport {
  readonly delivery: Delivery;
  /** Undefined when the message could not be read. */
  readonly key: string | undefined;
  readonly outcome: Outcome;
  readonly durationMs: number;
}

export interface WorkerEvents {
  /** A message was received and is about to be worked on. */
  readonly onDelivery?: (delivery: Delivery) => void;
  /** A delivery ended, and its message is settled. */
  readonly onOutcome?: (report: DeliveryReport) => void;
  readonly onReceiveFailed?: (error: Error, nextTryInMs: number) => void;
}
