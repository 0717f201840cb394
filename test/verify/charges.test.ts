import { expect, test } from 'vitest';
import { checkCharges, type ChargesSnapshot } from '../../src/verify/charges.ts';
import { invariant } from '../../src/verify/invariants.ts';

/** Two charges on one account, a rejected one, a conflict and an unreadable message, all as they should be. */
const GOOD: Required<ChargesSnapshot> = {
  accounts: [{ accountId: 'a', openingBalance: 100, balance: 450 }],
  ledger: [
    { accountId: 'a', requestId: 'r1', amountMinor: 150, providerChargeId: 'ch1' },
    { accountId: 'a', requestId: 'r2', amountMinor: 200, providerChargeId: 'ch2' },
  ],
  records: [
    { key: 'r1', status: 'COMPLETED' },
    { key: 'r2', status: 'COMPLETED' },
    { key: 'r3', status: 'REJECTED' },
  ],
  deadLetters: [
    { messageId: 'm4', reason: 'conflict' },
    { messageId: 'm5', reason: 'invalid' },
  ],
  queued: 0,
  providerCharges: [
    { chargeId: 'ch1', reference: 'r1', accountId: 'a', amountMinor: 150 },
    { chargeId: 'ch2', reference: 'r2', accountId: 'a', amountMinor: 200 },
  ],
  sent: [
    { messageId: 'm1', key: 'r1', isConflict: false },
    { messageId: 'm2', key: 'r2', isConflict: false },
    { messageId: 'm3', key: 'r3', isConflict: false },
    { messageId: 'm4', key: 'r1', isConflict: true },
    { messageId: 'm5', key: undefined, isConflict: false },
  ],
  answers: [
    { key: 'r1', answer: 'x' },
    { key: 'r1', answer: 'x' },
    { key: 'r2', answer: 'y' },
  ],
};

test('a snapshot in which everything is right passes every invariant, each with its evidence', () => {
  // Act
  const invariants = checkCharges(GOOD);

  // Assert
  expect(invariants.map(({ id, ok, evidence }) => ({ id, ok, evidence }))).toEqual([
    { id: 'C1', ok: true, evidence: 2 },
    { id: 'C2', ok: true, evidence: 1 },
    { id: 'C3', ok: true, evidence: 2 },
    { id: 'C4', ok: true, evidence: 3 },
    { id: 'C5', ok: true, evidence: 3 },
    { id: 'Q1', ok: true, evidence: 5 },
    { id: 'Q3', ok: true, evidence: 2 },
  ]);
  expect(invariants.flatMap(({ violations }) => violations)).toEqual([]);
});

test('invariants about what was not looked at are left out', () => {
  // Arrange
  const { providerCharges: _charges, sent: _sent, answers: _answers, ...tableAndQueues } = GOOD;

  // Act
  const ids = checkCharges(tableAndQueues).map(({ id }) => id);

  // Assert
  expect(ids).toEqual(['C1', 'C2', 'C5', 'Q3']);
});

