/** A worker with real queues and a real table, and what a test needs to send to it and to look at what it did. */
import { randomUUID } from 'node:crypto';
import {
  DeleteMessageCommand,
  GetQueueAttributesCommand,
  ReceiveMessageCommand,
  SendMessageBatchCommand,
  SendMessageCommand,
  type Message as SqsMessage,
  type MessageAttributeValue,
  type SQSClient,
} from '@aws-sdk/client-sqs';
import { afterAll, beforeAll, onTestFinished } from 'vitest';
import type { Clock, Random } from '../../src/clock.ts';
import { startLocalBackends, type LocalBackends } from '../../src/local/backends.ts';
import { CHARGE_REQUESTED, type Charge } from '../../src/messages/charge.ts';
import { createPollingClient, createQueueClient } from '../../src/queues/client.ts';
import { createQueuePair, type QueuePair } from '../../src/queues/create-queues.ts';
import { NOTICE_ATTRIBUTE, parseNotice, type DeadLetterNotice } from '../../src/queues/dead-letter-notice.ts';
import { createStore, type Store } from '../../src/store/store.ts';
import { accountKey, effectRecordKey, ledgerEntryKey, type Item } from '../../src/store/table.ts';
import type { Delivery } from '../../src/workers/delivery.ts';
import type { DeliveryReport } from '../../src/workers/events.ts';
import { createChargeHandler } from '../../src/workers/handlers/charge.ts';
import type { WorkerOptions } from '../../src/workers/options.ts';
import type { OutcomeKind } from '../../src/workers/outcome.ts';
import { createWorker, type Worker } from '../../src/workers/worker.ts';
import { TestClock } from './worker-clock.ts';
import { Journal } from './worker-journal.ts';
import { CountingProvider } from './worker-provider.ts';

const CREDENTIALS = { region: 'us-east-1', credentials: { accessKeyId: 'test', secretAccessKey: 'test' } };

export interface Lab {
  /**
   * Queues of their own for one test; everything is stopped when the test ends. A message that nobody gives back comes
   * again after `visibilityTimeoutSeconds`. @defaultValue 30, so that a slow machine sees no redelivery
   */
  open(settings?: { visibilityTimeoutSeconds?: number; maxReceiveCount?: number; isFifo?: boolean }): Promise<Bench>;
  readonly dynamodbEndpoint: string;
  readonly sqsEndpoint: string;
}

/** Starts the backends before the tests of a file and stops them afterwards. */
export function workerLab(): Lab {
  let backends: LocalBackends | undefined;
  let store: Store | undefined;
  let client: SQSClient | undefined;
  let opened = 0;

  beforeAll(async () => {
    backends = await startLocalBackends();
    store = createStore({ ...CREDENTIALS, endpoint: backends.dynamodbEndpoint });
    client = createQueueClient({ ...CREDENTIALS, endpoint: backends.sqsEndpoint });
    await store.bootstrap();
  });
  afterAll(async () => {
    client?.destroy();
    store?.close();
    await backends?.stop();
  });

  return {
    async open({ visibilityTimeoutSeconds = 30, maxReceiveCount = 100, isFifo = false } = {}) {
      if (backends === undefined || store === undefined || client === undefined) throw new Error('not started');
      opened += 1;
      const settings = { visibilityTimeoutSeconds, maxReceiveCount, retentionSeconds: 3_600, isFifo };
      const name = `q${String(opened)}${isFifo ? '.fifo' : ''}`;
      const pair = await createQueuePair(client, name, settings);
      return new Bench({ backends, store, client, pair, visibilityTimeoutSeconds });
    },
    get dynamodbEndpoint() {
      return backends?.dynamodbEndpoint ?? '';
    },
    get sqsEndpoint() {
      return backends?.sqsEndpoint ?? '';
    },
  };
}

interface BenchParts {
  readonly backends: LocalBackends;
  readonly store: Store;
  readonly client: SQSClient;
  readonly pair: QueuePair;
  readonly visibilityTimeoutSeconds: number;
}

