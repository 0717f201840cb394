/**
 * Charges an account once per request id: claimed commit with one outside call.
 *
 * 1. The ledger is asked first: it is kept for good, and the effect record is not. What it holds is not charged again,
 *    whichever queue brings it.
 * 2. The account is opened if it is new, and its currency is settled before any money moves.
 * 3. The provider is charged through a step: its key is the same for every attempt, so the provider charges once.
 * 4. Ledger entry, balance and effect record are committed in one transaction.
 */
import { OnlyonceError } from '../../errors.ts';
import { CHARGE_REQUESTED, type Charge } from '../../messages/charge.ts';
import type { PaymentProvider } from '../../payments/payment-provider.ts';
import { absent, equals } from '../../store/conditions.ts';
import { plus } from '../../store/expressions.ts';
import { accountKey, ledgerEntryKey, type Item } from '../../store/table.ts';
import type { TransactionAction } from '../../store/transactions/transaction.ts';
import type { Handler, HandlerContext, HandlerResult } from '../handler.ts';

/** What every delivery of a charge is answered with. */
export interface ChargeResponse {
  readonly requestId: string;
  readonly providerChargeId: string;
}

/** The ledger holds another charge under this request id: which of the two was meant, only a person can tell. */
export class ChargeConflictError extends OnlyonceError {
  readonly code = 'CHARGE_CONFLICT';
  readonly retryable = false;

  constructor(charge: Charge, entry: Item) {
    const booked = `${String(entry['amountMinor'])} ${String(entry['currency'])}`;
    const asked = `${String(charge.amountMinor)} ${charge.currency}`;
    super(`request ${charge.requestId}: account ${charge.accountId} was charged ${booked} for it, not ${asked}`);
  }
}

/** The handler of charges: at most one charge at the provider and one ledger entry per request id. */
export function createChargeHandler(provider: PaymentProvider): Handler<Charge> {
  return {
    contract: CHARGE_REQUESTED,
    async handle({ payload: charge }, context) {
      const booked = await context.get(ledgerEntryKey(charge.accountId, charge.requestId));
      if (booked !== undefined) return answerFromLedger(charge, booked);
      const currency = await openAccount(charge, context);
      if (currency !== charge.currency) {
        return rejected(`account ${charge.accountId} holds ${currency}, the charge is in ${charge.currency}`);
      }
      const result = await context.step(
        'provider-charge',
        ({ idempotencyKey, signal }) =>
          provider.charge({ ...charge, reference: charge.requestId, idempotencyKey }, { signal }),
        { idempotentForMs: provider.idempotencyWindowMs },
      );
      if (result.kind === 'declined') return rejected(`the payment provider declined: ${result.reason}`);

      const { providerChargeId } = result;
      const response: ChargeResponse = { requestId: charge.requestId, providerChargeId };
      return { kind: 'completed', response, effects: ledgerEffects(charge, providerChargeId) };
    },
  };
}

/**
 * The charge was made before and its record is gone, or it came through another queue: it is answered as it was then,
 * and nothing is applied.
 */
function answerFromLedger(charge: Charge, entry: Item): HandlerResult {
  const isSame = entry['amountMinor'] === charge.amountMinor && entry['currency'] === charge.currency;
  if (!isSame) throw new ChargeConflictError(charge, entry);
  const response: ChargeResponse = {
    requestId: charge.requestId,
    providerChargeId: String(entry['providerChargeId']),
  };
  return { kind: 'completed', response, effects: [] };
}

/**
 * The account's currency. A new account is opened with the currency of its first charge; that alone moves no money and
 * never changes again, so that the commit after the provider's charge cannot fail on it.
 */
async function openAccount(charge: Charge, context: HandlerContext): Promise<string> {
  const key = accountKey(charge.accountId);
  const known = await context.get(key);
  if (known !== undefined) return currencyOf(known);
  const opened = await context.update({
    key,
    change: { set: { currency: charge.currency, openingBalance: 0, balance: 0, version: 1 } },
    condition: absent(),
  });
  return opened.item === undefined ? charge.currency : currencyOf(opened.item);
}

function ledgerEffects(charge: Charge, providerChargeId: string): TransactionAction[] {
  const { requestId, accountId, amountMinor, currency, description } = charge;
  return [
    {
      kind: 'put',
      label: 'ledger entry',
      item: {
        ...ledgerEntryKey(accountId, requestId),
        requestId,
        amountMinor,
        currency,
        description,
        providerChargeId,
      },
      condition: absent(),
    },
    {
      kind: 'update',
      label: 'balance',
      key: accountKey(accountId),
      change: { set: { balance: plus(amountMinor, 0), version: plus(1, 0) } },
      condition: equals('currency', currency),
    },
  ];
}

function currencyOf(account: Item): string {
  return String(account['currency']);
}

function rejected(reason: string): HandlerResult {
  return { kind: 'rejected', reason };
}
