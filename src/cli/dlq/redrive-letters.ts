/** `onlyonce dlq redrive`: sends dead letters back to their queue, but for those whose effect is applied already. */
import { firstOfCopies, type DeadLetter } from '../../queues/dead-letters.ts';
import { readDepth } from '../../queues/depth.ts';
import { LOOK_SECONDS } from '../../queues/held-messages.ts';
import { redrive, type RedriveAction, type RedriveReport } from '../../queues/redrive.ts';
import type { Flow } from '../../queues/topology.ts';
import { confirm } from '../confirm.ts';
import { CommandError, EXIT } from '../exit-codes.ts';
import { createOutput, textTable, type Output } from '../output.ts';
import { hasReason, openLetters, type DlqFlags, type LetterScope } from './letters.ts';
import { isFinished, LETTER_VERDICTS, type LetterVerdict } from './verdict.ts';

export interface RedriveFlags extends DlqFlags {
  readonly reason?: string;
  readonly filter?: readonly LetterVerdict[];
  readonly rate?: number;
  readonly includeApplied?: boolean;
  readonly deleteApplied?: boolean;
  readonly dryRun?: boolean;
  readonly yes?: boolean;
}

interface Decision {
  readonly action: RedriveAction;
  readonly verdict: LetterVerdict;
}

/** As many letters as a run looks at. */
const MAX_LOOKED = 10_000;

export async function redriveLetters(flow: Flow, flags: RedriveFlags): Promise<void> {
  checkFlags(flags);
  const output = createOutput(flags.json === true);
  await using scope = await openLetters(flow, flags);
  const { queue, deadLetterQueue } = scope;
  const decide = decisionOf(scope, flags);
  if (flags.dryRun === true) {
    await foretell(scope, flags, decide);
    return;
  }
  const deletion = flags.deleteApplied === true ? ', and delete those whose effect is applied' : '';
  await confirm(`Send dead letters of ${deadLetterQueue.name} back to ${queue.name}${deletion}?`, flags.yes === true);
  const tally = new Tally();
  let report: RedriveReport | undefined;
  try {
    report = await redrive(
      scope.connection.queues,
      { from: deadLetterQueue.url, to: queue.url },
      {
        limit: flags.limit,
        decide,
        signal: scope.interrupted.signal,
        ...(flags.rate !== undefined && { ratePerSecond: flags.rate }),
        onSettled: (_letter, { verdict }, action) => {
          tally.add(verdict, action);
          output.progress(`moved ${String(tally.total('move'))}, left ${String(tally.total('leave'))}`);
        },
      },
    );
  } finally {
    // Also when the queue failed half-way: so much is done.
    tell(tally, output, queue.name);
  }
  tellEnd(report, tally, output);
  if (report.end !== 'empty') return;
  // A run that was killed leaves what it looked at hidden: without a word the queue would seem to be empty.
  const { inFlight } = await readDepth(scope.connection.queues, deadLetterQueue.url);
  if (inFlight > 0) output.note(`${String(inFlight)} are hidden, by another look or one that died: ${LATER}`);
}

const LATER = `run it again in ${String(LOOK_SECONDS)} s`;

/** What was applied is not to be asked for by accident. */
function checkFlags({ filter, includeApplied, deleteApplied }: RedriveFlags): void {
  if (includeApplied === true && deleteApplied === true) {
    throw new CommandError(EXIT.usage, 'either --include-applied or --delete-applied: a letter is moved or deleted');
  }
  const finished = filter?.find(isFinished);
  if (finished !== undefined && includeApplied !== true && deleteApplied !== true) {
    const advice = 'add --delete-applied to delete them, or --include-applied to move them all the same';
    throw new CommandError(EXIT.usage, `letters that are ${finished} are left where they are: ${advice}`);
  }
}

type Decide = (letter: DeadLetter) => Promise<Decision>;

function decisionOf(scope: LetterScope, flags: RedriveFlags): Decide {
  return async (letter) => {
    const { verdict } = await scope.judge(letter);
    // A reason may be in the table, where the queue cannot see it.
    const isMeant = flags.reason === undefined || hasReason(await scope.withNotice(letter), flags.reason);
    const isWanted = isMeant && (flags.filter === undefined || flags.filter.includes(verdict));
    return { verdict, action: isWanted ? actionFor(verdict, flags) : 'leave' };
  };
}

