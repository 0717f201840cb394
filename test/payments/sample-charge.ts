import type { ChargeBody } from '../../src/payments/charge-contract.ts';
import type { JournalEntry } from '../../src/payments/charge-journal.ts';

export const sampleBody: ChargeBody = {
  accountId: 'acc-1',
  amountMinor: 1250,
  currency: 'EUR',
  description: 'one coffee machine',
  reference: 'req-1',
};

export function sampleEntry(changes: Partial<JournalEntry> = {}): JournalEntry {
  return {
    idempotencyKey: 'key-1',
    requestHash: 'hash-1',
    reference: 'req-1',
    accountId: 'acc-1',
    amountMinor: 1250,
    currency: 'EUR',
    caller: null,
    decidedAtMs: 1_700_000_000_000,
    result: { kind: 'charged', providerChargeId: 'ch_1' },
    ...changes,
  };
}
