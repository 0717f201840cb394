/** What the two local servers have in common: a child process that gets ready within a deadline, or is ended and explained. */
import { EnvironmentError, messageOf } from '../errors.ts';
import { systemClock } from '../clock.ts';
import { describeExit, type Child, type ChildExit } from './child-process.ts';

/** A local server that answers. */
export interface Backend {
  readonly child: Child;
  readonly port: number;
}

/** How long and on whose behalf to wait for a server. */
export interface StartOptions {
  /** The port the user asked for; undefined when any will do. */
  readonly port: number | undefined;
  /** Unit: ms. */
  readonly deadlineMs: number;
  /** Aborts when the caller gives up; its reason is thrown. */
  readonly signal?: AbortSignal | undefined;
}

/**
 * Waits until `ready` resolves. When it does not, the server has ended by the time this throws.
 * @param ready is given a signal that aborts at the deadline, when the caller gives up, and when the server ends.
 * @throws {EnvironmentError} when the server ends or the deadline comes first, with its last words and what to do.
 * @throws the reason of `options.signal` when that aborts first.
 */
export async function untilReady<Ready>(
  child: Child,
  options: StartOptions,
  ready: (signal: AbortSignal) => Promise<Ready>,
): Promise<Ready> {
  const over = new AbortController();
  void child.exited.then((exit) => {
    over.abort(endedError(child, options.port, exit));
  });
  const cancelDeadline = systemClock.schedule(() => {
    over.abort(
      new EnvironmentError(
        `the local ${child.name} did not answer within ${String(options.deadlineMs)} ms${lastWords(child)}`,
      ),
    );
  }, options.deadlineMs);
  const either = AbortSignal.any(options.signal === undefined ? [over.signal] : [options.signal, over.signal]);
  try {
    either.throwIfAborted();
    return await ready(either);
  } catch (error) {
    // What `ready` threw when it was cut off is not news; why it was cut off is.
    const reason: unknown = either.aborted ? either.reason : error;
    await child.stop();
    throw reason;
  } finally {
    cancelDeadline();
  }
}

/** True when an error's text says that somebody else has the port. */
export function saysPortTaken(error: unknown): boolean {
  return /already in use|EADDRINUSE/i.test(messageOf(error));
}

function endedError(child: Child, port: number | undefined, exit: ChildExit): EnvironmentError {
  const taken = saysPortTaken(child.stderrTail()) && port !== undefined;
  const advice = taken ? `\nPort ${String(port)} is taken: choose another one, or end the program that uses it.` : '';
  return new EnvironmentError(
    `the local ${child.name} ended before it was ready (${describeExit(exit)})${lastWords(child)}${advice}`,
  );
}

function lastWords(child: Child): string {
  const words = child.stderrTail();
  return words === '' ? '' : `; it said:\n${words}`;
}
