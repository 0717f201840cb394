/**
 * The port to whoever moves the money. Charging is the one effect of this package that no DynamoDB condition can
 * protect, so the port demands an idempotency key on every call and says for how long a key is remembered.
 *
 * A declined charge is an answer, not a fault: it is a value. Faults are `PaymentError`s.
 */
import { OnlyonceError } from '../errors.ts';

/** One charge. Sent again with the same key and the same content, it is never charged twice within the window. */
export interface ChargeRequest {
  /** Stable over all tries of one effect. 1 to 255 printable ASCII characters, no space at either end. */
  readonly idempotencyKey: string;
  readonly accountId: string;
  /** Whole minor units of the currency (cents), above 0. */
  readonly amountMinor: number;
  /** ISO 4217, three capital letters. */
  readonly currency: string;
  readonly description: string;
  /** The requestId of the charge; the provider keeps it, so its books can be compared with ours. */
  readonly reference: string;
}

/** What the provider decided. Both are final for the key. */
export type ChargeResult =
  | { readonly kind: 'charged'; readonly providerChargeId: string }
  | { readonly kind: 'declined'; readonly reason: string };

/** Charges accounts. */
export interface PaymentProvider {
  /**
   * Charges once per idempotency key.
   * @throws {PaymentError} when the answer is unknown or the request was refused.
   * @throws the reason of `signal` when it aborts first; whether the charge was made is then unknown.
   */
  charge(request: ChargeRequest, options?: { signal?: AbortSignal }): Promise<ChargeResult>;
  /** How long a key is remembered, ms. After that the same key charges again. */
  readonly idempotencyWindowMs: number;
}

/**
 * Why there is no usable answer.
 * - `timeout`, `connection`, `server-error`, `bad-answer`: the charge may or may not have been made; only the same
 *   key again can tell.
 * - `key-in-use`: the first request with this key is still being worked on. `try-later`: the provider is busy.
 * - `key-reused`: the key was used before with other content. `refused`: the request itself is wrong.
 */
export type PaymentFaultReason =
  'timeout' | 'connection' | 'server-error' | 'bad-answer' | 'key-in-use' | 'try-later' | 'key-reused' | 'refused';

const RETRYABLE: Readonly<Record<PaymentFaultReason, boolean>> = {
  timeout: true,
  connection: true,
  'server-error': true,
  'bad-answer': true,
  'key-in-use': true,
  'try-later': true,
  'key-reused': false,
  refused: false,
};

/** The provider gave no usable answer. When `retryable`, send the same request with the same key again. */
export class PaymentError extends OnlyonceError {
  readonly code = 'PAYMENT';
  readonly retryable: boolean;
  readonly reason: PaymentFaultReason;

  constructor(message: string, options: { reason: PaymentFaultReason; cause?: unknown }) {
    super(message, { cause: options.cause });
    this.reason = options.reason;
    this.retryable = RETRYABLE[options.reason];
  }
}
