/** From received messages to running deliveries: a slot for each, or for each message group of a FIFO queue. */
import type { Message as SqsMessage } from '@aws-sdk/client-sqs';
import { MAX_BATCH_ENTRIES } from '../messages/limits.ts';
import { hideMessages } from '../queues/queue-messages.ts';
import { isFifo } from '../queues/topology.ts';
import { isIntact, toDelivery, type Delivery } from './delivery.ts';
import { keepDelivery } from './delivery-watch.ts';
import type { EventHub } from './events.ts';
import { createGroupLanes, type GroupLanes } from './group-lanes.ts';
import type { ResolvedWorkerOptions } from './options.ts';
import type { Outcome } from './outcome.ts';
import { deliver, type Delivered } from './pipeline.ts';
import type { Scheduler } from './scheduler.ts';
import type { PipelineDependencies } from './work-context.ts';

export interface IntakeOptions {
  readonly options: ResolvedWorkerOptions;
  readonly pipeline: PipelineDependencies;
  readonly scheduler: Scheduler;
  readonly hub: EventHub;
}

export interface Intake {
  /** Starts what fits: the poller never asks for more than there are free slots. */
  take(messages: readonly SqsMessage[]): void;
  /** Makes messages that were never started visible at once, for another worker to take. */
  giveBack(messages: readonly SqsMessage[]): Promise<void>;
  /** Gives back what waits for its turn. What is at work goes on. */
  close(): Promise<void>;
}

export function createIntake(context: IntakeOptions): Intake {
  const { options, pipeline, scheduler } = context;
  const hasGroups = isFifo(options.queueUrl);
  const lanes = createLanes(context);

  function start(message: SqsMessage): void {
    const delivery = toDelivery(message);
    // It came back while it is being settled here: the settlement goes on with its newest handle.
    if (pipeline.acknowledger.arrived(delivery.messageId, delivery.receiptHandle)) return;
    if (hasGroups && delivery.groupId !== undefined) lanes.add(delivery.groupId, delivery);
    else scheduler.start(delivery.messageId, () => deliverAlone(delivery, context));
  }

  return {
    take(messages) {
      for (const message of messages) {
        if (isIntact(message)) start(message);
        // As good as a receive that got lost: it comes back, and until then nobody acts on what nobody sent.
        else options.log.warn({ messageId: message.MessageId }, 'a message was corrupted on its way; it comes back');
      }
    },
    giveBack: (messages) =>
      giveBackHandles(
        messages.map(({ ReceiptHandle = '' }) => ReceiptHandle),
        options,
      ),
    close: () => lanes.close(),
  };
}

function createLanes(context: IntakeOptions): GroupLanes<Delivery> {
  const { options, pipeline, scheduler } = context;
  return createGroupLanes<Delivery>({
    startInSlot: (name, task) => {
      scheduler.start(name, task);
    },
    nameOf: ({ messageId }) => messageId,
    deliver: (delivery) => deliverAndReport(delivery, context),
    keepHidden: (delivery) => keepDelivery(delivery, pipeline),
    giveBack: (deliveries) =>
      giveBackHandles(
        deliveries.map(({ receiptHandle }) => receiptHandle),
        options,
      ),
  });
}

async function deliverAlone(delivery: Delivery, context: IntakeOptions): Promise<void> {
  const { handlerEnded } = await deliverAndReport(delivery, context);
  // A handler that ignores its signal keeps its slot: otherwise such handlers would pile up without a bound.
  await handlerEnded;
}

async function deliverAndReport(delivery: Delivery, context: IntakeOptions): Promise<Delivered> {
  const { options, pipeline, hub } = context;
  const { clock } = options.store;
  const startedMonoMs = clock.monotonicMs();
  hub.tell('delivery', delivery);
  const delivered = await deliver(delivery, pipeline);
  const { key, outcome } = delivered;
  const durationMs = Math.round(clock.monotonicMs() - startedMonoMs);
  const fields = { key, messageId: delivery.messageId, outcome: outcome.kind, durationMs, ...reasonOf(outcome) };
  options.log[levelOf(outcome)](fields, 'delivery settled');
  const report = { delivery, key, outcome, durationMs };
  hub.tell('outcome', report);
  // Told under its own name too: the name is the kind, so the report is what that name promises.
  hub.tell(outcome.kind, report as never);
  return delivered;
}

async function giveBackHandles(handles: readonly string[], options: ResolvedWorkerOptions): Promise<void> {
  const { client, queueUrl, log } = options;
  for (let from = 0; from < handles.length; from += MAX_BATCH_ENTRIES) {
    const receiptHandles = handles.slice(from, from + MAX_BATCH_ENTRIES);
    try {
      // A request at a time: one that fails must not keep the rest hidden.
      await hideMessages(client, queueUrl, { receiptHandles, seconds: 0 });
    } catch (error) {
      log.warn({ err: error }, 'unstarted messages could not be given back; they come back by themselves');
    }
  }
}

function levelOf(outcome: Outcome): 'debug' | 'warn' {
  const isQuiet = outcome.kind === 'completed' || outcome.kind === 'replayed' || outcome.kind === 'busy';
  return isQuiet ? 'debug' : 'warn';
}

/** What people want to read in the log. Responses and payloads stay out of it. */
function reasonOf(outcome: Outcome): Record<string, unknown> {
  if ('error' in outcome) return { error: outcome.error };
  if ('code' in outcome) return { code: outcome.code, reason: outcome.reason };
  return 'reason' in outcome ? { reason: outcome.reason } : {};
}
