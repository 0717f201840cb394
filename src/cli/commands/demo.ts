/** `onlyonce demo`: the whole promise in under a minute, with faults, and with proof. */
import { randomUUID } from 'node:crypto';
import { Command, Option } from 'commander';
import { systemRandom } from '../../clock.ts';
import { startLocalBackends } from '../../local/backends.ts';
import { QUEUE_DEFAULTS } from '../../queues/topology.ts';
import { endpointsOf, openConnection } from '../connection.ts';
import { createCrew } from '../demo/crew.ts';
import { demoText } from '../demo/report.ts';
import { runDemo } from '../demo/run-demo.ts';
import { demandLocal, givenEndpoints } from '../endpoints.ts';
import { EXIT } from '../exit-codes.ts';
import { interruption } from '../interruption.ts';
import { numberOption, withConnection, type ConnectionFlags } from '../options.ts';
import { createOutput } from '../output.ts';
import { startProvider } from '../provider-process.ts';
import { noteViolations } from './verify.ts';

interface DemoFlags extends ConnectionFlags {
  readonly seed?: number;
  readonly workers: number;
  readonly protection: 'full' | 'none';
}

const MAX_SEED = 2_147_483_647;
const LEASE_MS = 3_000;
const VISIBILITY_SECONDS = 5;
const INTERRUPTED_GRACE_MS = 1_000;
/** The unprotected worker has nothing but the queue's own redrive policy to get rid of what it cannot read. */
const MAX_RECEIVES_UNPROTECTED = 5;

export function demoCommand(): Command {
  return withConnection(new Command('demo'))
    .description('500 charges with duplicates through competing workers that are killed and frozen; each is made once')
    .addOption(numberOption('--seed <n>', 'repeats the same plan; none: a new one', [0, MAX_SEED]).env('ONLYONCE_SEED'))
    .addOption(numberOption('--workers <n>', 'worker processes', [2, 32]).env('ONLYONCE_WORKERS').default(3))
    .addOption(
      new Option('--protection <kind>', 'none: the same faults without effect records; must be caught')
        .choices(['full', 'none'])
        .env('ONLYONCE_PROTECTION')
        .default('full'),
    )
    .action(demo);
}

async function demo(flags: DemoFlags): Promise<void> {
  const output = createOutput(flags.json === true);
  const { signal } = interruption();
  const seed = flags.seed ?? Math.floor(systemRandom() * MAX_SEED);
  const given = givenEndpoints(flags);
  if (given !== undefined) demandLocal(given, 'demo');
  output.note(
    given === undefined ? 'starting local SQS, DynamoDB and a payment provider' : 'starting a payment provider',
  );
  await using stack = new AsyncDisposableStack();
  try {
    const backends = given === undefined ? await startLocalBackends({ signal }) : undefined;
    stack.defer(() => backends?.stop());
    const endpoints = given ?? (backends === undefined ? undefined : endpointsOf(backends));
    if (endpoints === undefined) return;
    const provider = stack.use(await startProvider({ port: 0 }));
    // Names of its own: a demo on shared backends touches nothing that was there before.
    const run = randomUUID().slice(0, 8);
    const names = { table: `onlyonce-demo-${run}`, prefix: `demo-${run}-` };
    const connection = openConnection(endpoints, { ...flags, ...names });
    stack.defer(() => connection.close());
    const maxReceiveCount = flags.protection === 'none' ? MAX_RECEIVES_UNPROTECTED : QUEUE_DEFAULTS.maxReceiveCount;
    const queues = await connection.bootstrap('charges', {
      ...QUEUE_DEFAULTS,
      visibilityTimeoutSeconds: VISIBILITY_SECONDS,
      maxReceiveCount,
    });
    const { protection, workers } = flags;
    const crew = createCrew({
      ...names,
      endpoints,
      providerUrl: provider.url,
      protection,
      leaseMs: LEASE_MS,
      visibilitySeconds: VISIBILITY_SECONDS,
    });
    stack.defer(async () => {
      // A worker whose answer is held back would wait for it, and whoever pressed Ctrl-C with it.
      await crew.dismiss(signal.aborted ? { graceMs: INTERRUPTED_GRACE_MS } : {});
    });
    const scope = { connection, queues, crew, providerUrl: provider.url, seed, protection, workers, output, signal };
    const { result, sends } = await runDemo(scope);
    output.data(result, demoText(result, sends));
    noteViolations(result.invariants, output);
    if (!result.ok) process.exitCode = EXIT.failure;
  } catch (error) {
    if (!signal.aborted) throw error;
    process.exitCode = EXIT.interrupted;
  }
}
