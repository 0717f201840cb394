import { expect, test } from 'vitest';
import { processLab } from '../support/process-bench.ts';
import {
  AMOUNT_MINOR,
  crashAt,
  crashTable,
  inParallel,
  nameOf,
  recordTrail,
  VISIBILITY_SECONDS,
  type Aftermath,
  type CrashPoint,
} from '../support/process-crash.ts';

/** Every request of a charge on an account that is not there yet. A new one must get its place in the sweep. */
const CHARGE_TRAIL = [
  'receive',
  'claim',
  'read the ledger entry',
  'read the account',
  'open the account',
  'charge at the provider',
  'store the step',
  'commit',
  'delete',
];
const UNPROTECTED_TRAIL = ['receive', 'charge at the provider', 'commit', 'delete'];
const AT_ONCE = 4;
/** The one test in which time is the requirement: a message is back after its visibility timeout, and then done. */
const RECOVERY_LIMIT_MS = VISIBILITY_SECONDS * 1_000 + 2_000;

const ONCE = {
  providerCharges: 1,
  ledgerEntries: 1,
  balance: AMOUNT_MINOR,
  status: 'COMPLETED',
  queued: 0,
  deadLetters: 0,
};

const lab = processLab();

test('a charge sends the requests that the sweep knows, each once', async () => {
  // Act
  const trail = await recordTrail(lab);

  // Assert
  expect(trail).toEqual(CHARGE_TRAIL);
});

test(
  'a worker killed before or after any request of a charge leaves a charge that the next one finishes once',
  { timeout: 120_000 },
  async ({ annotate }) => {
    // Act
    const aftermaths = await inParallel(bothPhasesOf(CHARGE_TRAIL), AT_ONCE, (crash) => crashAt([crash], lab));

    // Assert
    await annotate(crashTable(aftermaths));
    expect(aftermaths.map(stateOf)).toEqual(aftermaths.map(({ crashes }) => ({ crashes, ...ONCE })));
    expect(slowOnes(aftermaths)).toEqual([]);
  },
);

test(
  'a second worker killed while it recovers the first leaves a charge that the third finishes once',
  { timeout: 120_000 },
  async ({ annotate }) => {
    // Arrange
    const pairs: CrashPoint[][] = [
      [after('claim'), after('claim')],
      [after('charge at the provider'), after('charge at the provider')],
      [after('charge at the provider'), after('store the step')],
      [after('store the step'), before('commit')],
      [before('commit'), after('commit')],
      [after('commit'), before('delete')],
    ];

    // Act
    const aftermaths = await inParallel(pairs, AT_ONCE, (crashes) => crashAt(crashes, lab));

    // Assert
    await annotate(crashTable(aftermaths));
    expect(aftermaths.map(stateOf)).toEqual(aftermaths.map(({ crashes }) => ({ crashes, ...ONCE })));
    expect(slowOnes(aftermaths)).toEqual([]);
  },
);

test(
  'the same sweep finds double charges and double entries of a worker without protection',
  { timeout: 120_000 },
  async ({ annotate }) => {
    // Arrange
    const flags = ['--protection', 'none'];
    const trail = await recordTrail(lab, flags);

    // Act
    const aftermaths = await inParallel(bothPhasesOf(trail), AT_ONCE, (crash) => crashAt([crash], lab, flags));

    // Assert
    await annotate(crashTable(aftermaths));
    const namesOf = (found: readonly Aftermath[]): string[] => found.map(({ crashes }) => crashes.map(nameOf).join());
    expect(trail).toEqual(UNPROTECTED_TRAIL);
    expect(namesOf(aftermaths.filter(({ providerCharges }) => providerCharges > 1))).toEqual([
      'after charge at the provider',
      'before commit',
      'after commit',
      'before delete',
    ]);
    expect(namesOf(aftermaths.filter(({ ledgerEntries }) => ledgerEntries > 1))).toEqual([
      'after commit',
      'before delete',
    ]);
  },
);

function bothPhasesOf(trail: readonly string[]): CrashPoint[] {
  return trail.flatMap((point) => [before(point), after(point)]);
}

function before(point: string): CrashPoint {
  return { point, phase: 'before' };
}

function after(point: string): CrashPoint {
  return { point, phase: 'after' };
}

/** All that must be the same for every point; how long it took is judged on its own. */
function stateOf({ recoveryMs: _recoveryMs, ...state }: Aftermath): Omit<Aftermath, 'recoveryMs'> {
  return state;
}

function slowOnes(aftermaths: readonly Aftermath[]): string[] {
  return aftermaths
    .filter(({ recoveryMs }) => recoveryMs > RECOVERY_LIMIT_MS)
    .map(({ crashes, recoveryMs }) => `${crashes.map(nameOf).join(', then ')}: ${String(recoveryMs)} ms`);
}
