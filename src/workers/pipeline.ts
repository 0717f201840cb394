/**
 * One delivery, from receive to settlement, as named steps:
 *
 *   decode -> claim -> work (heartbeat, handler, commit) -> settle
 *
 * Each step either hands on or ends with an outcome. Nothing here throws: what goes wrong is an outcome too.
 *
 * Invariants: no message is deleted before its effects are durable or its copy is on the dead-letter queue; a delivery
 * that lost its lease or visibility touches nothing; no heartbeat is on its way when a message is settled.
 */
import { BackendError, isOnlyonceError, messageOf } from '../errors.ts';
import type { Message } from '../messages/contract.ts';
import { decodeMessage, type DecodedMessage } from '../messages/envelope.ts';
import type { Claim, ClaimedEffect, EffectRecords } from '../store/effects/effect-record.ts';
import { LeaseLostError } from '../store/leases/held-lease.ts';
import { asReplayed } from '../store/effects/stored-value.ts';
import { TransactionCancelledError } from '../store/transactions/transaction-writer.ts';
import { withFields } from '../telemetry/log.ts';
import type { Acknowledger } from './acknowledger.ts';
import type { DeadLetters } from './dead-letter.ts';
import type { Delivery } from './delivery.ts';
import type { HandlerResult } from './handler.ts';
import { startHeartbeat, VisibilityLostError } from './heartbeat.ts';
import type { ResolvedWorkerOptions } from './options.ts';
import { settlementOf, type Outcome } from './outcome.ts';
import { createSteps, type Steps } from './steps.ts';

/** What the steps need, made once per worker. */
export interface PipelineDependencies {
  readonly options: ResolvedWorkerOptions;
  readonly effects: EffectRecords;
  readonly acknowledger: Acknowledger;
  readonly deadLetters: DeadLetters;
}

export interface Delivered {
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
  const outcome = decoded.kind === 'valid' ? await claimAndWork(decoded.message, context) : decoded;
  await settle(delivery, outcome, deps);
  return { key, outcome, handlerEnded };
}

function decode(delivery: Delivery, options: ResolvedWorkerOptions): DecodedMessage | Outcome {
  const contracts = options.handlers.map((handler) => handler.contract);
  try {
    return decodeMessage(delivery.body, contracts);
  } catch (error) {
    // Contracts are the user's code: one that throws must not leave the message without an outcome.
    return { kind: 'retry', error: messageOf(error), attempt: delivery.receiveCount };
  }
}

async function claimAndWork(message: Message, context: WorkContext): Promise<Outcome> {
  const { delivery, deps } = context;
  const { queue, name } = deps.options;
  let claim: Claim;
  try {
    claim = await deps.effects.claim({ queue, key: message.key, payloadHash: message.payloadHash, holder: name });
  } catch (error) {
    // Without the record nobody can tell what was done: the handler must not start.
    return { kind: 'retry', error: messageOf(error), attempt: delivery.receiveCount };
  }
  return claim.kind === 'claimed' ? work(claim.effect, message, context) : outcomeOf(claim, message);
}

function outcomeOf(claim: Exclude<Claim, { kind: 'claimed' }>, message: Message): Outcome {
  switch (claim.kind) {
    case 'completed':
      return { kind: 'replayed', answer: { status: 'COMPLETED', response: claim.response } };
    case 'rejected':
      return { kind: 'replayed', answer: { status: 'REJECTED', reason: claim.reason } };
    case 'conflict':
      return { kind: 'conflict', payloadHash: message.payloadHash, recordedHash: claim.recordedHash };
    case 'busy':
      return claim;
  }
}

interface WorkContext {
  readonly delivery: Delivery;
  readonly deps: PipelineDependencies;
  readonly onHandler: (running: Promise<unknown>) => void;
}

/** Works on a claimed key under one heartbeat, and gives the record back whatever happens. */
async function work(effect: ClaimedEffect, message: Message, context: WorkContext): Promise<Outcome> {
  const { delivery, deps } = context;
  const { options } = deps;
  const { clock, random } = options.store;
  const heartbeat = startHeartbeat({
    lease: effect.lease,
    receiptHandle: delivery.receiptHandle,
    acknowledger: deps.acknowledger,
    heartbeatMs: options.lease.heartbeatMs,
    visibilityTimeoutSeconds: options.visibilityTimeoutSeconds,
    clock,
    random,
  });
  const { signal } = heartbeat;
  const steps = createSteps({ effects: deps.effects, effect, queue: options.queue, key: message.key, signal, clock });
  try {
    if (effect.attempt > options.maxAttempts) throw new NoAttemptLeftError(effect);
    const running = handle(effect, message, { ...context, signal, steps });
    context.onHandler(running);
    const result = await untilLost(signal, running);
    return await commit(effect, result, { deps, signal });
  } catch (error) {
    const lost = lossOf(signal.aborted ? signal.reason : error);
    return lost ?? (await giveBack(effect, error, { ...context, isInDoubt: steps.isInDoubt }));
  } finally {
    await heartbeat.stop();
  }
}

