/**
 * Entry of the child process that is the local SQS: `queue-server --port N` (0: any free port).
 *
 * Prints one line of JSON, `{"port":N}`, when it answers. Ends in order on SIGTERM, on SIGINT, and when stdin ends: its
 * parent holds the other end for as long as it wants an SQS.
 */
import { parseArgs } from 'node:util';
import { ConfigurationError, messageOf } from '../errors.ts';
import { loadCompanion } from './companion.ts';
import { startQueueFront } from './queue-front.ts';

async function main(): Promise<void> {
  // Listened for before anything is slow: an end that comes early must not be missed.
  const told = toldToEnd();
  const port = portFrom(process.argv.slice(2));
  const companion = await loadCompanion();
  const front = await startQueueFront({ app: await companion.buildQueueApp(), port });
  process.stdout.write(`${JSON.stringify({ port: front.port })}\n`);
  await told;
  await front.close();
}

function portFrom(args: string[]): number {
  const { values } = parseArgs({ args, options: { port: { type: 'string', default: '0' } } });
  const port = Number(values.port);
  if (Number.isInteger(port) && port >= 0 && port <= 65_535) return port;
  throw new ConfigurationError('queue-server', [
    { name: 'port', rule: 'a whole number from 0 to 65535', value: values.port },
  ]);
}

function toldToEnd(): Promise<void> {
  return new Promise((resolve) => {
    const end = (): void => {
      resolve();
    };
    process.once('SIGTERM', end);
    process.once('SIGINT', end);
    process.stdin.once('end', end).once('error', end).resume();
    // Nobody reads stdout any more once the parent has gone.
    process.stdout.on('error', end);
  });
}

try {
  await main();
  process.exit(0);
} catch (error) {
  process.stderr.write(`${messageOf(error)}\n`);
  process.exit(1);
}
