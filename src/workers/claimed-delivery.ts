/**
 * Claimed commit: claim the key, work under one heartbeat, commit record and effects in one transaction. The handler runs
 * for one delivery at a time and may make outside calls as steps.
 */
import { sleep } from '../clock.ts';
import type { Message } from '../messages/contract.ts';
import { orAborted } from '../or-aborted.ts';
import type { Claim, ClaimedEffect } from '../store/effects/effect-record.ts';
import { asReplayed } from '../store/effects/stored-value.ts';
import { LeaseLostError } from '../store/leases/held-lease.ts';
import { HandlerTimeoutError, watchDelivery } from './delivery-watch.ts';
import { failureOf, retryOutcome } from './failed-attempt.ts';
import type { Handler } from './handler.ts';
import { answerToRefusal, runHandler, type Finished } from './handler-run.ts';
import { VisibilityLostError } from './heartbeat.ts';
import type { Outcome } from './outcome.ts';
import type { WorkContext } from './work-context.ts';
import { standingOutcome } from './standing.ts';
import { createSteps, StepUnknownError } from './steps.ts';

export async function claimAndWork(
  handler: Handler<unknown>,
  message: Message,
  context: WorkContext,
): Promise<Outcome> {
  const { delivery, deps } = context;
  const { queue, name } = deps.options;
  let claim: Claim;
  try {
    claim = await deps.effects.claim({ queue, key: message.key, payloadHash: message.payloadHash, holder: name });
  } catch (error) {
    // Without the record nobody can tell what was done: the handler must not start.
    return retryOutcome(failureOf(error), delivery.receiveCount, deps.options);
  }
  if (claim.kind !== 'claimed') return standingOutcome(claim, message);
  return work({ handler, message, effect: claim.effect }, context);
}

interface Work {
  readonly handler: Handler<unknown>;
  readonly message: Message;
  readonly effect: ClaimedEffect;
}

/** Works on a claimed key under one heartbeat, and gives the record back whatever happens. */
async function work(claimed: Work, context: WorkContext): Promise<Outcome> {
  const { handler, message, effect } = claimed;
  const { delivery, deps } = context;
  const { options, effects } = deps;
  const { clock } = options.store;
  const { lease } = effect;
  const watch = watchDelivery(delivery, deps, lease);
  const { signal } = watch;
  const steps = createSteps({ effects, effect, queue: options.queue, key: message.key, signal, clock });
  let running: Promise<Finished> | undefined;
  try {
    if (effect.attempt > options.maxAttempts) throw new NoAttemptLeftError(effect);
    running = runHandler(handler, message, {
      ...context,
      attempt: effect.attempt,
      signal,
      deadlineMs: watch.deadlineMs,
      lease: { fencingToken: lease.grant.fencingToken, remainingMs: () => lease.remainingMs() },
      step: (name, call, step) => steps.run(name, call, step),
    });
    context.onHandler(running);
    // A handler that ignores its signal is not waited for.
    const finished = await orAborted(running, signal);
    watch.handlerEnded();
    return await commit(effect, finished, { ...context, signal });
  } catch (error) {
    const lost = lossOf(signal.aborted ? signal.reason : error);
    if (lost !== undefined) return lost;
    if (running !== undefined && isTimeout(signal)) {
      // No beat renews from here on. Another may start only when this handler has ended, or when the lease is over.
      await watch.end();
      if (!(await endsInTime(running, effect, context))) return { kind: 'lost', reason: 'timeout' };
    }
    const cause: unknown = signal.aborted ? signal.reason : error;
    return await giveBack(effect, cause, { ...context, isInDoubt: steps.isInDoubt, payloadHash: message.payloadHash });
  } finally {
    await watch.end();
  }
}

async function commit(
  effect: ClaimedEffect,
  finished: Finished,
  context: WorkContext & { readonly signal: AbortSignal },
): Promise<Outcome> {
  const { effects } = context.deps;
  const { attempt, takenOver } = effect;
  if (finished.kind === 'rejected') {
    await effects.commit(effect, { status: 'REJECTED', reason: finished.reason }, context.signal);
    return { kind: 'rejected', reason: finished.reason, attempt, takenOver };
  }
  const { response } = finished;
  try {
    await effects.commit(effect, { status: 'COMPLETED', response, effects: finished.effects }, context.signal);
  } catch (error) {
    const refused = answerToRefusal(error, finished);
    if (refused === undefined) throw error;
    return commit(effect, refused, context);
  }
  // As duplicates will read it, so that every delivery of a key gets the same answer.
  return { kind: 'completed', response: asReplayed(response), attempt, takenOver };
}

/** The attempt failed and nothing was applied: the record says so and is free for the next attempt. */
async function giveBack(
  effect: ClaimedEffect,
  error: unknown,
  context: WorkContext & { readonly isInDoubt: boolean; readonly payloadHash: string },
): Promise<Outcome> {
  const { options, effects } = context.deps;
  const failure = failureOf(error);
  const isLast = failure.isHopeless || (failure.countsAsAttempt && effect.attempt >= options.maxAttempts);
  try {
    const released = await effects.release(effect, {
      error: failure.error,
      inDoubt: context.isInDoubt,
      startAfresh: isLast || !failure.countsAsAttempt,
      ...(error instanceof StepUnknownError && { unknownStep: error.step }),
    });
    if (!released) return { kind: 'lost', reason: 'stolen' };
  } catch (fault) {
    // The lease ends by itself; until then the message meets a busy key and waits.
    options.log.warn({ err: fault, key: effect.lease.grant.key.PK }, 'the effect record could not be given back');
    // Dead-lettered only once the record is free: whoever redrives it would meet its used-up attempts.
    if (isLast) return retryOutcome({ ...failure, countsAsAttempt: false }, context.delivery.receiveCount, options);
  }
  if (isLast) {
    return { kind: 'exhausted', error: failure.error, attempts: effect.attempt, payloadHash: context.payloadHash };
  }
  return retryOutcome(failure, failure.countsAsAttempt ? effect.attempt : context.delivery.receiveCount, options);
}

function isTimeout(signal: AbortSignal): boolean {
  return signal.aborted && signal.reason instanceof HandlerTimeoutError;
}

/** True when the handler ends while the lease still keeps everybody else away. */
async function endsInTime(running: Promise<unknown>, effect: ClaimedEffect, context: WorkContext): Promise<boolean> {
  const ended = new AbortController();
  const handlerEnd = running.then(
    () => true,
    () => true,
  );
  const leaseEnd = sleep(context.deps.options.store.clock, effect.lease.remainingMs(), ended.signal).then(
    () => false,
    () => true,
  );
  const inTime = await Promise.race([handlerEnd, leaseEnd]);
  ended.abort();
  return inTime;
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
