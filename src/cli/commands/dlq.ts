/** `onlyonce dlq ls|show|redrive`: what is on a dead-letter queue, why, and back with it. */
import { Argument, Command, InvalidArgumentError, Option } from 'commander';
import { listLetters } from '../dlq/list-letters.ts';
import { redriveLetters } from '../dlq/redrive-letters.ts';
import { showLetters } from '../dlq/show-letters.ts';
import { LETTER_VERDICTS, type LetterVerdict } from '../dlq/verdict.ts';
import { numberOption, parseFlow, withConnection } from '../options.ts';

const DEFAULT_LIMIT = 1_000;
/** Letters per second. */
const RATE_RANGE = [0.01, 1_000] as const;

export function dlqCommand(): Command {
  return new Command('dlq')
    .description('dead letters')
    .addCommand(listCommand())
    .addCommand(showCommand())
    .addCommand(redriveCommand());
}

function listCommand(): Command {
  return withConnection(new Command('ls'))
    .description('count dead letters by reason')
    .addArgument(flowArgument())
    .addOption(limitOption('look at no more than this'))
    .addOption(
      new Option('--verdict', 'count by what became of their effects too: one read each').env('ONLYONCE_VERDICT'),
    )
    .action(listLetters);
}

function showCommand(): Command {
  return withConnection(new Command('show'))
    .description('show each dead letter with its reason, and whether its effect is applied')
    .addArgument(flowArgument())
    .argument('[messageId]', 'only this one: its own id, or the id of the message it is a copy of')
    .addOption(limitOption('look at no more than this'))
    .addOption(new Option('--body', 'show bodies too: they may hold what customers sent').env('ONLYONCE_BODY'))
    .action(showLetters);
}

function redriveCommand(): Command {
  return withConnection(new Command('redrive'))
    .description('send dead letters back to their queue, but for those whose effect is applied already')
    .addArgument(flowArgument())
    .addOption(limitOption('move or delete no more than this'))
    .addOption(
      new Option('--reason <reason>', 'only those: exhausted, conflict, invalid, maxReceiveCount').env(
        'ONLYONCE_REASON',
      ),
    )
    .addOption(
      new Option('--filter <verdicts>', `only those, joined by commas: ${LETTER_VERDICTS.join(', ')}`)
        .env('ONLYONCE_FILTER')
        .argParser(parseVerdicts),
    )
    .addOption(
      new Option('--rate <n>', `letters per second at most (${RATE_RANGE.join('-')})`)
        .env('ONLYONCE_RATE')
        .argParser(parseRate),
    )
    .addOption(
      new Option('--include-applied', 'move those with a final answer too: they will be replayed').env(
        'ONLYONCE_INCLUDE_APPLIED',
      ),
    )
    .addOption(
      new Option('--delete-applied', 'delete those with a final answer instead of leaving them').env(
        'ONLYONCE_DELETE_APPLIED',
      ),
    )
    .addOption(new Option('--dry-run', 'only say what would be done').env('ONLYONCE_DRY_RUN'))
    .addOption(new Option('--yes', 'do not ask').env('ONLYONCE_YES'))
    .action(redriveLetters);
}

function flowArgument(): Argument {
  return new Argument('<flow>', 'the flow whose dead letters are meant').argParser(parseFlow);
}

function limitOption(description: string): Option {
  return numberOption('--limit <n>', description, [1, 10_000]).env('ONLYONCE_LIMIT').default(DEFAULT_LIMIT);
}

function parseVerdicts(text: string): LetterVerdict[] {
  return text.split(',').map((word) => {
    const verdict = LETTER_VERDICTS.find((candidate) => candidate === word.trim());
    if (verdict === undefined) throw new InvalidArgumentError(`must be one or more of: ${LETTER_VERDICTS.join(', ')}.`);
    return verdict;
  });
}

function parseRate(text: string): number {
  const value = Number(text);
  const [min, max] = RATE_RANGE;
  if (text.trim() !== '' && value >= min && value <= max) return value;
  throw new InvalidArgumentError(`must be a number from ${String(min)} to ${String(max)}.`);
}
