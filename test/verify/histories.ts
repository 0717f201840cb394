/** Random histories of the charge flow that are right, as what is found after them, and faults to put into one. */
import fc from 'fast-check';
import type { ChargesSnapshot } from '../../src/verify/charges.ts';

type Found = { -readonly [Part in keyof Required<ChargesSnapshot>]: Required<ChargesSnapshot>[Part] };

type Fate = 'completed' | 'rejected' | 'exhausted' | 'queued';

interface Request {
  readonly fate: Fate;
  readonly account: number;
  readonly amountMinor: number;
  readonly duplicates: number;
  readonly isContradicted: boolean;
}

const request: fc.Arbitrary<Request> = fc.record({
  fate: fc.constantFrom<Fate>('completed', 'completed', 'completed', 'rejected', 'exhausted', 'queued'),
  account: fc.nat(3),
  amountMinor: fc.integer({ min: 1, max: 1_000_000 }),
  duplicates: fc.nat(3),
  isContradicted: fc.boolean(),
});

/** At least one charge is completed, so that there is something to break. */
export const rightHistory: fc.Arbitrary<Found> = fc
  .record({
    requests: fc.array(request, { maxLength: 20 }),
    unreadable: fc.nat(3),
    openings: fc.array(fc.nat(1_000), { minLength: 4, maxLength: 4 }),
  })
  .map(({ requests, unreadable, openings }) => {
    const first: Request = { fate: 'completed', account: 0, amountMinor: 7, duplicates: 1, isContradicted: true };
    return foundAfter([first, ...requests], unreadable, openings);
  });

function foundAfter(requests: readonly Request[], unreadable: number, openings: readonly number[]): Found {
  const found = nothing();
  const balances = [...openings];
  for (const [number, made] of requests.entries()) {
    play(made, `r${String(number)}`, found);
    if (made.fate === 'completed') balances[made.account] = (balances[made.account] ?? 0) + made.amountMinor;
  }
  for (let number = 0; number < unreadable; number += 1) {
    const messageId = `unreadable-${String(number)}`;
    found.sent = [...found.sent, { messageId, key: undefined, isConflict: false }];
    found.deadLetters = [...found.deadLetters, { messageId, reason: 'invalid' }];
  }
  found.accounts = openings.map((openingBalance, account) => ({
    accountId: `a${String(account)}`,
    openingBalance,
    balance: balances[account] ?? 0,
  }));
  return found;
}

function play({ fate, account, amountMinor, duplicates, isContradicted }: Request, key: string, found: Found): void {
  const ids = Array.from({ length: duplicates + 1 }, (_, copy) => `${key}-${String(copy)}`);
  found.sent = [...found.sent, ...ids.map((messageId) => ({ messageId, key, isConflict: false }))];
  if (fate === 'queued') {
    found.queued += ids.length;
    return;
  }
  if (fate === 'exhausted') {
    found.records = [...found.records, { key, status: 'FAILED' }];
    found.deadLetters = [...found.deadLetters, ...ids.map((messageId) => ({ messageId, reason: 'exhausted' }))];
    return;
  }
  found.answers = [...found.answers, ...ids.map(() => ({ key, answer: `answer of ${key}` }))];
  if (isContradicted) {
    const messageId = `${key}-contradicted`;
    found.sent = [...found.sent, { messageId, key, isConflict: true }];
    found.deadLetters = [...found.deadLetters, { messageId, reason: 'conflict' }];
  }
  if (fate === 'rejected') {
    found.records = [...found.records, { key, status: 'REJECTED' }];
    return;
  }
  const chargeId = `charge of ${key}`;
  const entry = { accountId: `a${String(account)}`, requestId: key, amountMinor, providerChargeId: chargeId };
  found.records = [...found.records, { key, status: 'COMPLETED' }];
  found.ledger = [...found.ledger, entry];
  found.providerCharges = [
    ...found.providerCharges,
    { chargeId, reference: key, accountId: entry.accountId, amountMinor },
  ];
}

function nothing(): Found {
  return {
    accounts: [],
    ledger: [],
    records: [],
    deadLetters: [],
    queued: 0,
    providerCharges: [],
    sent: [],
    answers: [],
  };
}

export interface InjectedFault {
  readonly caughtBy: string;
  /** Others that the same fault must break too. */
  readonly alsoBreaks?: readonly string[];
  inject(found: Found): Found;
}

/** One thing each that must never be found. The first charge of every history is a completed one. */
export const FAULTS: Readonly<Record<string, InjectedFault>> = {
  'a second ledger entry that is in the balance too': {
    caughtBy: 'C1',
    inject: (found) => ({
      ...found,
      ledger: [...found.ledger, ...found.ledger.slice(0, 1)],
      accounts: found.accounts.map((account) =>
        account.accountId === found.ledger[0]?.accountId
          ? { ...account, balance: account.balance + found.ledger[0].amountMinor }
          : account,
      ),
    }),
  },
  'a balance that was added to twice': {
    caughtBy: 'C2',
    inject: (found) => ({
      ...found,
      accounts: found.accounts.map((account, index) =>
        index === 0 ? { ...account, balance: account.balance + 7 } : account,
      ),
    }),
  },
  'a ledger entry that was lost': {
    caughtBy: 'C2',
    alsoBreaks: ['C3', 'C5'],
    inject: (found) => ({ ...found, ledger: found.ledger.slice(1) }),
  },
  'a second charge by the provider': {
    caughtBy: 'C3',
    inject: (found) => ({
      ...found,
      providerCharges: [
        { chargeId: 'again', reference: 'r0', accountId: 'a0', amountMinor: 7 },
        ...found.providerCharges,
      ],
    }),
  },
  'an entry without a charge by the provider': {
    caughtBy: 'C3',
    inject: (found) => ({ ...found, providerCharges: found.providerCharges.slice(1) }),
  },
  'a delivery that was answered differently': {
    caughtBy: 'C4',
    inject: (found) => ({ ...found, answers: [{ key: 'r0', answer: 'something else' }, ...found.answers] }),
  },
  'a completed record that was lost': {
    caughtBy: 'C5',
    inject: (found) => ({ ...found, records: found.records.slice(1) }),
  },
  'a message that was lost': {
    caughtBy: 'Q1',
    inject: (found) => ({ ...found, sent: [...found.sent, { messageId: 'lost', key: 'lost', isConflict: false }] }),
  },
  'a conflict that was taken for a duplicate': {
    caughtBy: 'Q1',
    inject: (found) => ({
      ...found,
      deadLetters: found.deadLetters.filter(({ messageId }) => messageId !== 'r0-contradicted'),
    }),
  },
  'a dead letter without a reason': {
    caughtBy: 'Q3',
    inject: (found) => ({ ...found, deadLetters: [...found.deadLetters, { messageId: 'r0-0', reason: undefined }] }),
  },
};
