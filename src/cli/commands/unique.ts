/** `onlyonce unique ls|repair`: the sentinels of unique values, and those that no item stands behind. */
import { Command, Option } from 'commander';
import { asOrphan, examineSentinels, type Orphan, type SentinelReport } from '../../store/unique/repair.ts';
import { createStore, type Store } from '../../store/store.ts';
import { confirm } from '../confirm.ts';
import { connectDynamodb } from '../connection.ts';
import { givenDynamodb } from '../endpoints.ts';
import { EXIT } from '../exit-codes.ts';
import { numberOption, withConnection, type ConnectionFlags } from '../options.ts';
import { createOutput, type Output } from '../output.ts';

interface ScopeFlags extends ConnectionFlags {
  readonly scope?: string;
}

interface ListFlags extends ScopeFlags {
  readonly orphans?: boolean;
}

type Reason = Orphan['reason'];

interface RepairFlags extends ScopeFlags {
  readonly limit: number;
  readonly reason?: Reason;
  readonly dryRun?: boolean;
  readonly yes?: boolean;
}

const DEFAULT_LIMIT = 1_000;
const REASONS: readonly Reason[] = ['owner gone', 'value changed', 'unreadable'];

export function uniqueCommand(): Command {
  const scope = (): Option => new Option('--scope <name>', 'only this constraint').env('ONLYONCE_SCOPE');
  const ls = withConnection(new Command('ls'))
    .description('list the sentinels of unique values and what each is worth')
    .addOption(scope())
    .addOption(new Option('--orphans', 'only those that no item stands behind').env('ONLYONCE_ORPHANS'))
    .action(list);
  const repair = withConnection(new Command('repair'))
    .description('remove sentinels that no item stands behind, so that their values can be used again')
    .addOption(scope())
    .addOption(
      numberOption('--limit <n>', 'remove no more than this', [1, 100_000])
        .env('ONLYONCE_LIMIT')
        .default(DEFAULT_LIMIT),
    )
    .addOption(
      new Option('--reason <reason>', 'only those; without it all but unreadable ones')
        .env('ONLYONCE_REASON')
        .choices(REASONS),
    )
    .addOption(new Option('--dry-run', 'only say what would be removed').env('ONLYONCE_DRY_RUN'))
    .addOption(new Option('--yes', 'do not ask').env('ONLYONCE_YES'))
    .action(removeOrphans);
  return new Command('unique').description('unique values').addCommand(ls).addCommand(repair);
}

async function list(flags: ListFlags): Promise<void> {
  const output = createOutput(flags.json === true);
  await using connection = await open(flags, output);
  const counts = { sentinels: 0, orphans: 0, undecided: 0 };
  for await (const report of sentinelsOf(connection.store, flags)) {
    const isOrphan = asOrphan(report) !== undefined;
    counts.sentinels += 1;
    if (isOrphan) counts.orphans += 1;
    if (report.state === 'undecided') counts.undecided += 1;
    if (isOrphan || flags.orphans !== true) output.data(fieldsOf(report), lineOf(report.state, report));
  }
  output.note(`sentinels: ${String(counts.sentinels)}, orphans: ${String(counts.orphans)}`);
  if (counts.undecided > 0) {
    output.note(`undecided: ${String(counts.undecided)}; only the program that has their constraint can judge them`);
  }
  if (counts.orphans > 0) process.exitCode = EXIT.findings;
}

async function removeOrphans(flags: RepairFlags): Promise<void> {
  const output = createOutput(flags.json === true);
  await using connection = await open(flags, output);
  const { store } = connection;
  const isDry = flags.dryRun === true;
  if (!isDry) await confirm(`Remove orphaned sentinels from ${store.tableName}?`, flags.yes === true);
  let taken = 0;
  let left = 0;
  for await (const report of sentinelsOf(store, flags)) {
    const orphan = asOrphan(report);
    if (orphan === undefined) continue;
    if (!isMeant(orphan, flags) || taken === flags.limit) {
      left += 1;
      continue;
    }
    taken += 1;
    const result = isDry ? 'would remove' : (await store.removeUniqueOrphan(orphan)) ? 'removed' : 'kept';
    output.data({ ...fieldsOf(report), result }, lineOf(result, report));
  }
  if (taken === 0) output.note('no orphans to remove');
  if (left > 0) output.note(`orphans left: ${String(left)}; see "unique ls --orphans", --reason and --limit`);
}

/** What somebody else put there may still be of use to them: it is removed only when it is asked for. */
function isMeant(orphan: Orphan, { reason }: RepairFlags): boolean {
  return reason === undefined ? orphan.reason !== 'unreadable' : orphan.reason === reason;
}

async function* sentinelsOf(store: Store, { scope }: ScopeFlags): AsyncGenerator<SentinelReport> {
  for await (const report of examineSentinels(store)) {
    if (scope === undefined || report.scope === scope) yield report;
  }
}

function fieldsOf({ scope, value, owner, sentinel, state }: SentinelReport): Record<string, unknown> {
  return { scope, value, owner, sentinel, state };
}

/** One line each, as they are found: there may be more than anybody wants to wait for. */
function lineOf(word: string, { scope, value, owner, state }: SentinelReport): string {
  const why = word === state ? '' : ` (${state})`;
  const whose = owner === undefined ? 'no owner' : `${printable(owner.PK)} | ${printable(owner.SK)}`;
  return `${word}${why}  ${printable(scope)}  ${printable(value)}  ${whose}`;
}

/** Others may have written the key: nothing in it may steer a terminal. */
function printable(text: string): string {
  return text.replace(/\p{C}/gu, (character) =>
    JSON.stringify(character)
      .slice(1, -1)
      .replace(/^\p{C}$/u, '\ufffd'),
  );
}

/** No queue is needed: DynamoDB's endpoint alone will do. */
async function open(flags: ConnectionFlags, output: Output) {
  // Ctrl-C ends the process itself, and its local backends with it.
  const connection = await connectDynamodb(flags, output, new AbortController().signal);
  const store = createStore({ ...connection.client, tableName: flags.table });
  const close = async (): Promise<void> => {
    store.close();
    await connection[Symbol.asyncDispose]();
  };
  try {
    // On local backends of its own nothing is there yet.
    if (givenDynamodb(flags) === undefined) await store.bootstrap();
  } catch (error) {
    await close();
    throw error;
  }
  return { store, [Symbol.asyncDispose]: close };
}
