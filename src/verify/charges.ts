/** The invariants of the charge flow. They know nothing of workers: what they are given was read from outside. */
import { groupBy, invariant, type Invariant } from './invariants.ts';

export interface LedgerEntry {
  readonly accountId: string;
  readonly requestId: string;
  readonly amountMinor: number;
  readonly providerChargeId: string;
}

export interface Account {
  readonly accountId: string;
  readonly openingBalance: number;
  readonly balance: number;
}

export interface EffectRecordState {
  readonly key: string;
  readonly status: string;
}

export interface ProviderCharge {
  readonly chargeId: string;
  /** The request id that the worker gave. */
  readonly reference: string;
  readonly accountId: string;
  readonly amountMinor: number;
}

export interface SentMessage {
  readonly messageId: string;
  /** Undefined for bodies that were sent unreadable on purpose. */
  readonly key: string | undefined;
  /** Sent on purpose with other contents than an earlier message of its key: one of the two must be dead-lettered. */
  readonly isConflict: boolean;
}

export interface DeadLetterState {
  /** The id of the message that was dead-lettered; undefined when the copy does not tell. */
  readonly messageId: string | undefined;
  readonly reason: string | undefined;
}

export interface AnsweredDelivery {
  readonly key: string;
  /** A digest of the answer that this delivery got. */
  readonly answer: string;
}

/** What was found. Parts that were not looked at are undefined, and the invariants about them are left out. */
export interface ChargesSnapshot {
  readonly accounts: readonly Account[];
  readonly ledger: readonly LedgerEntry[];
  readonly records: readonly EffectRecordState[];
  readonly deadLetters: readonly DeadLetterState[];
  /** Messages that are still on the queue: visible, delayed or in flight. */
  readonly queued: number;
  readonly providerCharges?: readonly ProviderCharge[];
  readonly sent?: readonly SentMessage[];
  readonly answers?: readonly AnsweredDelivery[];
}

export function checkCharges(snapshot: ChargesSnapshot): Invariant[] {
  const { providerCharges, sent, answers } = snapshot;
  return [
    oneLedgerEntryPerRequest(snapshot),
    balancesMatchLedger(snapshot),
    ...(providerCharges === undefined ? [] : [oneProviderChargePerRequest(snapshot, providerCharges)]),
    ...(answers === undefined ? [] : [sameAnswerToAll(answers)]),
    recordsMatchLedger(snapshot),
    ...(sent === undefined ? [] : [noneLost(snapshot, sent)]),
    deadLettersHaveReasons(snapshot),
  ];
}

function oneLedgerEntryPerRequest({ ledger }: ChargesSnapshot): Invariant {
  const violations = [...groupBy(ledger, (entry) => entry.requestId)]
    .filter(([, entries]) => entries.length > 1)
    .map(([requestId, entries]) => `${requestId}: ${String(entries.length)} ledger entries`);
  return invariant('C1', 'one ledger entry per request', { evidence: ledger.length, violations });
}

function balancesMatchLedger({ accounts, ledger }: ChargesSnapshot): Invariant {
  const byAccount = groupBy(ledger, (entry) => entry.accountId);
  const violations = accounts.flatMap((account) => {
    const charged = (byAccount.get(account.accountId) ?? []).reduce((sum, entry) => sum + entry.amountMinor, 0);
    const expected = account.openingBalance + charged;
    const fault = `${account.accountId}: balance ${String(account.balance)}, ledger says ${String(expected)}`;
    return account.balance === expected ? [] : [fault];
  });
  const known = new Set(accounts.map((account) => account.accountId));
  for (const accountId of byAccount.keys()) if (!known.has(accountId)) violations.push(`${accountId}: no account`);
  return invariant('C2', 'balance = opening balance + sum of the ledger', { evidence: accounts.length, violations });
}

