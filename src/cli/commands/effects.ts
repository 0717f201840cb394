/** `onlyonce effects`: what became of business keys, and an operator's word on steps that nobody else can settle. */
import { Argument, Command, Option } from 'commander';
import { fromStored } from '../../store/effects/stored-value.ts';
import type { StepResolution } from '../../store/effects/resolve-step.ts';
import { effectRecordKey, identify, type Item } from '../../store/table.ts';
import { queueName, type Flow } from '../../queues/topology.ts';
import { isoTime } from '../../clock.ts';
import { connect } from '../connection.ts';
import { CommandError, EXIT } from '../exit-codes.ts';
import { confirm } from '../confirm.ts';
import { numberOption, parseFlow, withConnection, type ConnectionFlags } from '../options.ts';
import { createOutput, textFields, textTable } from '../output.ts';

const STATUSES = ['IN_PROGRESS', 'COMPLETED', 'REJECTED', 'FAILED', 'UNKNOWN'] as const;

interface ListFlags extends ConnectionFlags {
  readonly status?: (typeof STATUSES)[number];
  readonly limit: number;
}

interface ResolveFlags extends ConnectionFlags {
  readonly step: string;
  readonly result?: string;
  readonly notDone?: boolean;
  readonly yes?: boolean;
}

export function effectsCommand(): Command {
  const flow = (): Argument => new Argument('<flow>', 'the flow that the key belongs to').argParser(parseFlow);
  const get = withConnection(new Command('get'))
    .description('show the effect record of a key')
    .addArgument(flow())
    .argument('<key>', 'the business key, for example a request id')
    .action(getEffect);
  const ls = withConnection(new Command('ls'))
    .description('list the effect records of a flow; reads the whole table')
    .addArgument(flow())
    .addOption(
      new Option('--status <status>', 'only these; UNKNOWN: with a step that waits for an operator')
        .choices(STATUSES)
        .env('ONLYONCE_STATUS'),
    )
    .addOption(
      numberOption('--limit <n>', 'the most that are listed', [1, 100_000]).env('ONLYONCE_LIMIT').default(1_000),
    )
    .action(listEffects);
  return new Command('effects')
    .description('what became of business keys')
    .addCommand(get)
    .addCommand(ls)
    .addCommand(resolveCommand(flow()));
}

function resolveCommand(flow: Argument): Command {
  return withConnection(new Command('resolve'))
    .description('say what became of a step that is in doubt; then redrive its message')
    .addArgument(flow)
    .argument('<key>', 'the business key')
    .addOption(new Option('--step <name>', 'the step').env('ONLYONCE_STEP').makeOptionMandatory())
    .addOption(
      new Option('--result <json>', 'it was done, and its call returned this')
        .env('ONLYONCE_RESULT')
        .conflicts('notDone'),
    )
    .addOption(new Option('--not-done', 'it was not done: the next attempt makes the call').env('ONLYONCE_NOT_DONE'))
    .addOption(new Option('--yes', 'do not ask').env('ONLYONCE_YES'))
    .action(resolveEffect);
}

async function listEffects(flow: Flow, flags: ListFlags): Promise<void> {
  const output = createOutput(flags.json === true);
  const connection = await connect(flags, output);
  try {
    const queue = queueName(flow, flags.prefix);
    const rows: string[][] = [];
    let count = 0;
    for await (const item of connection.store.scan()) {
      const identity = identify(item);
      if (identity.kind !== 'effectRecord' || identity.queue !== queue || !isWanted(item, flags.status)) continue;
      if (count === flags.limit) {
        output.note(`more than ${String(flags.limit)}: --limit shows more`);
        break;
      }
      count += 1;
      const effect = describe(identity.key, item);
      if (output.isJson) output.data(effect, '');
      else rows.push([identity.key, String(effect['status']), whyOf(item)]);
    }
    if (count === 0) output.note('no effect records');
    else if (!output.isJson) output.data(rows, textTable([['key', 'status', 'why'], ...rows]));
  } finally {
    await connection.close();
  }
}

function whyOf({ lastError, reason }: Item): string {
  const why = lastError ?? reason;
  return typeof why === 'string' ? why : '';
}

function isWanted(item: Item, status: ListFlags['status']): boolean {
  if (status === undefined) return true;
  return status === 'UNKNOWN' ? item['unknownStep'] !== undefined : item['status'] === status;
}

async function resolveEffect(flow: Flow, key: string, flags: ResolveFlags): Promise<void> {
  const output = createOutput(flags.json === true);
  const verdict = verdictOf(flags);
  const connection = await connect(flags, output);
  try {
    const said = verdict.kind === 'done' ? 'done' : 'not done, so that the next attempt makes the call';
    await confirm(`Say that step "${flags.step}" of "${key}" was ${said}?`, flags.yes === true);
    const queue = queueName(flow, flags.prefix);
    const answer = await connection.store.resolveStep({ queue, key, step: flags.step, verdict });
    switch (answer.kind) {
      case 'resolved': {
        const effect = describe(key, answer.item);
        output.data(effect, textFields(effect));
        output.note(`now redrive its message: onlyonce dlq redrive ${flow}`);
        return;
      }
      case 'absent':
        throw new CommandError(EXIT.notFound, `no effect record for "${key}" in ${flow}`);
      case 'finished':
        throw new CommandError(EXIT.conflict, `"${key}" is ${answer.status}: there is nothing to resolve`);
      case 'running':
        throw new CommandError(EXIT.conflict, `"${key}" is held by ${answer.holder}: wait until its lease is over`);
    }
  } finally {
    await connection.close();
  }
}

function verdictOf({ result, notDone }: ResolveFlags): StepResolution['verdict'] {
  if (notDone === true) return { kind: 'notDone' };
  if (result === undefined) throw new CommandError(EXIT.usage, 'say what became of it: --result <json> or --not-done');
  try {
    return { kind: 'done', result: JSON.parse(result) as unknown };
  } catch {
    throw new CommandError(EXIT.usage, `--result: must be JSON, a text in double quotes (got ${result.slice(0, 80)})`);
  }
}

async function getEffect(flow: Flow, key: string, flags: ConnectionFlags): Promise<void> {
  const output = createOutput(flags.json === true);
  const connection = await connect(flags, output);
  try {
    const item = await connection.store.get(effectRecordKey(queueName(flow, flags.prefix), key));
    if (item === undefined) throw new CommandError(EXIT.notFound, `no effect record for "${key}" in ${flow}`);
    const effect = describe(key, item);
    output.data(effect, textFields(effect));
  } finally {
    await connection.close();
  }
}

function describe(key: string, item: Item): Record<string, unknown> {
  const { status, payloadHash, attempts, deliveries, fencingToken, holder, owner, lastError, reason, steps } = item;
  const times = {
    expiresAt: owner === undefined ? undefined : timeOf(item['expiresAtMs']),
    completedAt: timeOf(item['completedAtMs']),
  };
  return {
    key,
    status,
    ...(status === 'COMPLETED' && { response: fromStored(item['response']) }),
    ...(reason !== undefined && { reason }),
    payloadHash,
    attempts,
    deliveries,
    fencingToken,
    holder,
    isHeld: owner !== undefined,
    steps: Object.keys(typeof steps === 'object' && steps !== null ? steps : {}),
    ...(item['unknownStep'] !== undefined && { unknownStep: item['unknownStep'] }),
    ...(lastError !== undefined && { lastError }),
    ...times,
  };
}

function timeOf(value: unknown): string | undefined {
  return typeof value === 'number' && value > 0 ? isoTime(value) : undefined;
}
