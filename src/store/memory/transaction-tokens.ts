/**
 * Remembers which transactions were applied, so that one that is sent again is not applied again.
 * @see AWS: Amazon DynamoDB Transactions, idempotency
 */
import { createHash } from 'node:crypto';
import type { Clock } from '../../clock.ts';
import { ServiceError } from './service-error.ts';

const REMEMBERED_MS = 600_000;

interface Applied {
  readonly digest: string;
  readonly untilMs: number;
}

export class TransactionTokens {
  readonly #clock: Clock;
  /** In the order of `untilMs`, so that what is over is at the front. */
  readonly #applied = new Map<string, Applied>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /**
   * Whether this very transaction was applied under this token within the last ten minutes.
   * @throws {ServiceError} IdempotentParameterMismatchException when another one was.
   */
  wasApplied(token: string, actions: unknown): boolean {
    this.#forgetOld();
    const applied = this.#applied.get(token);
    if (applied === undefined) return false;
    if (applied.digest === digestOf(actions)) return true;
    throw new ServiceError(
      'IdempotentParameterMismatchException',
      'The same client request token was used with other parameters',
    );
  }

  remember(token: string, actions: unknown): void {
    this.#applied.set(token, { digest: digestOf(actions), untilMs: this.#clock.monotonicMs() + REMEMBERED_MS });
  }

  #forgetOld(): void {
    const nowMs = this.#clock.monotonicMs();
    for (const [token, { untilMs }] of this.#applied) {
      if (untilMs > nowMs) return;
      this.#applied.delete(token);
    }
  }
}

function digestOf(actions: unknown): string {
  return createHash('sha256').update(JSON.stringify(actions)).digest('base64');
}