export interface RunSettings extends Partial<Omit<WorkerOptions, 'store' | 'client' | 'pollingClient'>> {
  readonly clock?: Clock;
  readonly random?: Random;
  readonly recordRetentionDays?: number;
  /** Instead of the real DynamoDB: a proxy in front of it. */
  readonly dynamodbEndpoint?: string;
  /** Called before the worker starts: the place to put faults into its clients. */
  readonly prepare?: (clients: { client: SQSClient; pollingClient: SQSClient }) => void;
}

export interface DeadLetter {
  readonly body: string;
  readonly notice: DeadLetterNotice | undefined;
  readonly attributes: Readonly<Record<string, MessageAttributeValue>>;
}

/** One worker at work. */
export interface Run {
  readonly worker: Worker;
  readonly outcomes: Journal<DeliveryReport>;
  readonly deliveries: Journal<Delivery>;
  /** Resolves once there are `count` outcomes of this kind. */
  when(kind: OutcomeKind, count?: number): Promise<DeliveryReport[]>;
  /** How many outcomes of each kind there were. */
  tally(): Partial<Record<OutcomeKind, number>>;
}

export class Bench {
  readonly #parts: BenchParts;
  readonly store: Store;
  /** Free of faults: for looking and for sending. */
  readonly client: SQSClient;
  readonly queue: string;
  readonly queueUrl: string;
  readonly deadLetterQueueUrl: string;
  readonly provider: CountingProvider = new CountingProvider();
  readonly accountId: string = `acc-${randomUUID()}`;

  constructor(parts: BenchParts) {
    this.#parts = parts;
    this.store = parts.store;
    this.client = parts.client;
    this.queue = parts.pair.queue.name;
    this.queueUrl = parts.pair.queue.url;
    this.deadLetterQueueUrl = parts.pair.deadLetterQueue.url;
  }

  charge(changes: Partial<Charge> = {}): Charge {
    const base = { requestId: 'r1', amountMinor: 1_250, currency: 'EUR', description: 'one coffee machine' };
    return { ...base, accountId: this.accountId, ...changes };
  }

  chargeBody(changes: Partial<Charge> = {}): string {
    const payload = this.charge(changes);
    return JSON.stringify({ type: CHARGE_REQUESTED.type, version: 1, key: payload.requestId, payload });
  }

  async send(body: string, attributes: Record<string, MessageAttributeValue> = {}): Promise<string> {
    const input = { QueueUrl: this.queueUrl, MessageBody: body, MessageAttributes: attributes };
    const { MessageId } = await this.client.send(new SendMessageCommand(input));
    return MessageId ?? '';
  }

  async sendAll(bodies: readonly string[]): Promise<void> {
    for (let from = 0; from < bodies.length; from += 10) {
      const Entries = bodies.slice(from, from + 10).map((body, index) => ({ Id: String(index), MessageBody: body }));
      await this.client.send(new SendMessageBatchCommand({ QueueUrl: this.queueUrl, Entries }));
    }
  }

