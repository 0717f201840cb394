/**
 * One delivery, from receive to settlement, as named steps:
 *
 *   decode -> work: claimed (claim, handler, commit) or direct (handler, commit) -> settle
 *
 * Each step either hands on or ends with an outcome. Nothing here throws: what goes wrong is an outcome too.
 *
 * Invariants: no message is deleted before its effects are durable or its copy is on the dead-letter queue; a delivery
 * that lost its lease or visibility touches nothing; no heartbeat is on its way when a message is settled.
 */
import { messageOf } from '../errors.ts';
import type { Message } from '../messages/contract.ts';
import { decodeMessage, type DecodedMessage } from '../messages/envelope.ts';
import { claimAndWork } from './claimed-delivery.ts';
import type { Delivery } from './delivery.ts';
import { workDirectly } from './direct-delivery.ts';
import type { ResolvedWorkerOptions } from './options.ts';
import { settlementOf, type Outcome } from './outcome.ts';
import type { PipelineDependencies, WorkContext } from './work-context.ts';

export interface Delivered {
  /** False when the message comes again: in a message group, nothing after it may be started before. */
  readonly isSettled: boolean;
  readonly key: string | undefined;
  readonly outcome: Outcome;
  /** Settles when the handler has, which may be long after the outcome; never rejects. */
  readonly handlerEnded: Promise<unknown>;
}

export async function deliver(delivery: Delivery, deps: PipelineDependencies): Promise<Delivered> {
  const decoded = decode(delivery, deps.options);
  // Read before the handler runs: what that does to its message must not change what is told about it.
  const key = decoded.kind === 'valid' ? decoded.message.key : undefined;
  let handlerEnded: Promise<unknown> = Promise.resolve();
  const onHandler = (running: Promise<unknown>): void => {
    handlerEnded = running.catch(() => undefined);
  };
  const context = { delivery, deps, onHandler };
  const outcome = decoded.kind === 'valid' ? await outcomeOf(decoded.message, context) : decoded;
  const isSettled = await settle(delivery, outcome, deps);
  return { key, outcome, isSettled, handlerEnded };
}

function decode(delivery: Delivery, options: ResolvedWorkerOptions): DecodedMessage | Outcome {
  const contracts = options.handlers.map((handler) => handler.contract);
  try {
    return decodeMessage(delivery.body, contracts);
  } catch (error) {
    // Contracts are the user's code: one that throws must not leave the message without an outcome.
    return { kind: 'retry', error: messageOf(error), attempt: delivery.receiveCount, countsAsAttempt: false };
  }
}

/** Whatever escapes the steps is an outcome too: a delivery without one would never be settled. */
async function outcomeOf(message: Message, context: WorkContext): Promise<Outcome> {
  try {
    return await work(message, context);
  } catch (error) {
    const { receiveCount } = context.delivery;
    return { kind: 'retry', error: messageOf(error), attempt: receiveCount, countsAsAttempt: false };
  }
}

async function work(message: Message, context: WorkContext): Promise<Outcome> {
  const handler = context.deps.options.handlers.find(
    ({ contract }) => contract.type === message.type && contract.version === message.version,
  );
  // Decoding knows the handlers' contracts only, so there is one.
  if (handler === undefined) throw new TypeError(`no handler for ${message.type}`);
  return handler.commit === 'direct'
    ? workDirectly(handler, message, context)
    : claimAndWork(handler, message, context);
}

/**
 * Does to the message what its outcome asks for. A settlement that fails is left to the visibility time-out.
 * @returns true when the message does not come again as far as it is in our hands. A delete that was not confirmed counts:
 * what comes back is answered from the record.
 */
async function settle(delivery: Delivery, outcome: Outcome, deps: PipelineDependencies): Promise<boolean> {
  const { options, acknowledger, deadLetters } = deps;
  const policy = { retryBackoff: options.retryBackoff, random: options.store.random };
  const settlement = settlementOf(outcome, delivery.receiveCount, policy);
  const { receiptHandle, messageId } = delivery;
  switch (settlement.kind) {
    case 'delete':
      await acknowledger.delete(receiptHandle, messageId);
      return true;
    case 'hide':
      await acknowledger.changeVisibility(receiptHandle, settlement.seconds, messageId);
      return false;
    case 'deadLetter':
      try {
        await deadLetters.send(delivery, settlement);
      } catch (error) {
        options.log.error(
          { err: error, messageId },
          'the dead-letter queue did not take the message; it stays on its queue',
        );
        return false;
      }
      await acknowledger.delete(receiptHandle, messageId);
      return true;
    case 'leave':
      return false;
  }
}