test.each<[string, Partial<ChargesSnapshot>, Record<string, string>]>([
  [
    'a second ledger entry',
    { ledger: [...GOOD.ledger, entryOf('r1', 150)], accounts: [{ accountId: 'a', openingBalance: 100, balance: 600 }] },
    { C1: 'r1: 2 ledger entries' },
  ],
  [
    'a second ledger entry on another account',
    {
      ledger: [...GOOD.ledger, { ...entryOf('r1', 150), accountId: 'b' }],
      accounts: [...GOOD.accounts, { accountId: 'b', openingBalance: 0, balance: 150 }],
    },
    { C1: 'r1: 2 ledger entries' },
  ],
  [
    'a balance that is off by one',
    { accounts: [{ accountId: 'a', openingBalance: 100, balance: 451 }] },
    { C2: 'a: balance 451, ledger says 450' },
  ],
  [
    'a balance that is no number',
    { accounts: [{ accountId: 'a', openingBalance: 100, balance: Number.NaN }] },
    { C2: 'a: balance NaN, ledger says 450' },
  ],
  ['an account that is missing', { accounts: [] }, { C2: 'a: no account' }],
  [
    'a second charge by the provider',
    {
      providerCharges: [
        ...GOOD.providerCharges,
        { chargeId: 'ch3', reference: 'r1', accountId: 'a', amountMinor: 150 },
      ],
    },
    { C3: 'r1: charged 2 times by the provider' },
  ],
  [
    'a charge by the provider that the ledger does not know',
    {
      providerCharges: [...GOOD.providerCharges, { chargeId: 'ch3', reference: 'r3', accountId: 'a', amountMinor: 1 }],
    },
    { C3: 'r3: charged by the provider, no ledger entry' },
  ],
  [
    'a charge that the provider made to another account',
    { providerCharges: GOOD.providerCharges.map((charge) => ({ ...charge, accountId: 'b' })) },
    { C3: 'r1: the ledger names another charge, account or amount than the provider' },
  ],
  [
    'a ledger entry that the provider never charged',
    { providerCharges: GOOD.providerCharges.slice(0, 1) },
    { C3: 'r2: in the ledger, never charged by the provider' },
  ],
  [
    'a ledger entry that names another charge',
    { providerCharges: GOOD.providerCharges.map((charge) => ({ ...charge, chargeId: `other-${charge.chargeId}` })) },
    { C3: 'r1: the ledger names another charge, account or amount than the provider' },
  ],
  [
    'an amount that differs from the provider',
    { providerCharges: GOOD.providerCharges.map((charge) => ({ ...charge, amountMinor: charge.amountMinor + 1 })) },
    { C3: 'r1: the ledger names another charge, account or amount than the provider' },
  ],
  [
    'two answers to one request',
    { answers: [...GOOD.answers, { key: 'r2', answer: 'z' }] },
    { C4: 'r2: deliveries were answered differently' },
  ],
  [
    'a completed record without an entry',
    { records: [...GOOD.records, { key: 'r9', status: 'COMPLETED' }] },
    { C5: 'r9: COMPLETED without a ledger entry' },
  ],
  [
    'an entry whose record is still in progress',
    { records: [{ key: 'r1', status: 'IN_PROGRESS' }, ...GOOD.records.slice(1)] },
    { C5: 'r1: ledger entry without a COMPLETED record' },
  ],
  [
    'an entry whose record is rejected',
    { records: [{ key: 'r1', status: 'REJECTED' }, ...GOOD.records.slice(1)] },
    { C5: 'r1: ledger entry without a COMPLETED record' },
  ],
  [
    'a message without a trace',
    { sent: [...GOOD.sent, { messageId: 'm9', key: 'r9', isConflict: false }] },
    { Q1: 'r9 (m9): lost' },
  ],
  [
    'a message whose record only failed',
    {
      records: [...GOOD.records, { key: 'r9', status: 'FAILED' }],
      sent: [...GOOD.sent, { messageId: 'm9', key: 'r9', isConflict: false }],
    },
    { Q1: 'r9 (m9): lost' },
  ],
  ['a conflict that nobody noticed', { deadLetters: GOOD.deadLetters.slice(1) }, { Q1: 'r1 (m4): lost' }],
  [
    'an unreadable message that was dropped',
    { deadLetters: GOOD.deadLetters.slice(0, 1) },
    { Q1: 'unreadable (m5): lost' },
  ],
  [
    'a dead letter without a reason',
    { deadLetters: [...GOOD.deadLetters, { messageId: 'm6', reason: undefined }] },
    { Q3: 'm6: dead-lettered without a reason' },
  ],
  [
    'a dead letter that names nothing at all',
    { deadLetters: [...GOOD.deadLetters, { messageId: undefined, reason: undefined }] },
    { Q3: 'unknown message: dead-lettered without a reason' },
  ],
])('%s breaks one invariant and is named', (_fault, change, expected) => {
  // Act
  const broken = checkCharges({ ...GOOD, ...change }).filter(({ ok }) => !ok);

  // Assert
  expect(Object.fromEntries(broken.map(({ id, violations }) => [id, violations[0]]))).toEqual(expected);
});

test('a message that is missing may still be on the queue, but not more than the queue holds', () => {
  // Arrange
  const sent = [
    ...GOOD.sent,
    { messageId: 'm8', key: 'r8', isConflict: false },
    { messageId: 'm9', key: 'r9', isConflict: false },
  ];

  // Act
  const found = [2, 1].map((queued) => checkCharges({ ...GOOD, sent, queued }).find(({ id }) => id === 'Q1')?.ok);

  // Assert
  expect(found).toEqual([true, false]);
});

test('of two messages that contradict each other it does not matter which one was dead-lettered', () => {
  // Arrange
  const deadLetters = [
    { messageId: 'm1', reason: 'conflict' },
    { messageId: 'm5', reason: 'invalid' },
  ];

  // Act
  const broken = checkCharges({ ...GOOD, deadLetters }).filter(({ ok }) => !ok);

  // Assert
  expect(broken).toEqual([]);
});

test('an invariant with many violations keeps ten of them and stays broken', () => {
  // Arrange
  const violations = Array.from({ length: 25 }, (_, index) => `violation ${String(index)}`);

  // Act
  const broken = invariant('X', 'nothing is wrong', { evidence: 25, violations });

  // Assert
  expect(broken.ok).toBe(false);
  expect(broken.violations).toEqual(violations.slice(0, 10));
});

function entryOf(requestId: string, amountMinor: number) {
  return { accountId: 'a', requestId, amountMinor, providerChargeId: 'ch1' };
}
