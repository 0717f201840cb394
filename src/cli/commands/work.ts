/** `onlyonce work charges`: one worker process, until it is told to stop. */
import { hostname } from 'node:os';
import { Argument, Command, Option } from 'commander';
import { createHttpPaymentProvider } from '../../payments/http-payment-provider.ts';
import type { Flow } from '../../queues/topology.ts';
import { createLogger, type LogLevel } from '../../telemetry/logger.ts';
import { createChargeHandler } from '../../workers/handlers/charge.ts';
import { WORKER_DEFAULTS } from '../../workers/options.ts';
import { createWorker, type Worker } from '../../workers/worker.ts';
import { connect, type Connection, type FlowQueues } from '../connection.ts';
import { createUnprotectedWorker } from '../demo/unprotected-worker.ts';
import { demandLocal, givenEndpoints } from '../endpoints.ts';
import { EXIT } from '../exit-codes.ts';
import { interruption } from '../interruption.ts';
import { numberOption, parseFlow, withConnection, type ConnectionFlags } from '../options.ts';
import { createOutput, isLogLevel, type Output } from '../output.ts';
import { startProvider } from '../provider-process.ts';
import { deliveryEvent, eventText, outcomeEvent, type WorkEvent } from '../work-events.ts';

export interface WorkFlags extends ConnectionFlags {
  readonly name: string;
  readonly providerUrl?: string;
  readonly providerTimeoutMs: number;
  readonly concurrency: number;
  readonly maxAttempts: number;
  readonly visibilitySeconds: number;
  readonly waitSeconds: number;
  readonly leaseMs: number;
  readonly heartbeatMs?: number;
  readonly stopDeadlineMs: number;
  readonly protection: 'full' | 'none';
}

export function workCommand(): Command {
  const seconds = [1, 43_200] as const;
  const ms = [100, 3_600_000] as const;
  return withConnection(new Command('work'))
    .description('run a worker until it is told to stop (Ctrl-C or SIGTERM; a second one does not wait)')
    .addArgument(new Argument('<flow>', 'what to work on').argParser(parseFlow))
    .addOption(
      new Option('--name <text>', 'written into leases')
        .env('ONLYONCE_NAME')
        .default(`${hostname()}:${String(process.pid)}`, 'host:pid'),
    )
    .addOption(new Option('--provider-url <url>', 'payment provider; none: a local one').env('ONLYONCE_PROVIDER_URL'))
    .addOption(
      numberOption('--provider-timeout-ms <n>', 'longest wait for its answer', [100, 300_000])
        .env('ONLYONCE_PROVIDER_TIMEOUT_MS')
        .default(10_000),
    )
    .addOption(
      numberOption('--concurrency <n>', 'deliveries at once', [1, 1_000])
        .env('ONLYONCE_CONCURRENCY')
        .default(WORKER_DEFAULTS.concurrency),
    )
    .addOption(
      numberOption('--max-attempts <n>', 'tries before a message is dead-lettered', [1, 1_000])
        .env('ONLYONCE_MAX_ATTEMPTS')
        .default(WORKER_DEFAULTS.maxAttempts),
    )
    .addOption(
      numberOption('--visibility-seconds <n>', 'how long a delivery is hidden', seconds)
        .env('ONLYONCE_VISIBILITY_SECONDS')
        .default(WORKER_DEFAULTS.visibilityTimeoutSeconds),
    )
    .addOption(
      numberOption('--wait-seconds <n>', 'long poll', [0, 20])
        .env('ONLYONCE_WAIT_SECONDS')
        .default(WORKER_DEFAULTS.waitTimeSeconds),
    )
    .addOption(numberOption('--lease-ms <n>', 'lease on a key', ms).env('ONLYONCE_LEASE_MS').default(20_000))
    .addOption(
      numberOption('--heartbeat-ms <n>', 'between renewals; none: a quarter of the lease', ms).env(
        'ONLYONCE_HEARTBEAT_MS',
      ),
    )
    .addOption(
      numberOption('--stop-deadline-ms <n>', 'how long a stop may take', [0, 3_600_000])
        .env('ONLYONCE_STOP_DEADLINE_MS')
        .default(25_000),
    )
    .addOption(
      new Option(
        '--protection <kind>',
        'none: no effect record at all, to see what happens then (local endpoints only)',
      )
        .choices(['full', 'none'])
        .env('ONLYONCE_PROTECTION')
        .default('full'),
    )
    .action(work);
}

