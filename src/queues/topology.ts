/** The queues that each flow needs and how they are set up. Bootstrap, commands, docs and tests read them here. */

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
}

export const QUEUE_DEFAULTS: QueueSettings = {
  visibilityTimeoutSeconds: 30,
  retentionSeconds: 1_209_600,
  maxReceiveCount: 100,
};

export const FLOWS = ['charges'] as const;
export type Flow = (typeof FLOWS)[number];

export function queueName(flow: Flow, prefix = ''): string {
  return `${prefix}onlyonce-${flow}`;
}

export function deadLetterQueueName(queue: string): string {
  return `${queue}-dlq`;
}
