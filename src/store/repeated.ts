/** Repeats a request on passing faults, and never forgets that an earlier try went unanswered. */
import { fullJitterMs, type Backoff } from '../backoff.ts';
import { sleep, type Clock, type Random } from '../clock.ts';
import { toBackendError } from './backend-error.ts';

export interface RepeatLimits {
  /**
   * Whether the request may be sent again although an earlier try may have been applied. True only where a second
   * application changes nothing, or is refused by a condition that the first one made false.
   */
  readonly mayApplyTwice: boolean;
  /** @defaultValue 4 */
  readonly maxAttempts?: number;
  readonly signal?: AbortSignal;
}

const BACKOFF: Backoff = { baseMs: 50, capMs: 500 };
const MAX_ATTEMPTS = 4;

/**
 * @param request is told whether an earlier try went unanswered: a refusal may then mean that this very try landed.
 * @throws what the last try threw, or the first unanswered one: no later answer proves that it was not applied.
 */
export async function repeated<Result>(
  deps: { readonly clock: Clock; readonly random: Random },
  limits: RepeatLimits,
  request: (wasUnanswered: boolean) => Promise<Result>,
): Promise<Result> {
  const maxAttempts = limits.maxAttempts ?? MAX_ATTEMPTS;
  let unanswered: unknown;
  for (let attempt = 1; ; attempt += 1) {
    try {
      return await request(unanswered !== undefined);
    } catch (error) {
      const fault = toBackendError(error);
      const isOpen = fault.reason === 'ambiguous' || fault.reason === 'inProgress';
      if (isOpen) unanswered ??= error;
      if (attempt >= maxAttempts || !fault.retryable || (isOpen && !limits.mayApplyTwice)) throw unanswered ?? error;
      await sleep(deps.clock, fullJitterMs(attempt, BACKOFF, deps.random), limits.signal).catch(() => {
        throw unanswered ?? error;
      });
    }
  }
}
