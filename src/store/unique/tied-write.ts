/**
 * One transaction of an item and the sentinels of its value, and what its refusal means.
 *
 * The item's own condition speaks first: when the item is not what was read, whatever else was refused follows from
 * that. Then the claim: the value is another's. Last the former value: the sentinel to be freed is not where it was
 * thought to be, although the item still has the value, so that another form of the same transaction may do.
 */
import { fullJitterMs, type Backoff } from '../../backoff.ts';
import { sleep } from '../../clock.ts';
import { BackendError } from '../../errors.ts';
import type { StoreContext } from '../context.ts';
import type { Item } from '../table.ts';
import type { TransactionAction } from '../transactions/transaction.ts';
import { TransactionCancelledError } from '../transactions/transaction-writer.ts';

/** The actions of a tied write, in their order. */
export interface TiedActions {
  readonly item: TransactionAction;
  readonly claim?: TransactionAction;
  readonly former?: TransactionAction;
}

export type TiedAnswer =
  | { readonly kind: 'written' }
  | { readonly kind: 'item refused'; readonly current: Item | undefined; readonly wasUnanswered: boolean }
  | { readonly kind: 'taken'; readonly sentinel: Item }
  | { readonly kind: 'former moved' };

/**
 * Sends it once; the writer repeats it while only other writers are in the way.
 * @throws {BackendError} {TransactionCancelledError} for what is no answer: faults, throttling, conflicts without end.
 */
export async function writeTied(context: StoreContext, actions: TiedActions): Promise<TiedAnswer> {
  const { item, claim, former } = actions;
  const inOrder = [item, claim, former].filter((action) => action !== undefined);
  let wasUnanswered = false;
  try {
    await context.transactions.write(inOrder, {
      // Asked only after a try without an answer. The item does not say whose write it was; the sentinel will.
      wasApplied() {
        wasUnanswered = true;
        return false;
      },
    });
    return { kind: 'written' };
  } catch (error) {
    if (!(error instanceof TransactionCancelledError)) throw error;
    const refused = (action: TransactionAction | undefined) =>
      error.failedConditions.find(({ index }) => inOrder[index] === action);
    const itemRefusal = refused(item);
    if (itemRefusal !== undefined) return { kind: 'item refused', current: itemRefusal.item, wasUnanswered };
    const claimRefusal = claim && refused(claim);
    if (claimRefusal?.item !== undefined) return { kind: 'taken', sentinel: claimRefusal.item };
    if (former !== undefined && refused(former) !== undefined) return { kind: 'former moved' };
    throw error;
  }
}

const MAX_FORMS = 6;
const BACKOFF: Backoff = { baseMs: 25, capMs: 500 };

/**
 * Tries the forms of a transaction in turn until one is applied or refused for good. Only the former value's sentinel
 * moves between two tries: the item was found unchanged each time.
 * @returns `former moved` when it moved each time.
 */
export async function writeTiedInForms(
  context: StoreContext,
  forms: readonly [TiedActions, ...TiedActions[]],
): Promise<TiedAnswer> {
  for (let attempt = 1; ; attempt += 1) {
    const form = forms[(attempt - 1) % forms.length] ?? forms[0];
    const answer = await writeTied(context, form);
    if (answer.kind !== 'former moved' || attempt === MAX_FORMS) return answer;
    await sleep(context.clock, fullJitterMs(attempt, BACKOFF, context.random));
  }
}

/** Neither the refusal nor what is stored tells whether the try without an answer was applied. */
export function ambiguousWrite(what: string): BackendError {
  return new BackendError(`DynamoDB: ${what} went unanswered, and the item has changed since: read it, then decide`, {
    reason: 'ambiguous',
    retryable: true,
  });
}
