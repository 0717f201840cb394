/** `onlyonce verify`: reads the table, the provider and the queues, and checks what must always hold. */
import { Command, Option } from 'commander';
import { checkCharges } from '../../verify/charges.ts';
import type { Invariant } from '../../verify/invariants.ts';
import { connect } from '../connection.ts';
import { CommandError, EXIT } from '../exit-codes.ts';
import { withConnection, type ConnectionFlags } from '../options.ts';
import { createOutput, textTable, type Output } from '../output.ts';
import { readSent, takeSnapshot } from '../snapshot.ts';

interface VerifyFlags extends ConnectionFlags {
  readonly providerUrl?: string;
  readonly sent?: string;
}

const MAX_EXAMPLES = 3;

export function verifyCommand(): Command {
  return withConnection(new Command('verify'))
    .description('check that every effect happened once and no message was lost; exit code 1 when one does not hold')
    .addOption(
      new Option('--provider-url <url>', 'compare with what the payment provider charged').env('ONLYONCE_PROVIDER_URL'),
    )
    .addOption(
      new Option('--sent <file>', 'what "produce charges --json" printed: checks that none was lost').env(
        'ONLYONCE_SENT',
      ),
    )
    .action(verify);
}

async function verify(flags: VerifyFlags): Promise<void> {
  const output = createOutput(flags.json === true);
  const connection = await connect(flags, output);
  try {
    const queues = await connection.find('charges');
    const sent = flags.sent === undefined ? undefined : await readSent(flags.sent);
    const snapshot = await takeSnapshot({ connection, queues, providerUrl: flags.providerUrl, sent });
    const isEmpty =
      snapshot.records.length + snapshot.ledger.length + snapshot.deadLetters.length + (sent?.length ?? 0) === 0;
    if (isEmpty) {
      throw new CommandError(
        EXIT.notFound,
        'there is nothing to verify: no charge, no record and no dead letter was found',
      );
    }
    const invariants = checkCharges(snapshot);
    const ok = invariants.every((invariant) => invariant.ok);
    output.data({ ok, invariants }, invariantsText(invariants));
    if (flags.providerUrl === undefined) output.note('the payment provider was not looked at: add --provider-url');
    if (flags.sent === undefined) output.note('lost messages were not looked for: add --sent');
    noteViolations(invariants, output);
    if (!ok) process.exitCode = EXIT.failure;
  } finally {
    await connection.close();
  }
}

function invariantsText(invariants: readonly Invariant[]): string {
  return textTable([
    ['', 'invariant', 'looked at', 'statement'],
    ...invariants.map(({ id, ok, evidence, statement }) => [ok ? 'holds' : 'BROKEN', id, evidence, statement]),
  ]);
}

/** A few examples for each broken invariant; with --json all that were kept are in the data. */
export function noteViolations(invariants: readonly Invariant[], output: Output): void {
  for (const { id, violations } of invariants) {
    for (const violation of violations.slice(0, MAX_EXAMPLES)) output.note(`${id}: ${violation}`);
    if (violations.length > MAX_EXAMPLES) output.note(`${id}: and more, see --json`);
  }
}
