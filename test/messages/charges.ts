import type { Charge } from '../../src/messages/charge.ts';

/** A charge that is right in every field but those given. */
export function charge(fields: Partial<Charge> = {}): Charge {
  return {
    requestId: 'req_1',
    accountId: 'acct_1',
    amountMinor: 1_250,
    currency: 'EUR',
    description: 'Kaffeerösterei, order 17',
    ...fields,
  };
}
