/**
 * The local payment provider as a process of its own, so that it outlives the workers that are killed around it.
 *
 * `node provider-server.ts --port 0 --journal charges.ndjson` prints `{"port":N}` on stdout when it serves. It ends on
 * SIGTERM, SIGINT and when its stdin ends: whoever started it keeps the pipe open, and no provider is left behind when
 * that process dies. Exit codes: 0 ended, 1 cannot start, 2 wrong usage.
 */
import { parseArgs } from 'node:util';
import { messageOf } from '../errors.ts';
import { startLocalProvider } from './provider-http.ts';
import type { LocalProviderServerOptions } from './provider-http.ts';

const USAGE = 'usage: provider-server --port N --journal FILE (port 0 to 65535, 0 takes any free one)';

async function main(): Promise<void> {
  const options = parseOptions(process.argv.slice(2));
  if (options === undefined) {
    process.stderr.write(`${USAGE}\n`);
    process.exitCode = 2;
    return;
  }
  const ended = endOfProcess();
  const provider = await startLocalProvider(options);
  if (provider.tornBytes > 0) {
    const bytes = String(provider.tornBytes);
    process.stderr.write(`cut off a torn last line of ${bytes} bytes; nobody was ever answered for it\n`);
  }
  process.stdout.write(`${JSON.stringify({ port: provider.port })}\n`);
  await ended;
  await provider.close();
  // An open stdin would keep the process alive after a signal.
  process.stdin.destroy();
}

function parseOptions(argv: string[]): LocalProviderServerOptions | undefined {
  try {
    const { values } = parseArgs({ args: argv, options: { port: { type: 'string' }, journal: { type: 'string' } } });
    const port = /^\d{1,5}$/.test(values.port ?? '0') ? Number(values.port ?? '0') : Number.NaN;
    if (!(port <= 65_535) || values.journal === undefined || values.journal === '') return undefined;
    return { port, journalFile: values.journal };
  } catch {
    return undefined;
  }
}

/** Listens from the start, so that a signal during the start is not lost. */
function endOfProcess(): Promise<void> {
  return new Promise((resolve) => {
    const end = (): void => {
      resolve();
    };
    process.once('SIGTERM', end);
    process.once('SIGINT', end);
    process.stdin.once('end', end);
    process.stdin.once('error', end);
    process.stdin.resume();
    // The reader of stdout may be gone first; its stdin end is what ends us then.
    process.stdout.on('error', end);
  });
}

try {
  await main();
} catch (error) {
  process.stderr.write(`${messageOf(error)}\n`);
  process.stdin.destroy();
  process.exitCode = 1;
}
