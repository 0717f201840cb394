/** The public API. What is not exported here is free to change. */
export {
  ConfigurationError,
  EnvironmentError,
  InvalidMessageError,
  BackendError,
  OnlyonceError,
  isOnlyonceError,
} from './errors.ts';
export type { OptionFault } from './errors.ts';
export type { Clock, Random } from './clock.ts';

export { defineMessage } from './messages/contract.ts';
export type { Message, MessageContract, Upcaster } from './messages/contract.ts';
export type { StandardSchema } from './messages/schema.ts';
export { encodeMessage, decodeMessage } from './messages/envelope.ts';
export type { DecodedMessage, EncodedMessage, InvalidCode } from './messages/envelope.ts';
export { CHARGE_REQUESTED } from './messages/charge.ts';
export type { Charge } from './messages/charge.ts';

export { createStore, STORE_DEFAULTS } from './store/store.ts';
export type { Store, StoreOptions } from './store/store.ts';
export type { ResponseDigest } from './store/effects/stored-value.ts';
export { createRequestMeter } from './store/request-meter.ts';
export type { RequestMeter } from './store/request-meter.ts';
export * as conditions from './store/conditions.ts';
export { plus, ifAbsent } from './store/expressions.ts';
export type { Change, Condition } from './store/expressions.ts';
export type { Item, ItemKey } from './store/table.ts';
export type { TransactionAction } from './store/transactions/transaction.ts';
export { TransactionCancelledError } from './store/transactions/transaction-writer.ts';
export type { FailedAction, TransactionWriter } from './store/transactions/transaction-writer.ts';
export { LEASE_DEFAULTS } from './store/leases/lease-options.ts';
export type { LeaseOptions } from './store/leases/lease-options.ts';
export { LeaseLostError } from './store/leases/held-lease.ts';
export type { HeldLease, LossReason } from './store/leases/held-lease.ts';
export { fenceCheck, fenceAndRenew, fenceAndFinish } from './store/leases/leases.ts';
export type { Leases, LockAnswer } from './store/leases/leases.ts';

export { createPollingClient, createQueueClient } from './queues/client.ts';
export type { QueueClientOptions } from './queues/client.ts';
export { createQueuePair, findQueue } from './queues/create-queues.ts';

export { createProducer } from './producers/producer.ts';
export type { Producer, SendBatchOptions, SendOptions, SendProgress } from './producers/producer.ts';
export { PRODUCER_DEFAULTS } from './producers/producer-options.ts';
export type { ProducerOptions } from './producers/producer-options.ts';
export type { OutgoingEntry } from './producers/outgoing-entry.ts';
export type { SendResult } from './producers/send-result.ts';

export { createWorker } from './workers/worker.ts';
export type { StopReport, Worker, WorkerHealth } from './workers/worker.ts';
export { createWorkerGroup } from './workers/worker-group.ts';
export type { GroupMember, WorkerGroup, WorkerGroupOptions } from './workers/worker-group.ts';
export { WORKER_DEFAULTS } from './workers/options.ts';
export type { WorkerOptions } from './workers/options.ts';
export type {
  Completed,
  Handler,
  HandlerContext,
  HandlerResult,
  Rejected,
  StepCall,
  StepOptions,
  TryAgain,
  UnitOfWork,
  WorkLease,
} from './workers/handler.ts';
export { RetryLater } from './workers/retry.ts';
export { HandlerTimeoutError } from './workers/handler-run.ts';
export { StepUnknownError } from './workers/steps.ts';
export type { Outcome } from './workers/outcome.ts';
export type {
  DeliveryReport,
  PollingStalled,
  ReceiveFailure,
  WorkerEventMap,
  WorkerEvents,
  WorkerListener,
} from './workers/events.ts';

export { PaymentError } from './payments/payment-provider.ts';
export type { PaymentProvider, ChargeRequest, ChargeResult } from './payments/payment-provider.ts';
export { createHttpPaymentProvider } from './payments/http-payment-provider.ts';
export { createChargeHandler } from './workers/handlers/charge.ts';
export { createLogger } from './telemetry/logger.ts';
export type { Log } from './telemetry/log.ts';
