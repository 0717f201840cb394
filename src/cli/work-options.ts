/** The flags of a worker process. */
import { hostname } from 'node:os';
import { Option, type Command } from 'commander';
import { LEASE_DEFAULTS } from '../store/leases/lease-options.ts';
import { WORKER_DEFAULTS } from '../workers/options.ts';
import { numberOption, type ConnectionFlags } from './options.ts';

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
  readonly queueRules: 'refuse' | 'warn' | 'off';
}

/** Who works, with whom, and how much at once. */
export function withWorkerOptions(command: Command): Command {
  return command
    .addOption(
      new Option('--name <text>', 'written into leases')
        .env('ONLYONCE_NAME')
        .default(`${hostname()}:${String(process.pid)}`, 'host:pid'),
    )
    .addOption(
      new Option('--provider-url <url>', 'payment provider; none, and no endpoint either: a local one').env(
        'ONLYONCE_PROVIDER_URL',
      ),
    )
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
    );
}

/** How long things last. */
export function withWorkerTimes(command: Command): Command {
  return command
    .addOption(
      numberOption('--visibility-seconds <n>', 'how long a delivery is hidden', [1, 43_200])
        .env('ONLYONCE_VISIBILITY_SECONDS')
        .default(WORKER_DEFAULTS.visibilityTimeoutSeconds),
    )
    .addOption(
      numberOption('--wait-seconds <n>', 'long poll', [1, 20])
        .env('ONLYONCE_WAIT_SECONDS')
        .default(WORKER_DEFAULTS.waitTimeSeconds),
    )
    .addOption(
      numberOption('--lease-ms <n>', 'lease on a key', [500, 3_600_000])
        .env('ONLYONCE_LEASE_MS')
        .default(LEASE_DEFAULTS.leaseMs),
    )
    .addOption(
      numberOption('--heartbeat-ms <n>', 'between renewals; none: a quarter of the lease', [100, 1_200_000]).env(
        'ONLYONCE_HEARTBEAT_MS',
      ),
    )
    .addOption(
      numberOption('--stop-deadline-ms <n>', 'how long a stop may take', [0, 3_600_000])
        .env('ONLYONCE_STOP_DEADLINE_MS')
        .default(25_000),
    )
    .addOption(
      new Option('--queue-rules <kind>', 'what to do when the queue and the worker do not fit together')
        .choices(['refuse', 'warn', 'off'])
        .env('ONLYONCE_QUEUE_RULES')
        .default(WORKER_DEFAULTS.queueRules),
    )
    .addOption(
      new Option(
        '--protection <kind>',
        'none: no effect record at all, to see what happens then (local endpoints only)',
      )
        .choices(['full', 'none'])
        .env('ONLYONCE_PROTECTION')
        .default('full'),
    );
}
