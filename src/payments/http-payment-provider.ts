/**
 * The payment port over HTTP. One request per call: trying again is the worker's decision, made with the same key.
 * Nothing of an answer is used before it passed its schema, and no answer is read without a bound in time and size.
 */
import type { z } from 'zod';
import { systemClock } from '../clock.ts';
import type { Clock } from '../clock.ts';
import { ConfigurationError, messageOf } from '../errors.ts';
import type { OptionFault } from '../errors.ts';
import {
  CALLER_HEADER,
  CHARGES_PATH,
  IDEMPOTENCY_WINDOW_MS,
  KEY_IN_USE,
  callerSchema,
  chargeBodySchema,
  chargeResultSchema,
  describeIssues,
  errorBodySchema,
  idempotencyKeySchema,
} from './charge-contract.ts';
import type { ErrorBody } from './charge-contract.ts';
import { PaymentError } from './payment-provider.ts';
import type { ChargeRequest, ChargeResult, PaymentProvider } from './payment-provider.ts';

/** Options of `createHttpPaymentProvider`. */
export interface HttpPaymentProviderOptions {
  /** Where the provider is: http or https, a path prefix is kept. No credentials, query or fragment. */
  readonly baseUrl: string;
  /** Longest time from the call to the last byte of the answer. Unit: ms. Range: 1-300000. @defaultValue 10000 */
  readonly timeoutMs?: number;
  /** How long the provider remembers a key. Unit: ms. Minimum: 1. @defaultValue 86400000 */
  readonly idempotencyWindowMs?: number;
  /** Names this process in the provider's journal. 1 to 200 printable ASCII characters. @defaultValue none */
  readonly caller?: string;
  /** Where the time-out is measured. @defaultValue systemClock */
  readonly clock?: Clock;
}

/** The options with every default filled in. */
export interface ResolvedHttpPaymentProviderOptions {
  readonly chargesUrl: string;
  readonly timeoutMs: number;
  readonly idempotencyWindowMs: number;
  readonly caller: string | undefined;
  readonly clock: Clock;
}

const DEFAULT_TIMEOUT_MS = 10_000;
/** Node's own fetch gives up waiting for headers after this time, so a longer time-out would not be ours. */
const MAX_TIMEOUT_MS = 300_000;
/** A charge result is far below 1 KiB; the rest is room for other providers' fields. */
const MAX_ANSWER_BYTES = 65_536;

/**
 * Fills in the defaults and checks everything once.
 * @throws {ConfigurationError} listing every wrong option.
 */
export function resolveHttpPaymentProviderOptions(
  options: HttpPaymentProviderOptions,
): ResolvedHttpPaymentProviderOptions {
  const { timeoutMs = DEFAULT_TIMEOUT_MS, idempotencyWindowMs = IDEMPOTENCY_WINDOW_MS, caller } = options;
  const faults: OptionFault[] = [];
  const chargesUrl = resolveChargesUrl(options.baseUrl);
  if (chargesUrl === undefined) {
    const rule = 'must be an http or https URL without credentials, query or fragment';
    faults.push({ name: 'baseUrl', rule, value: options.baseUrl });
  }
  if (!Number.isInteger(timeoutMs) || timeoutMs < 1 || timeoutMs > MAX_TIMEOUT_MS) {
    const rule = `must be a whole number from 1 to ${String(MAX_TIMEOUT_MS)}`;
    faults.push({ name: 'timeoutMs', rule, value: timeoutMs });
  }
  if (!Number.isSafeInteger(idempotencyWindowMs) || idempotencyWindowMs < 1) {
    faults.push({ name: 'idempotencyWindowMs', rule: 'must be a whole number above 0', value: idempotencyWindowMs });
  }
  if (caller !== undefined && !callerSchema.safeParse(caller).success) {
    faults.push({ name: 'caller', rule: 'must be 1 to 200 printable ASCII characters', value: caller });
  }
  if (faults.length > 0 || chargesUrl === undefined) throw new ConfigurationError('payment provider', faults);
  return { chargesUrl, timeoutMs, idempotencyWindowMs, caller, clock: options.clock ?? systemClock };
}

/**
 * Makes a client for a provider that speaks the contract of `charge-contract.ts`.
 * @throws {ConfigurationError} listing every wrong option.
 */
export function createHttpPaymentProvider(options: HttpPaymentProviderOptions): PaymentProvider {
  return new HttpPaymentProvider(resolveHttpPaymentProviderOptions(options));
}

class HttpPaymentProvider implements PaymentProvider {
  readonly idempotencyWindowMs: number;
  readonly #options: ResolvedHttpPaymentProviderOptions;

  constructor(options: ResolvedHttpPaymentProviderOptions) {
    this.#options = options;
    this.idempotencyWindowMs = options.idempotencyWindowMs;
  }

