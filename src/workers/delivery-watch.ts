/** What goes on beside a handler: its delivery is kept, and its time is counted. */
import type { Clock } from '../clock.ts';
import { OnlyonceError } from '../errors.ts';
import { noLease, startHeartbeat, type Heartbeat, type RenewableLease } from './heartbeat.ts';
import type { Delivery } from './delivery.ts';
import type { PipelineDependencies } from './work-context.ts';

/** The time that a handler may take is over. */
export class HandlerTimeoutError extends OnlyonceError {
  readonly code = 'HANDLER_TIMEOUT';
  readonly retryable = true;

  constructor(timeoutMs: number) {
    super(`the handler was not done after ${String(timeoutMs)} ms`);
  }
}

export interface DeliveryWatch {
  /** Aborts when the delivery is lost, or the time is over. */
  readonly signal: AbortSignal;
  /** When the time is over. Unit: ms since the epoch. */
  readonly deadlineMs: number;
  /** The handler has ended in time: what follows may take longer. */
  handlerEnded(): void;
  /** Nothing is watched any more. Resolves when no beat is on its way. Harmless when repeated. */
  end(): Promise<void>;
}

/** @param lease of a claimed key; without one only the visibility is kept. */
export function watchDelivery(delivery: Delivery, deps: PipelineDependencies, lease?: RenewableLease): DeliveryWatch {
  const heartbeat = keepDelivery(delivery, deps, lease);
  const timeLimit = startTimeLimit(deps.options.store.clock, deps.options.handlerTimeoutMs);
  return {
    signal: AbortSignal.any([heartbeat.signal, timeLimit.signal]),
    deadlineMs: timeLimit.deadlineMs,
    handlerEnded: timeLimit.cancel,
    async end() {
      timeLimit.cancel();
      await heartbeat.stop();
    },
  };
}

/** Keeps a delivery hidden, and its key's lease if there is one. */
export function keepDelivery(delivery: Delivery, deps: PipelineDependencies, lease?: RenewableLease): Heartbeat {
  const { store, visibilityTimeoutSeconds, lease: times } = deps.options;
  return startHeartbeat({
    lease: lease ?? noLease(),
    receiptHandle: delivery.receiptHandle,
    acknowledger: deps.acknowledger,
    heartbeatMs: times.heartbeatMs,
    ...(lease !== undefined && { leaseCountsMs: times.leaseMs + times.maxClockSkewMs }),
    visibilityTimeoutSeconds,
    clock: store.clock,
    random: store.random,
  });
}

interface TimeLimit {
  /** Aborts with a {@link HandlerTimeoutError} when the time is over. */
  readonly signal: AbortSignal;
  readonly deadlineMs: number;
  readonly cancel: () => void;
}

function startTimeLimit(clock: Clock, timeoutMs: number): TimeLimit {
  const over = new AbortController();
  const cancel = clock.schedule(
    () => {
      over.abort(new HandlerTimeoutError(timeoutMs));
    },
    timeoutMs,
    { background: true },
  );
  return { signal: over.signal, deadlineMs: clock.nowMs() + timeoutMs, cancel };
}