function oneProviderChargePerRequest({ ledger }: ChargesSnapshot, charges: readonly ProviderCharge[]): Invariant {
  const entriesOf = groupBy(ledger, (entry) => entry.requestId);
  const violations: string[] = [];
  for (const [reference, group] of groupBy(charges, (charge) => charge.reference)) {
    const entries = entriesOf.get(reference);
    if (group.length > 1) violations.push(`${reference}: charged ${String(group.length)} times by the provider`);
    else if (entries === undefined) violations.push(`${reference}: charged by the provider, no ledger entry`);
    else if (!entries.some((entry) => isSameCharge(entry, group[0]))) {
      violations.push(`${reference}: the ledger names another charge, account or amount than the provider`);
    }
  }
  const charged = new Set(charges.map((charge) => charge.reference));
  for (const requestId of entriesOf.keys()) {
    if (!charged.has(requestId)) violations.push(`${requestId}: in the ledger, never charged by the provider`);
  }
  const statement = 'one provider charge per request, the one in the ledger';
  return invariant('C3', statement, { evidence: charges.length, violations });
}

function isSameCharge(entry: LedgerEntry, charge: ProviderCharge | undefined): boolean {
  return (
    entry.providerChargeId === charge?.chargeId &&
    entry.accountId === charge.accountId &&
    entry.amountMinor === charge.amountMinor
  );
}

function sameAnswerToAll(answers: readonly AnsweredDelivery[]): Invariant {
  const violations = [...groupBy(answers, (delivery) => delivery.key)]
    .filter(([, deliveries]) => new Set(deliveries.map((delivery) => delivery.answer)).size > 1)
    .map(([key]) => `${key}: deliveries were answered differently`);
  return invariant('C4', 'every delivery of a request got the same answer', { evidence: answers.length, violations });
}

function recordsMatchLedger({ records, ledger }: ChargesSnapshot): Invariant {
  const charged = new Set(ledger.map((entry) => entry.requestId));
  const completed = new Set(records.filter((record) => record.status === 'COMPLETED').map((record) => record.key));
  const violations = [
    ...[...completed].filter((key) => !charged.has(key)).map((key) => `${key}: COMPLETED without a ledger entry`),
    ...[...charged]
      .filter((key) => !completed.has(key))
      .map((key) => `${key}: ledger entry without a COMPLETED record`),
  ];
  const statement = 'a record is COMPLETED exactly when its ledger entry exists';
  return invariant('C5', statement, { evidence: records.length, violations });
}

/** Completed, rejected, dead-lettered, or still on the queue. What is on the queue cannot be named, only counted. */
function noneLost(snapshot: ChargesSnapshot, sent: readonly SentMessage[]): Invariant {
  const final = new Set(
    snapshot.records.filter(({ status }) => status === 'COMPLETED' || status === 'REJECTED').map(({ key }) => key),
  );
  for (const entry of snapshot.ledger) final.add(entry.requestId);
  const dead = new Set(snapshot.deadLetters.map((letter) => letter.messageId));
  // Which of two contradicting messages won does not matter here, only that the other one was told apart.
  const toldApart = new Set(sent.filter(({ messageId }) => dead.has(messageId)).map(({ key }) => key));
  const missing = sent.filter(({ key, messageId, isConflict }) => {
    if (dead.has(messageId)) return false;
    return key === undefined || !final.has(key) || (isConflict && !toldApart.has(key));
  });
  const unnamedLetters = snapshot.deadLetters.filter((letter) => letter.messageId === undefined).length;
  const excused = snapshot.queued + unnamedLetters;
  const violations =
    missing.length <= excused ? [] : missing.map(({ key, messageId }) => `${key ?? 'unreadable'} (${messageId}): lost`);
  return invariant('Q1', 'every message sent is accounted for, none is lost', { evidence: sent.length, violations });
}

function deadLettersHaveReasons({ deadLetters }: ChargesSnapshot): Invariant {
  const violations = deadLetters
    .filter((letter) => letter.reason === undefined)
    .map((letter) => `${letter.messageId ?? 'unknown message'}: dead-lettered without a reason`);
  return invariant('Q3', 'every dead letter tells its reason', { evidence: deadLetters.length, violations });
}