  /** Starts a worker with a short lease. It charges, unless it is given other handlers. */
  run(settings: RunSettings = {}): Run {
    const { clock, random = () => 0.4, dynamodbEndpoint, recordRetentionDays, prepare, events, ...options } = settings;
    const endpoint = dynamodbEndpoint ?? this.#parts.backends.dynamodbEndpoint;
    const store = createStore({
      ...CREDENTIALS,
      endpoint,
      random,
      ...(clock !== undefined && { clock }),
      ...(recordRetentionDays !== undefined && { recordRetentionDays }),
    });
    const sqs = { ...CREDENTIALS, endpoint: this.#parts.backends.sqsEndpoint };
    const client = createQueueClient(sqs);
    const pollingClient = createPollingClient(sqs);
    prepare?.({ client, pollingClient });
    const outcomes = new Journal<DeliveryReport>();
    const deliveries = new Journal<Delivery>();
    const worker = createWorker({
      queue: this.queue,
      queueUrl: this.queueUrl,
      deadLetterQueueUrl: this.deadLetterQueueUrl,
      handlers: [createChargeHandler(this.provider)],
      visibilityTimeoutSeconds: this.#parts.visibilityTimeoutSeconds,
      waitTimeSeconds: 1,
      // With the fixed chance of 0.4 this is no delay at all.
      retryBackoff: { baseMs: 1, capMs: 1 },
      deleteBatchWindowMs: 5,
      queueRules: 'off',
      lease: { leaseMs: 1_500, heartbeatMs: 300 },
      ...options,
      client,
      pollingClient,
      store,
      events: {
        ...events,
        onDelivery: (delivery) => {
          deliveries.add(delivery);
          // Returned, since a listener of the user may be async.
          return events?.onDelivery?.(delivery);
        },
        onOutcome: (report) => {
          outcomes.add(report);
          events?.onOutcome?.(report);
        },
      },
    });
    onTestFinished(async () => {
      if (clock instanceof TestClock) clock.thaw();
      await worker.stop({ deadlineMs: 0 });
      client.destroy();
      pollingClient.destroy();
      store.close();
    });
    // A refusal is for the test that asks for it: start() gives it the same promise.
    worker.start().catch(() => undefined);
    return {
      worker,
      outcomes,
      deliveries,
      when: (kind, count = 1) => outcomes.when(count, ({ outcome }) => outcome.kind === kind),
      tally() {
        const tally: Partial<Record<OutcomeKind, number>> = {};
        for (const { outcome } of outcomes.entries) tally[outcome.kind] = (tally[outcome.kind] ?? 0) + 1;
        return tally;
      },
    };
  }

  /** Messages on the queue, hidden ones included. */
  async depth(url: string = this.queueUrl): Promise<number> {
    const names = ['ApproximateNumberOfMessages', 'ApproximateNumberOfMessagesNotVisible'] as const;
    const command = new GetQueueAttributesCommand({ QueueUrl: url, AttributeNames: [...names] });
    const { Attributes = {} } = await this.client.send(command);
    return names.reduce((sum, name) => sum + Number(Attributes[name] ?? 0), 0);
  }

  /** What can be received; hidden for a minute afterwards. Waits for the first of them only. */
  async receive(url: string = this.queueUrl, waitTimeSeconds = 0): Promise<SqsMessage[]> {
    const messages: SqsMessage[] = [];
    for (;;) {
      const { Messages = [] } = await this.client.send(
        new ReceiveMessageCommand({
          QueueUrl: url,
          MaxNumberOfMessages: 10,
          WaitTimeSeconds: messages.length === 0 ? waitTimeSeconds : 0,
          VisibilityTimeout: 60,
          MessageAttributeNames: ['All'],
          MessageSystemAttributeNames: ['ApproximateReceiveCount'],
        }),
      );
      if (Messages.length === 0) return messages;
      messages.push(...Messages);
    }
  }

  /** Takes `count` messages off the queue as another worker would, waiting until they are visible. */
  async whenGivenBack(count: number): Promise<SqsMessage[]> {
    const messages: SqsMessage[] = [];
    while (messages.length < count) messages.push(...(await this.receive(this.queueUrl, 5)));
    return messages;
  }

  /** Deletes a message behind the worker's back. */
  async discard(receiptHandle: string | undefined): Promise<void> {
    await this.client.send(new DeleteMessageCommand({ QueueUrl: this.queueUrl, ReceiptHandle: receiptHandle }));
  }

  /** All dead letters, taken off their queue. */
  async deadLetters(): Promise<DeadLetter[]> {
    const messages = await this.receive(this.deadLetterQueueUrl);
    for (const { ReceiptHandle } of messages) {
      await this.client.send(new DeleteMessageCommand({ QueueUrl: this.deadLetterQueueUrl, ReceiptHandle }));
    }
    return messages.map(({ Body = '', MessageAttributes = {} }) => ({
      body: Body,
      notice: parseNotice(MessageAttributes[NOTICE_ATTRIBUTE]?.StringValue),
      attributes: MessageAttributes,
    }));
  }

  /** Sends all dead letters back to their queue, attributes included, as a redrive does. */
  async redrive(): Promise<number> {
    const letters = await this.deadLetters();
    for (const { body, attributes } of letters) await this.send(body, attributes);
    return letters.length;
  }

  record(key = 'r1'): Promise<Item | undefined> {
    return this.store.get(effectRecordKey(this.queue, key));
  }

  ledgerEntry(requestId = 'r1'): Promise<Item | undefined> {
    return this.store.get(ledgerEntryKey(this.accountId, requestId));
  }

  async balance(): Promise<unknown> {
    return (await this.store.get(accountKey(this.accountId)))?.['balance'];
  }
}