async function work(flow: Flow, flags: WorkFlags): Promise<void> {
  const output = createOutput(flags.json === true);
  const interrupted = interruption();
  const given = givenEndpoints(flags);
  // Asked before anything is sent there.
  if (given !== undefined && flags.protection === 'none') demandLocal(given, 'work --protection none');
  const connection = await connect(flags, output);
  try {
    const queues = await connection.find(flow);
    await using provider = flags.providerUrl === undefined ? await startProvider({ port: 0 }) : undefined;
    const baseUrl = flags.providerUrl ?? provider?.url ?? '';
    const build = flags.protection === 'none' ? buildUnprotected : buildWorker;
    const worker = build({ connection, queues, flags, baseUrl, output });
    worker.start();
    tell(output, { event: 'ready', worker: flags.name });
    await interrupted.promise;
    output.note(`${flags.name}: stopping, ${String(flags.stopDeadlineMs)} ms at the most`);
    const { leftovers } = await worker.stop({ deadlineMs: flags.stopDeadlineMs });
    if (leftovers.length > 0)
      output.note(`${flags.name}: not finished, will be delivered again: ${leftovers.join(', ')}`);
    if (interrupted.isFromKeyboard()) process.exitCode = EXIT.interrupted;
    // Handlers that ignore their signal must not keep the process.
    if (leftovers.length > 0) process.exit();
  } finally {
    await connection.close();
  }
}

interface WorkScope {
  readonly connection: Connection;
  readonly queues: FlowQueues;
  readonly flags: WorkFlags;
  readonly baseUrl: string;
  readonly output: Output;
}

function buildWorker({ connection, queues, flags, baseUrl, output }: WorkScope): Worker {
  const level: LogLevel = isLogLevel(flags.logLevel) ? flags.logLevel : 'error';
  const provider = createHttpPaymentProvider({ baseUrl, caller: flags.name, timeoutMs: flags.providerTimeoutMs });
  return createWorker({
    queue: queues.queue.name,
    queueUrl: queues.queue.url,
    deadLetterQueueUrl: queues.deadLetterQueue.url,
    client: connection.queues,
    pollingClient: connection.pollingClient(),
    store: connection.store,
    handlers: [createChargeHandler(provider)],
    name: flags.name,
    concurrency: flags.concurrency,
    maxAttempts: flags.maxAttempts,
    visibilityTimeoutSeconds: flags.visibilitySeconds,
    waitTimeSeconds: flags.waitSeconds,
    lease: { leaseMs: flags.leaseMs, ...(flags.heartbeatMs !== undefined && { heartbeatMs: flags.heartbeatMs }) },
    log: createLogger({ level, name: flags.name }),
    events: {
      onDelivery: (delivery) => {
        if (output.isJson) tell(output, deliveryEvent(flags.name, delivery));
      },
      onOutcome: (report) => {
        tell(output, outcomeEvent(flags.name, report));
      },
      onReceiveFailed: (error, nextTryInMs) => {
        output.note(`${flags.name}: receiving failed (${error.name}), next try in ${String(nextTryInMs)} ms`);
      },
    },
  });
}

function buildUnprotected({ connection, queues, flags, baseUrl, output }: WorkScope): Worker {
  output.note(`${flags.name}: WITHOUT PROTECTION: charges will be made more than once`);
  return createUnprotectedWorker({
    queueUrl: queues.queue.url,
    client: connection.pollingClient(),
    store: connection.store,
    provider: createHttpPaymentProvider({ baseUrl, caller: flags.name, timeoutMs: flags.providerTimeoutMs }),
    name: flags.name,
    concurrency: flags.concurrency,
    visibilityTimeoutSeconds: flags.visibilitySeconds,
    waitTimeSeconds: flags.waitSeconds,
    tell: (event) => {
      tell(output, event);
    },
  });
}

function tell(output: Output, event: WorkEvent): void {
  output.data(event, eventText(event));
}