function actionFor(verdict: LetterVerdict, flags: RedriveFlags): RedriveAction {
  if (!isFinished(verdict) || flags.includeApplied === true) return 'move';
  return flags.deleteApplied === true ? 'delete' : 'leave';
}

async function foretell(scope: LetterScope, flags: RedriveFlags, decide: Decide): Promise<void> {
  const output = createOutput(flags.json === true);
  const tally = new Tally();
  const isFirst = firstOfCopies();
  for await (const part of scope.parts(MAX_LOOKED)) {
    for (const letter of part.filter(isFirst)) {
      const { verdict, action } = await decide(letter);
      const isBeyond = tally.total('move') + tally.total('delete') >= flags.limit;
      tally.add(verdict, isBeyond ? 'leave' : action);
    }
  }
  const [move, remove, leave] = [tally.total('move'), tally.total('delete'), tally.total('leave')];
  const value = { wouldMove: move, wouldDelete: remove, wouldLeave: leave, verdicts: tally.verdicts() };
  output.data(value, `${tally.table()}would move ${String(move)} to ${scope.queue.name}${deletions(remove, 'delete')}`);
  if (scope.interrupted.signal.aborted) process.exitCode = EXIT.interrupted;
}

function tell(tally: Tally, output: Output, queue: string): void {
  const [moved, deleted, left] = [tally.total('move'), tally.total('delete'), tally.total('leave')];
  const text = `${tally.table()}moved ${String(moved)} to ${queue}${deletions(deleted, 'deleted')}`;
  output.data({ moved, deleted, left, verdicts: tally.verdicts() }, text);
}

function deletions(count: number, word: string): string {
  return count === 0 ? '' : `, ${word} ${String(count)}`;
}

function tellEnd({ end, copies, damaged }: RedriveReport, tally: Tally, output: Output): void {
  const finished = tally.left(['applied', 'rejected']);
  if (finished > 0) {
    output.note(`${String(finished)} have their answer already and were left: --delete-applied deletes such letters`);
  }
  if (copies > 0) output.note(`${String(copies)} further copies of what was moved were deleted`);
  if (damaged > 0) output.note(`${String(damaged)} came damaged over the wire and were left: run it again`);
  if (end === 'limit') output.note('stopped at --limit: run it again for the rest');
  if (end === 'looked') output.note(`looked at ${String(MAX_LOOKED)} letters, and there are more: run it again`);
  if (end !== 'interrupted') return;
  output.note('interrupted: run it again for the rest');
  process.exitCode = EXIT.interrupted;
}

type Counts = Record<'moved' | 'deleted' | 'left', number>;

class Tally {
  readonly #byVerdict = new Map<LetterVerdict, Record<RedriveAction, number>>();

  add(verdict: LetterVerdict, action: RedriveAction): void {
    const counts = this.#byVerdict.get(verdict) ?? { move: 0, delete: 0, leave: 0 };
    counts[action] += 1;
    this.#byVerdict.set(verdict, counts);
  }

  total(action: RedriveAction): number {
    return [...this.#byVerdict.values()].reduce((sum, counts) => sum + counts[action], 0);
  }

  left(verdicts: readonly LetterVerdict[]): number {
    return verdicts.reduce((sum, verdict) => sum + (this.#byVerdict.get(verdict)?.leave ?? 0), 0);
  }

  /** Those that were met. */
  verdicts(): Partial<Record<LetterVerdict, Counts>> {
    const met = LETTER_VERDICTS.flatMap((verdict) => {
      const counts = this.#byVerdict.get(verdict);
      return counts === undefined
        ? []
        : [[verdict, { moved: counts.move, deleted: counts.delete, left: counts.leave }] as const];
    });
    return Object.fromEntries(met);
  }

  /** Ends with a new line; nothing when nothing was met. */
  table(): string {
    const rows = Object.entries(this.verdicts()).map(([verdict, { moved, deleted, left }]) => [
      verdict,
      moved,
      deleted,
      left,
    ]);
    return rows.length === 0 ? '' : `${textTable([['verdict', 'moved', 'deleted', 'left'], ...rows])}\n`;
  }
}
