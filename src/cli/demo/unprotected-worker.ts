/**
 * The control: a worker as it is often written, with a poller that deletes after its handler and no effect record. The
 * same faults that the protected worker survives make it charge twice, and the invariants must notice.
 */
import { randomUUID } from 'node:crypto';
import { Consumer } from 'sqs-consumer';
import { CHARGE_REQUESTED, type Charge } from '../../messages/charge.ts';
import { validate } from '../../messages/schema.ts';
import { InvalidMessageError } from '../../errors.ts';
import type { PaymentProvider } from '../../payments/payment-provider.ts';
import type { QueueClient, QueueMessage } from '../../queues/client.ts';
import { plus } from '../../store/expressions.ts';
import type { Store } from '../../store/store.ts';
import { accountKey, ledgerEntryKey } from '../../store/table.ts';
import type { Worker } from '../../workers/worker.ts';
import type { WorkEvent } from '../work-events.ts';

export interface UnprotectedOptions {
  readonly queueUrl: string;
  readonly client: QueueClient;
  readonly store: Store;
  readonly provider: PaymentProvider;
  readonly name: string;
  readonly concurrency: number;
  readonly visibilityTimeoutSeconds: number;
  readonly waitTimeSeconds: number;
  tell(event: WorkEvent): void;
}

const MAX_BATCH = 10;

export function createUnprotectedWorker(options: UnprotectedOptions): Pick<Worker, 'start' | 'stop'> {
  const consumer = Consumer.create({
    sqs: options.client,
    queueUrl: options.queueUrl,
    batchSize: Math.min(MAX_BATCH, options.concurrency),
    visibilityTimeout: options.visibilityTimeoutSeconds,
    waitTimeSeconds: options.waitTimeSeconds,
    terminateVisibilityTimeout: true,
    pollingCompleteWaitTimeMs: options.waitTimeSeconds * 1_000 + 1_000,
    messageSystemAttributeNames: ['ApproximateReceiveCount'],
    handleMessage: async (message) => {
      await charge(message, options);
      return message;
    },
  });
  // Its own poller repeats a failed message at once; the queue's redrive policy ends that.
  consumer.on('processing_error', () => undefined);
  consumer.on('error', () => undefined);

  return {
    start() {
      consumer.start();
      return Promise.resolve();
    },
    stop() {
      return new Promise((resolve) => {
        consumer.once('stopped', () => {
          resolve({ leftovers: [] });
        });
        consumer.stop();
      });
    },
  };
}

async function charge(message: QueueMessage, options: UnprotectedOptions): Promise<void> {
  const base = {
    worker: options.name,
    messageId: message.MessageId ?? '',
    receiveCount: Number(message.Attributes?.ApproximateReceiveCount ?? 1),
  };
  options.tell({ event: 'delivery', ...base });
  const payload = parse(message.Body ?? '');
  const { accountId, requestId, amountMinor, currency, description } = payload;
  const result = await options.provider.charge({ ...payload, reference: requestId, idempotencyKey: randomUUID() });
  if (result.kind === 'declined') return;
  const { providerChargeId } = result;
  const entryKey = { ...ledgerEntryKey(accountId, requestId), SK: `CHARGE#${requestId}#${randomUUID()}` };
  await options.store.transactions.write([
    {
      kind: 'put',
      label: 'ledger entry',
      item: { ...entryKey, requestId, amountMinor, currency, description, providerChargeId },
    },
    {
      kind: 'update',
      label: 'balance',
      key: accountKey(accountId),
      change: { set: { balance: plus(amountMinor, 0) } },
    },
  ]);
  options.tell({
    event: 'outcome',
    ...base,
    key: requestId,
    outcome: 'completed',
    answer: providerChargeId,
    durationMs: 0,
  });
}

/** Only what cannot be parsed fails: there is no record that could tell a conflict. */
function parse(body: string): Charge {
  const envelope = JSON.parse(body) as { payload?: unknown };
  const checked = validate(CHARGE_REQUESTED.schema, envelope.payload);
  if (checked.kind === 'refused') throw new InvalidMessageError(checked.reason);
  return checked.value;
}
