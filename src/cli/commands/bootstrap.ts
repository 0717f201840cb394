/** `onlyonce bootstrap`: creates the table, the queues and their dead-letter queues where they are missing. */
import { Command } from 'commander';
import { FLOWS } from '../../queues/topology.ts';
import { connect } from '../connection.ts';
import { withConnection, type ConnectionFlags } from '../options.ts';
import { createOutput } from '../output.ts';

export function bootstrapCommand(): Command {
  return withConnection(new Command('bootstrap'))
    .description('create the table and queues that are missing; safe to repeat, never deletes')
    .action(bootstrap);
}

async function bootstrap(flags: ConnectionFlags): Promise<void> {
  const output = createOutput(flags.json === true);
  const connection = await connect(flags, output);
  try {
    for (const flow of FLOWS) {
      const { queue, deadLetterQueue, table, created } = await connection.bootstrap(flow);
      const value = {
        flow,
        table: table.table,
        tableCreated: table.created,
        queue,
        deadLetterQueue,
        queuesCreated: created,
      };
      const word = (isNew: boolean): string => (isNew ? 'created' : 'there already');
      const lines = [
        `table ${table.table}: ${word(table.created)}`,
        `queues ${queue.name}, ${deadLetterQueue.name}: ${word(created)}`,
      ];
      output.data(value, lines.join('\n'));
    }
  } finally {
    await connection.close();
  }
}
