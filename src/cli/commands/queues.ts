/** `onlyonce queues ls`: the queues and how much is on them. */
import { Command } from 'commander';
import { readDepth } from '../../queues/depth.ts';
import { FLOWS } from '../../queues/topology.ts';
import { connect } from '../connection.ts';
import { withConnection, type ConnectionFlags } from '../options.ts';
import { createOutput, textTable } from '../output.ts';

export function queuesCommand(): Command {
  const ls = withConnection(new Command('ls')).description('list the queues with their depths').action(listQueues);
  return new Command('queues').description('the queues of all flows').addCommand(ls);
}

async function listQueues(flags: ConnectionFlags): Promise<void> {
  const output = createOutput(flags.json === true);
  const connection = await connect(flags, output);
  try {
    const found = await Promise.all(FLOWS.map((flow) => connection.find(flow)));
    const addresses = found.flatMap(({ queue, deadLetterQueue }) => [queue, deadLetterQueue]);
    const rows = await Promise.all(
      addresses.map(async ({ name, url }) => ({ name, ...(await readDepth(connection.queues, url)) })),
    );
    if (output.isJson) {
      for (const row of rows) output.data(row, '');
      return;
    }
    const table = [['queue', 'visible', 'in flight', 'delayed'], ...rows.map(Object.values<string | number>)];
    output.data(rows, textTable(table));
    output.note('counts are approximate, on every backend');
  } finally {
    await connection.close();
  }
}
