/** `onlyonce dlq ls`: dead letters counted by reason. */
import { isoTime } from '../../clock.ts';
import { firstOfCopies, type DeadLetter } from '../../queues/dead-letters.ts';
import type { Flow } from '../../queues/topology.ts';
import { EXIT } from '../exit-codes.ts';
import { createOutput, textTable } from '../output.ts';
import { deadSinceMs, openLetters, reasonOf, type DlqFlags, type LetterScope } from './letters.ts';
import { LETTER_VERDICTS, type LetterVerdict } from './verdict.ts';

export interface ListFlags extends DlqFlags {
  readonly verdict?: boolean;
}

interface Group {
  readonly reason: string;
  count: number;
  oldestMs: number | undefined;
  newestMs: number | undefined;
  readonly verdicts: Partial<Record<LetterVerdict, number>>;
}

export async function listLetters(flow: Flow, flags: ListFlags): Promise<void> {
  const output = createOutput(flags.json === true);
  await using scope = await openLetters(flow, flags);
  const { groups, copies } = await gather(scope, flags);
  if (copies > 0) output.note(`${String(copies)} further copies of messages that are counted once`);
  const lines = groups.map((group) => lineOf(group, flags.verdict === true));
  if (output.isJson) {
    for (const line of lines) output.data(line, '');
  } else if (lines.length === 0) {
    output.note('no dead letters');
  } else {
    output.data(lines, tableOf(lines));
  }
  if (scope.interrupted.signal.aborted) process.exitCode = EXIT.interrupted;
}

async function gather(scope: LetterScope, flags: ListFlags): Promise<{ groups: Group[]; copies: number }> {
  const groups = new Map<string, Group>();
  const isFirst = firstOfCopies();
  let copies = 0;
  for await (const part of scope.parts(flags.limit)) {
    for (const letter of part) {
      if (!isFirst(letter)) {
        copies += 1;
        continue;
      }
      const group = groupOf(groups, letter);
      count(group, letter);
      if (flags.verdict !== true) continue;
      const { verdict } = await scope.judge(letter);
      group.verdicts[verdict] = (group.verdicts[verdict] ?? 0) + 1;
    }
  }
  return { groups: [...groups.values()], copies };
}

function groupOf(groups: Map<string, Group>, letter: DeadLetter): Group {
  const reason = reasonOf(letter);
  const group = groups.get(reason) ?? { reason, count: 0, oldestMs: undefined, newestMs: undefined, verdicts: {} };
  groups.set(reason, group);
  return group;
}

function count(group: Group, letter: DeadLetter): void {
  group.count += 1;
  const sinceMs = deadSinceMs(letter);
  if (sinceMs === undefined) return;
  group.oldestMs = Math.min(group.oldestMs ?? sinceMs, sinceMs);
  group.newestMs = Math.max(group.newestMs ?? sinceMs, sinceMs);
}

interface Line {
  readonly reason: string;
  readonly count: number;
  readonly oldest?: string;
  readonly newest?: string;
  readonly verdicts?: Partial<Record<LetterVerdict, number>>;
}

function lineOf({ reason, count: letters, oldestMs, newestMs, verdicts }: Group, isJudged: boolean): Line {
  return {
    reason,
    count: letters,
    ...(oldestMs !== undefined && { oldest: isoTime(oldestMs) }),
    ...(newestMs !== undefined && { newest: isoTime(newestMs) }),
    ...(isJudged && { verdicts }),
  };
}

function tableOf(lines: readonly Line[]): string {
  const judged = LETTER_VERDICTS.filter((verdict) => lines.some((line) => line.verdicts?.[verdict] !== undefined));
  const rows = lines.map(({ reason, count: letters, oldest = '-', newest = '-', verdicts }) => [
    reason,
    letters,
    oldest,
    newest,
    ...judged.map((verdict) => verdicts?.[verdict] ?? 0),
  ]);
  return textTable([['reason', 'count', 'oldest', 'newest', ...judged], ...rows]);
}
