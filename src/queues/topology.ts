/** The queues that each flow needs and how they are set up. Bootstrap, commands, docs and tests read them here. */

/** How a queue is made. */
export interface QueueSettings {
  /** Unit: s. Long enough for a lease, its takeover bound and some slack. */
  readonly visibilityTimeoutSeconds: number;
  /** Unit: s. The longest that SQS offers: 14 days. */
  readonly retentionSeconds: number;
  /**
   * The safety net only: waiting for a busy key counts receives too, so it is generous. What decides is `maxAttempts`
   * in the effect record.
   */
  readonly maxReceiveCount: number;
  /** Message groups in order; the names of both queues end in `.fifo`. @defaultValue false */
  readonly isFifo?: boolean;
}

/** How the queues of the flows are made. */
export const QUEUE_DEFAULTS: QueueSettings = {
  visibilityTimeoutSeconds: 30,
  retentionSeconds: 1_209_600,
  maxReceiveCount: 100,
};

export const FIFO_SUFFIX = '.fifo';

/** By its name or URL. @see AWS: Amazon SQS FIFO queues, whose names end like this */
export function isFifo(queue: string): boolean {
  return queue.endsWith(FIFO_SUFFIX);
}

export const FLOWS = ['charges'] as const;
export type Flow = (typeof FLOWS)[number];

export function queueName(flow: Flow, prefix = ''): string {
  return `${prefix}onlyonce-${flow}`;
}

/** @see AWS: a FIFO queue's dead-letter queue is a FIFO queue too */
export function deadLetterQueueName(queue: string): string {
  if (isFifo(queue)) return `${queue.slice(0, -FIFO_SUFFIX.length)}-dlq${FIFO_SUFFIX}`;
  return `${queue}-dlq`;
}
