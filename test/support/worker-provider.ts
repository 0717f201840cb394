import type { ChargeRequest, ChargeResult, PaymentProvider } from '../../src/payments/payment-provider.ts';
import { Journal } from './worker-journal.ts';

/** One call, as the hooks see it. */
export interface ProviderCall {
  readonly request: ChargeRequest;
  readonly signal: AbortSignal | undefined;
  /** Counts all calls, this one included. */
  readonly nth: number;
}

type Hook = (call: ProviderCall) => Promise<void> | void;

/** A payment provider in memory that honours idempotency keys and can be told to wait or fail on either side. */
export class CountingProvider implements PaymentProvider {
  readonly idempotencyWindowMs = 86_400_000;
  readonly calls: Journal<ProviderCall> = new Journal();
  /** What was charged: once per key, for as long as the key is remembered. */
  readonly charges: ChargeRequest[] = [];
  /** Runs before anything is charged. */
  beforeCharge: Hook = () => undefined;
  /** Runs when the charge is made and before it is answered. */
  beforeAnswer: Hook = () => undefined;
  /** References that are declined. */
  readonly declined: Set<string> = new Set();
  readonly #results = new Map<string, ChargeResult>();

  async charge(request: ChargeRequest, options: { signal?: AbortSignal } = {}): Promise<ChargeResult> {
    const call = { request, signal: options.signal, nth: this.calls.entries.length + 1 };
    this.calls.add(call);
    await this.beforeCharge(call);
    const result = this.#results.get(request.idempotencyKey) ?? this.#decide(request);
    this.#results.set(request.idempotencyKey, result);
    await this.beforeAnswer(call);
    return result;
  }

  /** As when the window is over: each key charges anew. */
  forgetKeys(): void {
    this.#results.clear();
  }

  #decide(request: ChargeRequest): ChargeResult {
    if (this.declined.has(request.reference)) return { kind: 'declined', reason: 'no funds' };
    this.charges.push(request);
    return { kind: 'charged', providerChargeId: `ch_${String(this.charges.length)}` };
  }
}