  async charge(request: ChargeRequest, options: { signal?: AbortSignal } = {}): Promise<ChargeResult> {
    options.signal?.throwIfAborted();
    const init = toRequestInit(request, this.#options.caller);
    const deadline = new Deadline(this.#options, options.signal);
    try {
      const response = await fetch(this.#options.chargesUrl, { ...init, signal: deadline.signal });
      return interpret(response.status, await readBounded(response));
    } catch (error) {
      if (error instanceof PaymentError) throw error;
      if (deadline.timedOut) {
        const message = `no answer from the payment provider within ${String(this.#options.timeoutMs)} ms`;
        throw new PaymentError(message, { reason: 'timeout', cause: error });
      }
      options.signal?.throwIfAborted();
      // fetch says only "fetch failed"; what happened is in its cause.
      const detail = messageOf(error instanceof Error ? (error.cause ?? error) : error);
      throw new PaymentError(`the connection to the payment provider failed: ${detail}`, {
        reason: 'connection',
        cause: error,
      });
    } finally {
      deadline.end();
    }
  }
}

/**
 * Aborts on time-out or with the caller. Not AbortSignal.any over AbortSignal.timeout: this one can be driven by a
 * test clock, is held by nobody but the running call, and leaves no timer or listener behind.
 */
class Deadline {
  timedOut = false;
  readonly #controller = new AbortController();
  readonly #cancelTimer: () => void;
  readonly #caller: AbortSignal | undefined;
  readonly #onCallerAbort = (): void => {
    this.#controller.abort(this.#caller?.reason);
  };

  constructor(limits: { clock: Clock; timeoutMs: number }, caller: AbortSignal | undefined) {
    this.#caller = caller;
    caller?.addEventListener('abort', this.#onCallerAbort, { once: true });
    this.#cancelTimer = limits.clock.schedule(() => {
      this.timedOut = !this.#controller.signal.aborted;
      this.#controller.abort();
    }, limits.timeoutMs);
  }

  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  end(): void {
    this.#cancelTimer();
    this.#caller?.removeEventListener('abort', this.#onCallerAbort);
  }
}

function resolveChargesUrl(baseUrl: string): string | undefined {
  const url = URL.parse(baseUrl);
  if (url === null || !['http:', 'https:'].includes(url.protocol)) return undefined;
  if (url.username !== '' || url.password !== '' || url.search !== '' || url.hash !== '') return undefined;
  url.pathname = url.pathname.replace(/\/+$/, '') + CHARGES_PATH;
  return url.href;
}

/** Checks the request here, because a fault found by the provider could look like one of the network. */
function toRequestInit(request: ChargeRequest, caller: string | undefined): RequestInit {
  const { idempotencyKey, accountId, amountMinor, currency, description, reference } = request;
  const key = checked(idempotencyKeySchema, idempotencyKey, 'idempotencyKey');
  const body = checked(chargeBodySchema, { accountId, amountMinor, currency, description, reference }, 'charge');
  return {
    method: 'POST',
    // A redirected POST could end anywhere, or as a GET; a provider's API has no reason to send one.
    redirect: 'manual',
    headers: {
      'content-type': 'application/json',
      'idempotency-key': key,
      ...(caller === undefined ? {} : { [CALLER_HEADER]: caller }),
    },
    body: JSON.stringify(body),
  };
}

function checked<T>(schema: z.ZodType<T>, value: unknown, subject: string): T {
  const parsed = schema.safeParse(value);
  if (parsed.success) return parsed.data;
  throw new PaymentError(`not sent, the ${subject} is wrong: ${describeIssues(parsed.error)}`, { reason: 'refused' });
}

async function readBounded(response: Response): Promise<string> {
  if (response.body === null) return '';
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  // Leaving the loop by a throw cancels the stream, which ends the connection.
  // Its chunks are bytes by the Fetch standard, though the type does not say so.
  for await (const chunk of response.body as AsyncIterable<Uint8Array>) {
    bytes += chunk.byteLength;
    if (bytes > MAX_ANSWER_BYTES) {
      throw new PaymentError(`the payment provider's answer is larger than ${String(MAX_ANSWER_BYTES)} bytes`, {
        reason: 'bad-answer',
      });
    }
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString('utf8');
}

function interpret(status: number, text: string): ChargeResult {
  const value = parseJson(text);
  if ((status >= 200 && status < 300) || status === 402) return toChargeResult(status, value);
  const { code, message } = toErrorBody(value).error;
  const detail = `the payment provider answered ${String(status)} ${code}: ${message}`.slice(0, 500);
  if (status >= 500) throw new PaymentError(detail, { reason: 'server-error' });
  if (status === 409) throw new PaymentError(detail, { reason: code === KEY_IN_USE ? 'key-in-use' : 'key-reused' });
  if ([408, 425, 429].includes(status)) throw new PaymentError(detail, { reason: 'try-later' });
  throw new PaymentError(detail, { reason: 'refused' });
}

function toChargeResult(status: number, value: unknown): ChargeResult {
  const parsed = chargeResultSchema.safeParse(value);
  if (!parsed.success) {
    const detail = describeIssues(parsed.error);
    throw new PaymentError(`the payment provider's answer is unreadable: ${detail}`, { reason: 'bad-answer' });
  }
  if (status === 402 && parsed.data.kind !== 'declined') {
    throw new PaymentError('the payment provider answered 402 with a charge', { reason: 'bad-answer' });
  }
  return parsed.data;
}

function toErrorBody(value: unknown): ErrorBody {
  const parsed = errorBodySchema.safeParse(value);
  return parsed.success ? parsed.data : { error: { code: 'unknown', message: 'no readable error' } };
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
