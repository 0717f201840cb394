/** `onlyonce effects get`: what became of a business key. */
import { Argument, Command } from 'commander';
import { fromStored } from '../../store/effects/stored-value.ts';
import { effectRecordKey, type Item } from '../../store/table.ts';
import { queueName, type Flow } from '../../queues/topology.ts';
import { isoTime } from '../../clock.ts';
import { connect } from '../connection.ts';
import { CommandError, EXIT } from '../exit-codes.ts';
import { parseFlow, withConnection, type ConnectionFlags } from '../options.ts';
import { createOutput, textFields } from '../output.ts';

export function effectsCommand(): Command {
  const get = withConnection(new Command('get'))
    .description('show the effect record of a key')
    .addArgument(new Argument('<flow>', 'the flow that the key belongs to').argParser(parseFlow))
    .argument('<key>', 'the business key, for example a request id')
    .action(getEffect);
  return new Command('effects').description('what became of business keys').addCommand(get);
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
    ...(lastError !== undefined && { lastError }),
    ...times,
  };
}

function timeOf(value: unknown): string | undefined {
  return typeof value === 'number' && value > 0 ? isoTime(value) : undefined;
}
