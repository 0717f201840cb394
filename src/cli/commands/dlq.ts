/** `onlyonce dlq ls|show|redrive`: what is on a dead-letter queue, why, and back with it. */
import { Argument, Command, Option } from 'commander';
import { isoTime } from '../../clock.ts';
import { readDeadLetters, redrive, type DeadLetter } from '../../queues/dead-letters.ts';
import type { Flow } from '../../queues/topology.ts';
import { groupBy } from '../../verify/invariants.ts';
import { confirm } from '../confirm.ts';
import { connect } from '../connection.ts';
import { CommandError, EXIT } from '../exit-codes.ts';
import { withKeptNotices } from '../kept-notice.ts';
import { numberOption, parseFlow, withConnection, type ConnectionFlags } from '../options.ts';
import { createOutput, textFields, textTable } from '../output.ts';

interface DlqFlags extends ConnectionFlags {
  readonly limit: number;
}

interface ShowFlags extends DlqFlags {
  readonly body?: boolean;
}

interface RedriveFlags extends DlqFlags {
  readonly reason?: string;
  readonly dryRun?: boolean;
  readonly yes?: boolean;
}

const DEFAULT_LIMIT = 1_000;

export function dlqCommand(): Command {
  const flow = (): Argument => new Argument('<flow>', 'the flow whose dead letters are meant').argParser(parseFlow);
  const limit = (): Option =>
    numberOption('--limit <n>', 'look at no more than this', [1, 10_000]).env('ONLYONCE_LIMIT').default(DEFAULT_LIMIT);

  const ls = withConnection(new Command('ls'))
    .description('count dead letters by reason')
    .addArgument(flow())
    .addOption(limit())
    .action(list);
  const show = withConnection(new Command('show'))
    .description('show each dead letter with its reason')
    .addArgument(flow())
    .argument('[messageId]', 'only this one: its own id, or the id of the message it is a copy of')
    .addOption(limit())
    .addOption(new Option('--body', 'show bodies too: they may hold what customers sent').env('ONLYONCE_BODY'))
    .action(showLetters);
  const back = withConnection(new Command('redrive'))
    .description('send dead letters back to their queue; what was applied already is answered from its record')
    .addArgument(flow())
    .addOption(limit())
    .addOption(new Option('--reason <reason>', 'only those: exhausted, conflict, invalid').env('ONLYONCE_REASON'))
    .addOption(new Option('--dry-run', 'only say what would be moved').env('ONLYONCE_DRY_RUN'))
    .addOption(new Option('--yes', 'do not ask').env('ONLYONCE_YES'))
    .action(redriveLetters);
  return new Command('dlq').description('dead letters').addCommand(ls).addCommand(show).addCommand(back);
}

async function list(flow: Flow, flags: DlqFlags): Promise<void> {
  const output = createOutput(flags.json === true);
  await using scope = await open(flow, flags);
  const letters = await scope.read();
  const counts = [...groupBy(letters, reasonOf)].map(([reason, group]) => ({ reason, count: group.length }));
  if (output.isJson) {
    for (const line of counts) output.data(line, '');
  } else if (letters.length === 0) {
    output.note('no dead letters');
  } else {
    output.data(counts, textTable([['reason', 'count'], ...counts.map(({ reason, count }) => [reason, count])]));
  }
}

async function showLetters(flow: Flow, messageId: string | undefined, flags: ShowFlags): Promise<void> {
  const output = createOutput(flags.json === true);
  await using scope = await open(flow, flags);
  const letters = (await scope.read()).filter(
    (letter) => messageId === undefined || letter.messageId === messageId || letter.notice?.messageId === messageId,
  );
  if (letters.length === 0) {
    throw new CommandError(EXIT.notFound, messageId === undefined ? 'no dead letters' : `no dead letter ${messageId}`);
  }
  for (const letter of letters) {
    const { notice } = letter;
    const value = {
      messageId: letter.messageId,
      reason: reasonOf(letter),
      ...(notice !== undefined && {
        detail: notice.detail,
        originalMessageId: notice.messageId,
        receiveCount: notice.receiveCount,
        deadLetteredAt: isoTime(notice.deadLetteredAtMs),
      }),
      bodyBytes: Buffer.byteLength(letter.body),
      ...(flags.body === true && { body: letter.body }),
    };
    output.data(value, `${textFields(value)}\n`);
  }
}

async function redriveLetters(flow: Flow, flags: RedriveFlags): Promise<void> {
  const output = createOutput(flags.json === true);
  await using scope = await open(flow, flags);
  const { connection, queue, deadLetterQueue } = scope;
  const accepts = (letter: DeadLetter): boolean => flags.reason === undefined || reasonOf(letter) === flags.reason;
  if (flags.dryRun === true) {
    const wouldMove = (await scope.read()).filter(accepts).length;
    output.data({ wouldMove }, `would move ${String(wouldMove)} to ${queue.name}`);
    return;
  }
  await confirm(`Send dead letters of ${deadLetterQueue.name} back to ${queue.name}?`, flags.yes === true);
  // The reason of a letter may be in the table, where the queue cannot see it: those that fit are looked up before.
  const fitting = flags.reason === undefined ? undefined : new Set((await scope.read()).filter(accepts).map(idOf));
  let count = 0;
  const urls = { from: deadLetterQueue.url, to: queue.url };
  const moved = await redrive(connection.queues, urls, {
    limit: flags.limit,
    accepts: (letter) => fitting === undefined || fitting.has(idOf(letter)),
    onMoved: () => {
      count += 1;
      output.progress(`moved ${String(count)}`);
    },
  });
  output.data({ moved }, `moved ${String(moved)} to ${queue.name}`);
}

async function open(flow: Flow, flags: DlqFlags) {
  const connection = await connect(flags, createOutput(flags.json === true));
  const { queue, deadLetterQueue } = await connection.find(flow);
  return {
    connection,
    queue,
    deadLetterQueue,
    async read(): Promise<DeadLetter[]> {
      const letters = await readDeadLetters(connection.queues, deadLetterQueue.url, { limit: flags.limit });
      return withKeptNotices(letters, queue.name, connection.store);
    },
    [Symbol.asyncDispose]: () => connection.close(),
  };
}

function idOf(letter: DeadLetter): string {
  return letter.messageId;
}

function reasonOf(letter: DeadLetter): string {
  return letter.notice?.reason ?? 'maxReceiveCount (moved by the queue itself)';
}
