/** `onlyonce up`: local SQS, DynamoDB and payment provider in the foreground, ready for use. */
import { mkdir } from 'node:fs/promises';
import { dirname } from 'node:path';
import { Command, Option } from 'commander';
import { startLocalBackends, type LocalBackends } from '../../local/backends.ts';
import { endpointsOf, openConnection } from '../connection.ts';
import { CommandError, EXIT } from '../exit-codes.ts';
import { interruption } from '../interruption.ts';
import { jsonOption, numberOption } from '../options.ts';
import { createOutput } from '../output.ts';
import { startProvider } from '../provider-process.ts';

interface UpFlags {
  readonly data?: string;
  readonly journal?: string;
  readonly sqsPort: number;
  readonly dynamodbPort: number;
  readonly providerPort: number;
  readonly providerOnly?: boolean;
  readonly json?: boolean;
}

const PORTS = [0, 65_535] as const;

export function upCommand(): Command {
  return new Command('up')
    .description('keep local SQS, DynamoDB and a payment provider running, and print their addresses')
    .addOption(new Option('--data <file>', 'keep the tables in this file; none: in memory').env('ONLYONCE_DATA'))
    .addOption(
      new Option('--journal <file>', "the payment provider's journal; none: a file that ends with it").env(
        'ONLYONCE_JOURNAL',
      ),
    )
    .addOption(numberOption('--sqs-port <n>', '0: any free port', PORTS).env('ONLYONCE_SQS_PORT').default(0))
    .addOption(numberOption('--dynamodb-port <n>', '0: any free port', PORTS).env('ONLYONCE_DYNAMODB_PORT').default(0))
    .addOption(numberOption('--provider-port <n>', '0: any free port', PORTS).env('ONLYONCE_PROVIDER_PORT').default(0))
    .addOption(
      new Option('--provider-only', 'no SQS and no DynamoDB: for backends that run elsewhere').env(
        'ONLYONCE_PROVIDER_ONLY',
      ),
    )
    .addOption(jsonOption())
    .action(up);
}

async function up(flags: UpFlags): Promise<void> {
  const output = createOutput(flags.json === true);
  const interrupted = interruption();
  for (const file of [flags.data, flags.journal]) {
    if (file !== undefined) await mkdir(dirname(file), { recursive: true });
  }
  await using stack = new AsyncDisposableStack();
  const backends = flags.providerOnly === true ? undefined : await startBackends(flags, interrupted.signal);
  stack.defer(() => backends?.stop());
  const provider = stack.use(await startProvider({ port: flags.providerPort, journalFile: flags.journal }));
  const variables = {
    ...(backends !== undefined && (await readyToUse(backends))),
    ONLYONCE_PROVIDER_URL: provider.url,
  };
  const lines = Object.entries(variables).map(([name, value]) => `export ${name}=${value}`);
  output.data(variables, lines.join('\n'));
  output.note('ready: copy these lines into another terminal; Ctrl-C ends everything');
  const ends = [interrupted.promise, provider.exited, ...(backends === undefined ? [] : [backends.exited])];
  if ((await Promise.race(ends)) === 'interrupted') return;
  throw new CommandError(EXIT.failure, 'a local backend ended by itself; everything else was stopped');
}

function startBackends(flags: UpFlags, signal: AbortSignal): Promise<LocalBackends> {
  return startLocalBackends({
    sqsPort: flags.sqsPort,
    dynamodbPort: flags.dynamodbPort,
    signal,
    ...(flags.data !== undefined && { dbPath: flags.data }),
  });
}

/** Creates table and queues, and tells how to reach them. */
async function readyToUse(backends: LocalBackends): Promise<Record<string, string>> {
  const endpoints = endpointsOf(backends);
  const connection = openConnection(endpoints, { table: 'onlyonce', prefix: '', logLevel: 'error' });
  await connection.bootstrap('charges');
  await connection.close();
  return {
    AWS_ENDPOINT_URL_SQS: endpoints.sqs,
    AWS_ENDPOINT_URL_DYNAMODB: endpoints.dynamodb,
    AWS_REGION: 'us-east-1',
    AWS_ACCESS_KEY_ID: 'local',
    AWS_SECRET_ACCESS_KEY: 'local',
  };
}
