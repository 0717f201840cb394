/** What a demo found, for machines and for people who see it for the first time. */
import { invariant, type Invariant } from '../../verify/invariants.ts';
import type { ChargesSnapshot } from '../../verify/charges.ts';
import type { PlannedSend } from '../../producers/duplicates.ts';
import { textTable } from '../output.ts';
import type { WorkEvent } from '../work-events.ts';
import type { Fault } from './faults.ts';

export interface ChargesTally {
  readonly sent: number;
  readonly unique: number;
  readonly delivered: number;
  readonly applied: number;
  readonly replayed: number;
  readonly conflicts: number;
  readonly invalid: number;
  readonly takenOver: number;
}

export interface DemoResult {
  readonly ok: boolean;
  readonly seed: number;
  readonly seconds: number;
  readonly protection: 'full' | 'none';
  readonly flows: { readonly charges: ChargesTally };
  readonly faults: readonly Fault[];
  readonly invariants: readonly Invariant[];
}

export function tallyCharges(
  sends: readonly PlannedSend[],
  events: readonly WorkEvent[],
  snapshot: ChargesSnapshot,
): ChargesTally {
  const outcomes = events.filter((event) => event.event === 'outcome');
  const deadFor = (reason: string): number => snapshot.deadLetters.filter((letter) => letter.reason === reason).length;
  return {
    sent: sends.length,
    unique: sends.filter((send) => send.kind === 'original').length,
    delivered: events.filter((event) => event.event === 'delivery').length,
    applied: snapshot.ledger.length,
    replayed: outcomes.filter((event) => event.outcome === 'replayed').length,
    conflicts: deadFor('conflict'),
    invalid: deadFor('invalid'),
    takenOver: outcomes.filter((event) => event.takenOver === true).length,
  };
}

/** A run in which nothing went wrong proves nothing: both faults must have struck, with both workers mid-charge. */
export function faultsStruck(faults: readonly Fault[]): Invariant {
  const violations = (['killed', 'frozen'] as const)
    .filter((kind) => !faults.some((fault) => fault.kind === kind))
    .map((kind) => `no worker was ${kind} in the middle of a charge`);
  const statement = 'a worker was killed and another frozen between the provider call and the commit';
  return invariant('X2', statement, { evidence: faults.length, violations });
}

export function demoText(result: DemoResult, sends: readonly PlannedSend[]): string {
  const { charges } = result.flows;
  const dead = charges.conflicts + charges.invalid;
  const rows = [
    ['sent', charges.sent, describePlan(sends)],
    ['delivered', charges.delivered, 'SQS delivers at least once'],
    ['applied', charges.applied, `of ${String(charges.unique)} charges`],
    ['duplicates suppressed', charges.replayed, 'answered from the effect record'],
    ['taken over', charges.takenOver, 'from workers that were killed or frozen'],
    ['dead-lettered', dead, `${String(charges.conflicts)} conflict, ${String(charges.invalid)} invalid`],
  ] as const;
  const invariants = result.invariants.map(({ id, ok, evidence, statement }) => [
    ok ? 'holds' : 'BROKEN',
    id,
    evidence,
    statement,
  ]);
  const broken = result.invariants.filter((each) => !each.ok).map(({ id }) => id);
  const verdict = result.ok
    ? 'Every charge was made exactly once.'
    : `BROKEN: ${broken.join(', ')}${result.protection === 'none' ? ' (this is what --protection none is for)' : ''}`;
  return [
    '',
    textTable(rows),
    '',
    ...result.faults.map(faultText),
    '',
    textTable([['', '', 'looked at', ''], ...invariants]),
    '',
    `${verdict}  seed ${String(result.seed)}, ${String(result.seconds)} s`,
  ].join('\n');
}

export function faultText(fault: Fault): string {
  const where = `between the provider's charge of ${fault.key} and its commit`;
  if (fault.kind === 'killed') return `${fault.worker} was killed (SIGKILL) ${where}`;
  return `${fault.worker} was frozen (SIGSTOP) ${where}, beyond its lease; it woke up to: ${fault.wokeUpTo ?? 'nothing'}`;
}

function describePlan(sends: readonly PlannedSend[]): string {
  const count = (...kinds: PlannedSend['kind'][]): string =>
    String(sends.filter((send) => kinds.includes(send.kind)).length);
  const duplicates = count('duplicate', 'delayed-duplicate', 'reordered-duplicate');
  return `${count('original')} charges, ${duplicates} duplicates, ${count('conflict')} conflicting, ${count('malformed')} malformed`;
}
