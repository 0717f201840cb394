/** What a worker tells about its work. Listeners are guests: what they do wrong never touches a delivery. */
import { messageOf } from '../errors.ts';
import type { Delivery } from './delivery.ts';
import type { Outcome, OutcomeKind } from './outcome.ts';

/** A delivery that has ended. */
export interface DeliveryReport<Kind extends OutcomeKind = OutcomeKind> {
  readonly delivery: Delivery;
  /** Undefined when the message could not be read. */
  readonly key: string | undefined;
  readonly outcome: Extract<Outcome, { kind: Kind }>;
  readonly durationMs: number;
}

/** A receive that failed, and when the next one comes. */
export interface ReceiveFailure {
  readonly error: Error;
  /** Unit: ms. */
  readonly nextTryInMs: number;
}

/** The poll loop gave no sign of life. */
export interface PollingStalled {
  /** How long nothing was heard of the poll loop. Unit: ms. */
  readonly silentForMs: number;
}

/** Every event by its name: one for each outcome, and those of the worker itself. */
export type WorkerEventMap = { readonly [Kind in OutcomeKind]: DeliveryReport<Kind> } & {
  /** A message was received and is about to be worked on. */
  readonly delivery: Delivery;
  /** A delivery ended, whatever its outcome, and its message is settled. */
  readonly outcome: DeliveryReport;
  readonly receiveFailed: ReceiveFailure;
  /** The poll loop gives no sign of life: this process receives nothing any more. */
  readonly stalled: PollingStalled;
};

/** Called with the event of its name. What it throws or rejects with becomes a warning of the process. */
export type WorkerListener<Name extends keyof WorkerEventMap> = (event: WorkerEventMap[Name]) => unknown;

/** The same as options, for the three that most people want. */
export interface WorkerEvents {
  readonly onDelivery?: (delivery: Delivery) => void;
  readonly onOutcome?: (report: DeliveryReport) => void;
  readonly onReceiveFailed?: (error: Error, nextTryInMs: number) => void;
}

export interface EventHub {
  /** @returns ends the listening. */
  on<Name extends keyof WorkerEventMap>(name: Name, listener: WorkerListener<Name>): () => void;
  tell<Name extends keyof WorkerEventMap>(name: Name, event: WorkerEventMap[Name]): void;
}

export function createEventHub(events: WorkerEvents): EventHub {
  // Kept by name, so each listener gets the event that its name promises.
  const listeners = new Map<keyof WorkerEventMap, Set<(event: never) => unknown>>();

  const hub: EventHub = {
    on(name, listener) {
      const ofName = listeners.get(name) ?? new Set();
      listeners.set(name, ofName);
      ofName.add(listener);
      return () => {
        ofName.delete(listener);
      };
    },
    tell(name, event) {
      // A copy: a listener that is added meanwhile hears of the next event.
      for (const listener of [...(listeners.get(name) ?? [])]) guarded(() => listener(event as never));
    },
  };
  hub.on('delivery', (delivery) => events.onDelivery?.(delivery));
  hub.on('outcome', (report) => events.onOutcome?.(report));
  hub.on('receiveFailed', ({ error, nextTryInMs }) => events.onReceiveFailed?.(error, nextTryInMs));
  return hub;
}

function guarded(listener: () => unknown): void {
  try {
    // A listener that was declared void may be async all the same: its rejection would end the process.
    void Promise.resolve(listener()).catch(warnOf);
  } catch (error) {
    warnOf(error);
  }
}

function warnOf(error: unknown): void {
  queueMicrotask(() => {
    process.emitWarning(`a worker listener threw: ${messageOf(error)}`);
  });
}
