/** `onlyonce work charges`: one worker process, until it is told to stop. */
import { Argument, Command } from 'commander';
import { createHttpPaymentProvider } from '../../payments/http-payment-provider.ts';
import type { Flow } from '../../queues/topology.ts';
import { createLogger, type LogLevel } from '../../telemetry/logger.ts';
import { createChargeHandler } from '../../workers/handlers/charge.ts';
import { createWorker, type Worker } from '../../workers/worker.ts';
import { connect, type Connection, type FlowQueues } from '../connection.ts';
import { createUnprotectedWorker } from '../demo/unprotected-worker.ts';
import { demandLocal, givenEndpoints } from '../endpoints.ts';
import { CommandError, EXIT } from '../exit-codes.ts';
import { interruption } from '../interruption.ts';
import { parseFlow, withConnection } from '../options.ts';
import { createOutput, isLogLevel, type Output } from '../output.ts';
import { startProvider } from '../provider-process.ts';
import { withWorkerOptions, withWorkerTimes, type WorkFlags } from '../work-options.ts';
import { deliveryEvent, eventText, outcomeEvent, type WorkEvent } from '../work-events.ts';

export function workCommand(): Command {
  const command = withConnection(new Command('work'))
    .description('run a worker until it is told to stop (Ctrl-C or SIGTERM; a second one does not wait)')
    .addArgument(new Argument('<flow>', 'what to work on').argParser(parseFlow));
  return withWorkerTimes(withWorkerOptions(command)).action(work);
}

async function work(flow: Flow, flags: WorkFlags): Promise<void> {
  const output = createOutput(flags.json === true);
  const interrupted = interruption();
  const given = givenEndpoints(flags);
  // Asked before anything is sent there.
  if (given !== undefined && flags.protection === 'none') demandLocal(given, 'work --protection none');
  if (given !== undefined && flags.providerUrl === undefined) {
    // Each worker with a provider of its own would charge once each: no record can see that.
    const advice = 'set ONLYONCE_PROVIDER_URL ("onlyonce up" prints it; "onlyonce up --provider-only" starts just one)';
    throw new CommandError(EXIT.usage, `workers on a shared queue must share one payment provider: ${advice}`);
  }
  const connection = await connect(flags, output);
  try {
    const queues = await connection.find(flow);
    await using provider = flags.providerUrl === undefined ? await startProvider({ port: 0 }) : undefined;
    const baseUrl = flags.providerUrl ?? provider?.url ?? '';
    const build = flags.protection === 'none' ? buildUnprotected : buildWorker;
    const worker = build({ connection, queues, flags, baseUrl, output });
    await worker.start();
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

type RunningWorker = Pick<Worker, 'start' | 'stop'>;

interface WorkScope {
  readonly connection: Connection;
  readonly queues: FlowQueues;
  readonly flags: WorkFlags;
  readonly baseUrl: string;
  readonly output: Output;
}

function buildWorker({ connection, queues, flags, baseUrl, output }: WorkScope): RunningWorker {
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
    queueRules: flags.queueRules,
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

function buildUnprotected({ connection, queues, flags, baseUrl, output }: WorkScope): RunningWorker {
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
