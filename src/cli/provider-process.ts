/** Starts the local payment provider as a child process, ready to be asked. */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { EnvironmentError } from '../errors.ts';
import { startChild, type ChildExit } from '../local/child-process.ts';

export interface ProviderProcess extends AsyncDisposable {
  readonly url: string;
  readonly exited: Promise<ChildExit>;
  stop(): Promise<void>;
}

export interface ProviderProcessOptions {
  /** 0: any free port. */
  readonly port: number;
  /** Undefined: a file that is removed when the provider is stopped. */
  readonly journalFile?: string | undefined;
}

export async function startProvider(options: ProviderProcessOptions): Promise<ProviderProcess> {
  const scratch = options.journalFile === undefined ? await mkdtemp(join(tmpdir(), 'onlyonce-provider-')) : undefined;
  const journalFile = options.journalFile ?? join(scratch ?? '', 'charges.ndjson');
  // The provider runs as this process runs: from the sources in a checkout, from the built files in the package.
  const ending = import.meta.url.endsWith('.ts') ? 'ts' : 'js';
  const entry = fileURLToPath(new URL(`../payments/provider-server.${ending}`, import.meta.url));

  let tellPort: (port: number) => void = () => undefined;
  const ready = new Promise<number>((resolve) => {
    tellPort = resolve;
  });
  const child = startChild({
    name: 'payment provider',
    command: process.execPath,
    args: [entry, '--port', String(options.port), '--journal', journalFile],
    onStdoutLine: (line) => {
      const said = JSON.parse(line) as { port: number };
      tellPort(said.port);
    },
  });
  const port = await Promise.race([ready, child.exited]);
  if (typeof port !== 'number') {
    throw new EnvironmentError(`the payment provider did not start: ${child.stderrTail().trim()}`);
  }
  const stop = async (): Promise<void> => {
    await child.stop();
    if (scratch !== undefined) await rm(scratch, { recursive: true, force: true });
  };
  return { url: `http://127.0.0.1:${String(port)}`, exited: child.exited, stop, [Symbol.asyncDispose]: stop };
}
