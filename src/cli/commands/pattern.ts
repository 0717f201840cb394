/** `onlyonce pattern`: each concurrency pattern shown at work, request by request, on a table of its own. */
import { Argument, Command, InvalidArgumentError, Option } from 'commander';
import { PATTERNS } from '../../patterns/catalogue.ts';
import type { Pattern } from '../../patterns/pattern.ts';
import { runPattern, type PatternReport } from '../../patterns/run-pattern.ts';
import { renderSection } from '../../patterns/transcript.ts';
import type { StoreClientOptions } from '../../store/client.ts';
import { connectDynamodb } from '../connection.ts';
import { EXIT } from '../exit-codes.ts';
import { interruption } from '../interruption.ts';
import { withConnection, type ConnectionFlags } from '../options.ts';
import { createOutput, textTable, type Output } from '../output.ts';

interface PatternFlags extends ConnectionFlags {
  readonly full?: boolean;
}

export function patternCommand(): Command {
  return withConnection(new Command('pattern'))
    .description('show a concurrency pattern request by request; without a number: list them')
    .addArgument(new Argument('[number]', 'a number, or all').argParser(parsePatterns))
    .addOption(new Option('--full', 'show every request of a long series').env('ONLYONCE_FULL'))
    .action(showPatterns);
}

function parsePatterns(text: string): readonly Pattern[] {
  if (text === 'all') return PATTERNS;
  const pattern = PATTERNS.find(({ number }) => String(number) === text);
  if (pattern === undefined) throw new InvalidArgumentError(`must be all, or one of:\n${listText()}`);
  return [pattern];
}

function listText(): string {
  return textTable(PATTERNS.map(({ number, title, summary }) => [number, title, summary]));
}

async function showPatterns(patterns: readonly Pattern[] | undefined, flags: PatternFlags): Promise<void> {
  const output = createOutput(flags.json === true);
  if (patterns === undefined) {
    listPatterns(output);
    return;
  }
  const { signal } = interruption();
  try {
    await using connection = await connectDynamodb(flags, output, signal);
    for (const pattern of patterns) await showPattern(pattern, { client: connection.client, flags, output, signal });
  } catch (error) {
    if (!signal.aborted) throw error;
    process.exitCode = EXIT.interrupted;
  }
}

interface Show {
  readonly client: StoreClientOptions;
  readonly flags: PatternFlags;
  readonly output: Output;
  readonly signal: AbortSignal;
}

async function showPattern(pattern: Pattern, { client, flags, output, signal }: Show): Promise<void> {
  const report = await runPattern(pattern, {
    client,
    tablePrefix: flags.table,
    signal,
    note: (text) => {
      output.note(text);
    },
    onSection: (section) => {
      if (!output.isJson) output.data(undefined, renderSection(section, flags.full === true));
    },
  });
  printReport(report, output);
  if (!report.ok) process.exitCode = EXIT.failure;
}

function listPatterns(output: Output): void {
  if (!output.isJson) output.data(undefined, listText());
  else for (const { number, title, summary } of PATTERNS) output.data({ pattern: number, title, summary }, '');
}

function printReport(report: PatternReport, output: Output): void {
  const { pattern, title, ok, differences = [] } = report;
  const verdict = ok ? 'all came about as it must' : 'NOT as it must be';
  output.data(report, `${String(pattern)} ${title}: ${verdict}\n`);
  for (const difference of differences) output.note(`${String(pattern)}: ${difference}`);
}
