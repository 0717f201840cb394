/** `onlyonce inject <kind> [flow]`: trouble on purpose, told and journalled. */
import { Argument, Command, InvalidArgumentError, Option } from 'commander';
import { isoTime, systemClock, systemRandom } from '../../clock.ts';
import { MAX_DELAY_SECONDS } from '../../messages/limits.ts';
import { FLOWS, type Flow } from '../../queues/topology.ts';
import { confirm } from '../confirm.ts';
import { connect } from '../connection.ts';
import { givenEndpoints, isLocal } from '../endpoints.ts';
import { CommandError, EXIT } from '../exit-codes.ts';
import { FLOW_CONTRACTS } from '../flow-contracts.ts';
import { openJournal } from '../inject/journal.ts';
import { INJECT_KINDS, INJECTIONS, type InjectKind } from '../inject/kinds.ts';
import type { Deed } from '../inject/scope.ts';
import { interruption } from '../interruption.ts';
import { numberOption, parseFlow, withConnection, type ConnectionFlags } from '../options.ts';
import { createOutput } from '../output.ts';

interface InjectFlags extends ConnectionFlags {
  readonly count?: number;
  readonly delaySeconds: number;
  readonly seed?: number;
  readonly providerUrl?: string;
  readonly journal?: string;
  readonly yes?: boolean;
}

const MAX_SEED = 2_147_483_647;
const DEFAULT_DELAY_SECONDS = 5;

export function injectCommand(): Command {
  const kinds = INJECT_KINDS.map((kind) => `  ${kind.padEnd(16)}${INJECTIONS[kind].description}`);
  return withConnection(new Command('inject'))
    .description('make trouble on purpose: duplicates, bad bodies, late and repeated deliveries')
    .addArgument(new Argument('<kind>', `${INJECT_KINDS.join(', ')}`).argParser(parseKind))
    .addArgument(new Argument('[flow]', 'whose queue').argParser(parseFlow).default(FLOWS[0]))
    .addOption(numberOption('--count <n>', 'how many; none: 1, out-of-order 3', [1, 1_000]).env('ONLYONCE_COUNT'))
    .addOption(
      numberOption('--delay-seconds <n>', 'of delayed', [1, MAX_DELAY_SECONDS])
        .env('ONLYONCE_DELAY_SECONDS')
        .default(DEFAULT_DELAY_SECONDS),
    )
    .addOption(numberOption('--seed <n>', 'the same keys again; none: new ones', [0, MAX_SEED]).env('ONLYONCE_SEED'))
    .addOption(
      new Option('--provider-url <url>', 'the local payment provider, for poison').env('ONLYONCE_PROVIDER_URL'),
    )
    .addOption(
      new Option('--journal <file>', 'add a line to this file for all that is done').env('ONLYONCE_INJECT_JOURNAL'),
    )
    .addOption(new Option('--yes', 'do not ask').env('ONLYONCE_YES'))
    .addHelpText('after', `\nKinds:\n${kinds.join('\n')}`)
    .action(inject);
}

async function inject(kind: InjectKind, flow: Flow, flags: InjectFlags): Promise<void> {
  const output = createOutput(flags.json === true);
  await agree(kind, flow, flags);
  using stack = new DisposableStack();
  const journal = flags.journal === undefined ? undefined : openJournal(flags.journal);
  stack.defer(() => journal?.close());
  const { signal } = interruption();
  const seed = flags.seed ?? Math.floor(systemRandom() * MAX_SEED);
  const connection = await connect(flags, output);
  try {
    const { queue } = await connection.find(flow);
    const tell = (deed: Deed): void => {
      const line = { at: isoTime(systemClock.nowMs()), kind, flow, ...deed };
      journal?.write(line);
      output.data(line, textOf(kind, deed));
    };
    await INJECTIONS[kind].run({
      client: connection.queues,
      queue,
      clock: systemClock,
      signal,
      count: flags.count,
      delaySeconds: flags.delaySeconds,
      providerUrl: flags.providerUrl,
      samples: (count) => FLOW_CONTRACTS[flow].samples(count, seed),
      tell,
    });
    output.note(`injected ${kind} into ${queue.name}, seed ${String(seed)}`);
    if (signal.aborted) process.exitCode = EXIT.interrupted;
  } finally {
    await connection.close();
  }
}

/** Before anything is sent: this makes trouble wherever it goes. */
async function agree(kind: InjectKind, flow: Flow, flags: InjectFlags): Promise<void> {
  const given = givenEndpoints(flags);
  if (given === undefined) {
    const advice = 'start some with "onlyonce up" and set the variables that it prints';
    throw new CommandError(EXIT.usage, `inject needs backends that workers share: ${advice}`);
  }
  const remote = [given.sqs, given.dynamodb].find((endpoint) => !isLocal(endpoint));
  if (remote === undefined) return;
  await confirm(`Inject "${kind}" into the queue of ${flow} at ${new URL(remote).host}?`, flags.yes === true);
}

function parseKind(text: string): InjectKind {
  const kind = INJECT_KINDS.find((candidate) => candidate === text);
  if (kind === undefined) throw new InvalidArgumentError(`must be one of: ${INJECT_KINDS.join(', ')}.`);
  return kind;
}

function textOf(kind: InjectKind, { action, messageId, key, detail }: Deed): string {
  const names = [messageId, key === undefined ? undefined : `key ${key}`].filter((name) => name !== undefined);
  return `${kind}: ${action} ${names.join(', ')}: ${detail}`;
}
