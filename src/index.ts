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
export { UnstorableValueError } from './store/effects/stored-value.ts';
export type { ResponseDigest } from './store/effects/stored-value.ts';
export { checkRetention } from './store/effects/retention.ts';
export type { ReturnTimes } from './store/effects/retention.ts';
export type { InProcessAnswer, InProcessBackend, InProcessOptions, InProcessRequest } from './store/client.ts';
export type { Backoff } from './backoff.ts';
export type { ConditionalUpdate, UpdateAnswer } from './store/conditional-update.ts';
export { createRequestMeter } from './store/request-meter.ts';
export type { RequestMeter } from './store/request-meter.ts';
export type { RequestTrace, TracedRequest } from './store/request-trace.ts';
export * as conditions from './store/conditions.ts';
export { append, ifAbsent, minus, plus, previous } from './store/expressions.ts';
export type { Change, Condition } from './store/expressions.ts';
export type { Item, ItemKey } from './store/table.ts';
export type { ActionRole, TransactionAction } from './store/transactions/transaction.ts';
export { TransactionCancelledError } from './store/transactions/transaction-failures.ts';
export type { FailedAction } from './store/transactions/transaction-failures.ts';
export type { TransactionWriter, WriteOptions } from './store/transactions/transaction-writer.ts';
export { LEASE_DEFAULTS } from './store/leases/lease-options.ts';
export type { LeaseOptions } from './store/leases/lease-options.ts';
export { LeaseLostError } from './store/leases/lease-loss.ts';
export type { LossReason } from './store/leases/lease-loss.ts';
export type { HeldLease } from './store/leases/held-lease.ts';
export { spend, fill, transition } from './store/guarded-change.ts';
export type { GuardedChange } from './store/guarded-change.ts';
export type { Items, ItemWriteOptions, WriteAnswer } from './store/items.ts';
export { UnversionedItemError, VERSIONED_DEFAULTS, VersionConflictError } from './store/versioned.ts';
export type { SaveAnswer, SeenVersion, UpdateOutcome, VersionedItem, VersionedItems } from './store/versioned.ts';
export { COUNTER_DEFAULTS, CounterValueError } from './store/counters/counters.ts';
export type {
  CounterAnswer,
  CounterBounds,
  CountOnceAnswer,
  CountOnceOptions,
  Counters,
  NumberingOptions,
  ShardedCounter,
} from './store/counters/counters.ts';
export { normaliseEmail, normaliseText, normaliseUserName } from './store/unique/normalise.ts';
export type { Normalise } from './store/unique/normalise.ts';
export type { UniqueAnswer, UniqueConstraint, UniqueValues } from './store/unique/unique-constraint.ts';
export { asOrphan, examineSentinels } from './store/unique/repair.ts';
export type { Orphan, SentinelReport, SentinelSource, SentinelState } from './store/unique/repair.ts';
export { laggingIndex } from './store/index-lag.ts';
export type { LaggingIndex, LagSource } from './store/index-lag.ts';
export type { IndexQuery, IndexReads, UntilFoundAnswer, UntilFoundOptions } from './store/index-reads.ts';
export { createOnlyonceEffect, ResponseTooLargeError } from './store/effects/effect-call.ts';
export type {
  EffectAnswer,
  EffectCall,
  EffectCallContext,
  EffectCallSettings,
  EffectCallStore,
} from './store/effects/effect-call.ts';
export type { EffectCallOptions } from './store/effects/effect-call-options.ts';
export { createMemoryStore } from './store/memory/memory-store.ts';
export type { MemoryStore, MemoryStoreOptions } from './store/memory/memory-store.ts';
export { createMemoryBackend } from './store/memory/memory-backend.ts';
export type { MemoryBackend, MemoryBackendOptions } from './store/memory/memory-backend.ts';
export type { MemoryFault, MemoryOperation } from './store/memory/faults.ts';
export { LOCK_DEFAULTS } from './store/locks/lock-options.ts';
export type { LockOptions } from './store/locks/lock-options.ts';
export type { LockAttempt, Locks } from './store/locks/locks.ts';
export type { Lock, ReleaseAnswer } from './store/locks/lock.ts';
export type { LockSet } from './store/locks/lock-set.ts';
export type { LockEvent, LockListener } from './store/locks/lock-events.ts';
export type { CloseOptions, CloseReport } from './store/locks/lock-shutdown.ts';
export type { WaitOptions } from './store/locks/lock-waiters.ts';
export { LockReentryError, LocksClosedError, LockTimeoutError } from './store/locks/lock-errors.ts';
export { fenceCheck, fenceAndRenew, fenceAndFinish } from './store/leases/leases.ts';
export type { Leases, LockAnswer } from './store/leases/leases.ts';

export { createPollingClient, createQueueClient } from './queues/client.ts';
export type { QueueClientOptions } from './queues/client.ts';
export { createQueuePair, findQueue } from './queues/create-queues.ts';
export type { QueueAddress, QueuePair } from './queues/create-queues.ts';
export { QUEUE_DEFAULTS } from './queues/topology.ts';
export type { QueueSettings } from './queues/topology.ts';

export { createProducer } from './producers/producer.ts';
export type { Producer, SendBatchOptions, SendOptions, SendProgress } from './producers/producer.ts';
export { PRODUCER_DEFAULTS } from './producers/producer-options.ts';
export type { ProducerOptions } from './producers/producer-options.ts';
export type { OutgoingEntry } from './producers/outgoing-entry.ts';
export type { FailedEntry, InvalidEntry, SendResult, SentEntry } from './producers/send-result.ts';

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
  Reconciled,
  Rejected,
  StepCall,
  StepOptions,
  TryAgain,
  UnitOfWork,
  WorkLease,
} from './workers/handler.ts';
export { RetryLater } from './workers/retry.ts';
export { HandlerTimeoutError } from './workers/delivery-watch.ts';
export { StepRefused, StepUnknownError } from './workers/steps.ts';
export type { Delivery } from './workers/delivery.ts';
export type { Outcome, OutcomeKind } from './workers/outcome.ts';
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
export { ChargeConflictError, createChargeHandler } from './workers/handlers/charge.ts';
export { createLogger } from './telemetry/logger.ts';
export type { Log } from './telemetry/log.ts';