function handle(
  effect: ClaimedEffect,
  message: Message,
  context: WorkContext & { readonly signal: AbortSignal; readonly steps: Steps },
): Promise<HandlerResult> {
  const { options } = context.deps;
  const handler = options.handlers.find(
    ({ contract }) => contract.type === message.type && contract.version === message.version,
  );
  // A handler that throws before its first await must not skip the record's release.
  return Promise.resolve().then(async () => {
    if (handler === undefined) throw new TypeError(`no handler for ${message.type}`);
    return handler.handle(message, {
      attempt: effect.attempt,
      signal: context.signal,
      log: withFields(options.log, {
        key: message.key,
        messageId: context.delivery.messageId,
        attempt: effect.attempt,
      }),
      step: (name, step, call) => context.steps.run(name, step, call),
      get: (key) => options.store.get(key),
      update: (update) => options.store.update(update),
    });
  });
}

async function commit(
  effect: ClaimedEffect,
  result: HandlerResult,
  context: { readonly deps: PipelineDependencies; readonly signal: AbortSignal },
): Promise<Outcome> {
  const { effects } = context.deps;
  const { attempt, takenOver } = effect;
  if (result.kind === 'rejected') {
    await effects.commit(effect, { status: 'REJECTED', reason: result.reason }, context.signal);
    return { kind: 'rejected', reason: result.reason, attempt, takenOver };
  }
  const { response } = result;
  await effects.commit(effect, { status: 'COMPLETED', response, effects: result.effects }, context.signal);
  // As duplicates will read it, so that every delivery of a key gets the same answer.
  return { kind: 'completed', response: asReplayed(response), attempt, takenOver };
}

/** The attempt failed and nothing was applied: the record says so and is free for the next attempt. */
async function giveBack(
  effect: ClaimedEffect,
  error: unknown,
  context: WorkContext & { readonly isInDoubt: boolean },
): Promise<Outcome> {
  const { options, effects } = context.deps;
  // The code is what people search for and match on.
  const text = isOnlyonceError(error) ? `${error.code}: ${error.message}` : messageOf(error);
  // A store that fails is not the message's fault: it waits, and its attempts are not used up.
  const isStoreFault = isFaultOfStore(error);
  const isHopeless = isOnlyonceError(error) && !error.retryable;
  const isLast = !isStoreFault && (isHopeless || effect.attempt >= options.maxAttempts);
  try {
    const released = await effects.release(effect, {
      error: text,
      inDoubt: context.isInDoubt,
      startAfresh: isLast || isStoreFault,
    });
    if (!released) return { kind: 'lost', reason: 'stolen' };
  } catch (fault) {
    // The lease ends by itself; until then the message meets a busy key and waits.
    options.log.warn({ err: fault, key: effect.lease.grant.key.PK }, 'the effect record could not be given back');
  }
  if (isLast) return { kind: 'exhausted', error: text, attempts: effect.attempt };
  return { kind: 'retry', error: text, attempt: isStoreFault ? context.delivery.receiveCount : effect.attempt };
}

/** An outage, throttling, or contention that outlasted every try: nothing about the message itself. */
function isFaultOfStore(error: unknown): boolean {
  if (error instanceof TransactionCancelledError) return error.retryable;
  return error instanceof BackendError && error.reason !== 'validation';
}

/** Does to the message what its outcome asks for. A settlement that fails is left to the visibility time-out. */
async function settle(delivery: Delivery, outcome: Outcome, deps: PipelineDependencies): Promise<void> {
  const { options, acknowledger, deadLetters } = deps;
  const policy = { retryBackoff: options.retryBackoff, random: options.store.random };
  const settlement = settlementOf(outcome, delivery.receiveCount, policy);
  switch (settlement.kind) {
    case 'delete':
      await acknowledger.delete(delivery.receiptHandle);
      return;
    case 'hide':
      await acknowledger.changeVisibility(delivery.receiptHandle, settlement.seconds);
      return;
    case 'deadLetter':
      try {
        await deadLetters.send(delivery, settlement);
      } catch (error) {
        const fields = { err: error, messageId: delivery.messageId };
        options.log.error(fields, 'the dead-letter queue did not take the message; it stays on its queue');
        return;
      }
      await acknowledger.delete(delivery.receiptHandle);
      return;
    case 'leave':
      return;
  }
}

/** Resolves with the handler's result, or rejects at once on loss: a handler that ignores its signal is not waited for. */
function untilLost<Result>(signal: AbortSignal, result: Promise<Result>): Promise<Result> {
  return new Promise((resolve, reject) => {
    const onLoss = (): void => {
      reject(signal.reason as Error);
    };
    if (signal.aborted) onLoss();
    signal.addEventListener('abort', onLoss, { once: true });
    result.then(resolve, reject).finally(() => {
      signal.removeEventListener('abort', onLoss);
    });
  });
}

function lossOf(error: unknown): Outcome | undefined {
  if (error instanceof LeaseLostError) return { kind: 'lost', reason: error.reason };
  return error instanceof VisibilityLostError ? { kind: 'lost', reason: 'visibility' } : undefined;
}

/** Earlier attempts ended without a word: the worker crashed or was killed each time. */
class NoAttemptLeftError extends Error {
  override readonly name = 'NoAttemptLeftError';

  constructor(effect: ClaimedEffect) {
    super(effect.lastError ?? 'every attempt ended without a result: its worker crashed or was killed');
  }
}
