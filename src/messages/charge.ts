/** A request to charge an account: made once per request id, however often the message comes. */
import { z } from 'zod';
import { defineMessage, type MessageContract } from './contract.ts';

/** The currencies of ISO 4217 that this runtime knows. */
const CURRENCIES = new Set(Intl.supportedValuesOf('currency'));

/** DynamoDB keys are made of an id, and people read it in logs. */
const idSchema: z.ZodType<string> = z
  .string()
  .min(1)
  .max(100)
  .regex(/^[\w.:@/+-]+$/, 'only letters, digits and _ . : @ / + - are allowed');

/** What an account is charged, and why. */
export interface Charge {
  /** The business key. The producer makes it once per charge and repeats it with each retry. */
  readonly requestId: string;
  readonly accountId: string;
  /** In the currency's minor unit (cents): integers, since 0.1 + 0.2 is not 0.3. */
  readonly amountMinor: number;
  /** ISO 4217, three capital letters. */
  readonly currency: string;
  readonly description: string;
}

const chargeSchema: z.ZodType<Charge> = z.strictObject({
  requestId: idSchema,
  accountId: idSchema,
  amountMinor: z.int().positive().max(1_000_000_000_000),
  currency: z.string().refine((code) => CURRENCIES.has(code), 'must be an ISO 4217 code such as EUR'),
  description: z.string().max(500),
});

/** The contract of a charge; its business key is the request id. */
export const CHARGE_REQUESTED: MessageContract<Charge> = defineMessage({
  type: 'charge.requested',
  version: 1,
  schema: chargeSchema,
  keyOf: (charge) => charge.requestId,
});
