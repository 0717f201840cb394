/** Backends that all processes of a test file share, and for each test queues and a table of its own on them. */
import { randomUUID } from 'node:crypto';
import { SendMessageCommand } from '@aws-sdk/client-sqs';
import { afterAll, beforeAll, onTestFinished } from 'vitest';
import { openConnection, type Connection, type FlowQueues } from '../../src/cli/connection.ts';
import { startProvider, type ProviderProcess } from '../../src/cli/provider-process.ts';
import { startLocalBackends, type LocalBackends } from '../../src/local/backends.ts';
import { CHARGE_REQUESTED, type Charge } from '../../src/messages/charge.ts';
import { encodeMessage } from '../../src/messages/envelope.ts';
import { readDeadLetters, type DeadLetter } from '../../src/queues/dead-letters.ts';
import { readDepth, totalOf } from '../../src/queues/depth.ts';
import { QUEUE_DEFAULTS, type QueueSettings } from '../../src/queues/topology.ts';
import { accountKey, effectRecordKey, type Item } from '../../src/store/table.ts';
import { runCli, startCli, type CliOptions, type Finished, type Running } from './process-cli.ts';
import type { Endpoints } from './process-proxy.ts';

export interface ProviderJournalLine {
  readonly chargeId: string;
  readonly reference: string;
  readonly amountMinor: number;
  readonly accountId: string;
}

export interface ProcessLab {
  readonly endpoints: Endpoints;
  /** Names of its own on the shared backends; queues and table are there already. */
  open(settings?: Partial<QueueSettings>): Promise<Scene>;
  /** The same without creating anything. */
  openEmpty(): Scene;
}

/** Starts SQS, DynamoDB and the payment provider before the tests of a file, and stops them afterwards. */
export function processLab(): ProcessLab {
  let backends: LocalBackends | undefined;
  let provider: ProviderProcess | undefined;

  beforeAll(async () => {
    backends = await startLocalBackends();
    provider = await startProvider({ port: 0 });
  });
  afterAll(async () => {
    await provider?.stop();
    await backends?.stop();
  });

  const endpoints = (): Endpoints => {
    if (backends === undefined || provider === undefined) throw new Error('not started');
    return { sqs: backends.sqsEndpoint, dynamodb: backends.dynamodbEndpoint, provider: provider.url };
  };
  return {
    get endpoints() {
      return endpoints();
    },
    async open(settings = {}) {
      const scene = new Scene(endpoints());
      await scene.bootstrap({ ...QUEUE_DEFAULTS, ...settings });
      return scene;
    },
    openEmpty: () => new Scene(endpoints()),
  };
}

/** Timings that let a test see a takeover within seconds. */
const SHORT_LEASE: readonly string[] = [
  ...['--lease-ms', '1500'],
  ...['--heartbeat-ms', '300'],
  ...['--visibility-seconds', '3'],
  ...['--wait-seconds', '1'],
];

export class Scene {
  readonly endpoints: Endpoints;
  readonly table: string;
  readonly prefix: string;
  readonly connection: Connection;
  #queues: FlowQueues | undefined;

  constructor(endpoints: Endpoints) {
    const name = randomUUID().slice(0, 8);
    this.endpoints = endpoints;
    this.table = `table-${name}`;
    this.prefix = `p${name}-`;
    this.connection = openConnection(endpoints, { table: this.table, prefix: this.prefix, logLevel: 'error' });
    onTestFinished(() => this.connection.close());
  }

  async bootstrap(settings: QueueSettings): Promise<void> {
    this.#queues = await this.connection.bootstrap('charges', settings);
  }

  get queues(): FlowQueues {
    if (this.#queues === undefined) throw new Error('no queues were created');
    return this.#queues;
  }

  /** What tells a process where everything is. */
  env(endpoints: Endpoints = this.endpoints): Record<string, string> {
    return {
      AWS_ENDPOINT_URL_SQS: endpoints.sqs,
      AWS_ENDPOINT_URL_DYNAMODB: endpoints.dynamodb,
      ONLYONCE_PROVIDER_URL: endpoints.provider,
      ONLYONCE_TABLE: this.table,
      ONLYONCE_PREFIX: this.prefix,
    };
  }

  /** Runs a command to its end. */
  run(args: readonly string[], options: CliOptions = {}): Promise<Finished> {
    return runCli(args, { ...options, env: { ...this.env(), ...options.env } });
  }

  /** Starts a command; it is killed when the test ends. */
  start(args: readonly string[], options: CliOptions & { readonly endpoints?: Endpoints } = {}): Running {
    const running = startCli(args, { ...options, env: { ...this.env(options.endpoints), ...options.env } });
    onTestFinished(async () => {
      await running.kill();
    });
    return running;
  }

  /** Starts a worker with a short lease. */
  work(flags: readonly string[] = [], endpoints: Endpoints = this.endpoints): Running {
    return this.start(['work', 'charges', '--json', ...SHORT_LEASE, ...flags], { endpoints });
  }

  charge(fields: Partial<Charge> = {}): Charge {
    const id = randomUUID();
    return {
      requestId: `req-${id}`,
      accountId: `acct-${id}`,
      amountMinor: 1_250,
      currency: 'EUR',
      description: 'one coffee machine',
      ...fields,
    };
  }

  /** @returns the message id. */
  async sendCharge(charge: Charge): Promise<string> {
    return this.sendBody(encodeMessage(CHARGE_REQUESTED, charge).body);
  }

  async sendBody(body: string): Promise<string> {
    const command = new SendMessageCommand({ QueueUrl: this.queues.queue.url, MessageBody: body });
    return (await this.connection.queues.send(command)).MessageId ?? '';
  }

  async depth(): Promise<number> {
    return totalOf(await readDepth(this.connection.queues, this.queues.queue.url));
  }

  async deadLetterDepth(): Promise<number> {
    return totalOf(await readDepth(this.connection.queues, this.queues.deadLetterQueue.url));
  }

  deadLetters(): Promise<DeadLetter[]> {
    return readDeadLetters(this.connection.queues, this.queues.deadLetterQueue.url, { limit: 100 });
  }

  record(requestId: string): Promise<Item | undefined> {
    return this.connection.store.get(effectRecordKey(this.queues.queue.name, requestId));
  }

  async balance(accountId: string): Promise<unknown> {
    return (await this.connection.store.get(accountKey(accountId)))?.['balance'];
  }

  /** Ledger entries of one request, whatever their keys. */
  async ledger(requestId: string): Promise<Item[]> {
    const entries: Item[] = [];
    for await (const item of this.connection.store.scan()) {
      if (item['requestId'] === requestId && String(item['SK']).startsWith('CHARGE#')) entries.push(item);
    }
    return entries;
  }

  /** What the provider charged for one request. */
  async providerCharges(requestId: string): Promise<ProviderJournalLine[]> {
    const response = await fetch(new URL('/v1/charges', this.endpoints.provider));
    const lines = (await response.text()).split('\n').filter((line) => line !== '');
    return lines.map((line) => JSON.parse(line) as ProviderJournalLine).filter((line) => line.reference === requestId);
  }
}
