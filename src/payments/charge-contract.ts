/**
 * What goes over the wire between the HTTP client and a provider: one place for schemas, header names and limits, so
 * that the two sides cannot drift apart.
 */
import { z } from 'zod';
import type { ChargeResult } from './payment-provider.ts';

/** Where charges are posted and listed, below the base URL. */
export const CHARGES_PATH = '/v1/charges';
/** Names the process that asked; kept in the journal, no part of what makes two requests the same. */
export const CALLER_HEADER = 'x-caller';
/** The request may not be larger. Unit: bytes. */
export const MAX_BODY_BYTES = 65_536;
/** How long providers remember a key by default. Unit: ms. */
export const IDEMPOTENCY_WINDOW_MS = 86_400_000;

/** The body of `POST /v1/charges`. The key is a header, as with real providers. */
export interface ChargeBody {
  readonly accountId: string;
  readonly amountMinor: number;
  readonly currency: string;
  readonly description: string;
  readonly reference: string;
}

/** The two error codes that share status 409 and need different handling. */
export const KEY_REUSED = 'idempotency_key_reused';
export const KEY_IN_USE = 'idempotency_key_in_use';

/** What a header can carry unchanged: printable ASCII without a space at either end, which HTTP would strip. */
const headerText = (maxLength: number): z.ZodString =>
  z
    .string()
    .min(1)
    .max(maxLength)
    .regex(/^[!-~](?:[ -~]*[!-~])?$/, 'must be printable ASCII without a space at either end');

export const idempotencyKeySchema: z.ZodType<string> = headerText(255);
export const callerSchema: z.ZodType<string> = headerText(200);

export const chargeBodySchema: z.ZodType<ChargeBody> = z.strictObject({
  accountId: z.string().min(1).max(256),
  amountMinor: z.int().positive(),
  currency: z.string().regex(/^[A-Z]{3}$/, 'must be three capital letters'),
  description: z.string().max(1000),
  reference: z.string().min(1).max(256),
});

export const chargeResultSchema: z.ZodType<ChargeResult> = z.discriminatedUnion('kind', [
  z.object({ kind: z.literal('charged'), providerChargeId: z.string().min(1).max(256) }),
  z.object({ kind: z.literal('declined'), reason: z.string().max(1000) }),
]);

/** The body of every answer that is not a `ChargeResult`. */
export interface ErrorBody {
  readonly error: { readonly code: string; readonly message: string };
}

export const errorBodySchema: z.ZodType<ErrorBody> = z.object({
  error: z.object({ code: z.string(), message: z.string() }),
});

/** One line per fault of a value, with the path to it. */
export function describeIssues(error: z.ZodError): string {
  return error.issues
    .slice(0, 10)
    .map((issue) => `${issue.path.join('.') || 'value'}: ${issue.message}`)
    .join('; ');
}
