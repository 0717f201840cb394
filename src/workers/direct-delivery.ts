/**
 * Direct commit: the handler runs first, and one transaction with the record decides. Nothing is written before it. A
 * duplicate runs the handler too, and is told at the commit that the key is done.
 */
import { ConfigurationError } from '../errors.ts';
import type { Message } from '../messages/contract.ts';
import { orAborted } from '../or-aborted.ts';
import type { DirectRequest } from '../store/effects/direct-effect.ts';
import { asReplayed } from '../store/effects/stored-value.ts';
import { watchDelivery } from './delivery-watch.ts';
import { failureOf, retryOutcome } from './failed-attempt.ts';
import type { Handler } from './handler.ts';
import { answerToRefusal, runHandler, type Finished } from './handler-run.ts';
import { VisibilityLostError } from './heartbeat.ts';
import type { Outcome } from './outcome.ts';
import type { WorkContext } from './work-context.ts';
import { standingOutcome } from './standing.ts';

export async function workDirectly(
  handler: Handler<unknown>,
  message: Message,
  context: WorkContext,
): Promise<Outcome> {
  const { delivery, deps } = context;
  const { options } = deps;
  const watch = watchDelivery(delivery, deps);
  const { signal } = watch;
  const request: DirectRequest = { queue: options.queue, key: message.key, payloadHash: message.payloadHash };
  try {
    const running = runHandler(handler, message, {
      ...context,
      attempt: delivery.receiveCount,
      signal,
      deadlineMs: watch.deadlineMs,
      lease: undefined,
      step: refuseStep,
    });
    context.onHandler(running);
    const finished = await orAborted(running, signal);
    watch.handlerEnded();
    return await commit(finished, message, { ...context, request, signal });
  } catch (error) {
    const cause: unknown = signal.aborted ? signal.reason : error;
    if (cause instanceof VisibilityLostError) return { kind: 'lost', reason: 'visibility' };
    return await fail(cause, message, { ...context, request });
  } finally {
    await watch.end();
  }
}

/** Each duplicate runs the handler, so each would make the call. */
function refuseStep(name: string): Promise<never> {
  const rule = "only in a handler with commit: 'claimed'; a direct one runs once for every duplicate";
  return Promise.reject(new ConfigurationError('step', [{ name: 'commit', rule, value: `direct, step "${name}"` }]));
}

interface CommitContext extends WorkContext {
  readonly request: DirectRequest;
}

async function commit(
  finished: Finished,
  message: Message,
  context: CommitContext & { readonly signal: AbortSignal },
): Promise<Outcome> {
  const { directEffects } = context.deps;
  const { request, delivery, signal } = context;
  const told = { attempt: delivery.receiveCount, takenOver: false };
  if (finished.kind === 'rejected') {
    const answer = await directEffects.commit(request, { status: 'REJECTED', reason: finished.reason }, signal);
    if (answer.kind !== 'committed') return standingOutcome(answer, message);
    return { kind: 'rejected', reason: finished.reason, ...told };
  }
  const { response, effects } = finished;
  try {
    const answer = await directEffects.commit(request, { status: 'COMPLETED', response, effects }, signal);
    if (answer.kind !== 'committed') return standingOutcome(answer, message);
  } catch (error) {
    const refused = answerToRefusal(error, finished);
    if (refused === undefined) throw error;
    return commit(refused, message, context);
  }
  return { kind: 'completed', response: asReplayed(response), ...told };
}

/** Counts the attempt on the failure path alone: the happy path writes nothing but its commit. */
async function fail(error: unknown, message: Message, context: CommitContext): Promise<Outcome> {
  const { deps, request, delivery } = context;
  const failure = failureOf(error);
  if (!failure.countsAsAttempt) return retryOutcome(failure, delivery.receiveCount, deps.options);
  try {
    const answer = await deps.directEffects.fail(request, failure.error);
    // Another delivery was faster: its answer is this one's answer.
    if (answer.kind !== 'failed') return standingOutcome(answer, message);
    const { attempts } = answer;
    if (!failure.isHopeless && attempts < deps.options.maxAttempts)
      return retryOutcome(failure, attempts, deps.options);
    await deps.directEffects.startAfresh(request);
    return { kind: 'exhausted', error: failure.error, attempts, payloadHash: message.payloadHash };
  } catch (fault) {
    deps.options.log.warn({ err: fault, key: message.key }, 'the failed attempt could not be counted');
    return retryOutcome(failure, delivery.receiveCount, deps.options);
  }
}
