/** The SQS client as this package needs it. Producers, workers and queue commands all take theirs from here. */
import { SQSClient, type SQSClientConfig } from '@aws-sdk/client-sqs';

export type { SQSClient as QueueClient, Message as QueueMessage } from '@aws-sdk/client-sqs';

/** Where SQS is, and how long it is waited for. */
export interface QueueClientOptions {
  /** Where SQS is. Handed to the SDK as it is. @defaultValue AWS, found by the SDK from the region */
  readonly endpoint?: string;
  /** @defaultValue what the SDK finds (AWS_REGION, profile) */
  readonly region?: string;
  /** @defaultValue what the SDK finds (environment, profile, role) */
  readonly credentials?: { readonly accessKeyId: string; readonly secretAccessKey: string };
  /** The longest wait for an answer. Unit: ms. @defaultValue 5000 */
  readonly requestTimeoutMs?: number;
  /** Tries of one request inside the SDK. @defaultValue 3 */
  readonly maxAttempts?: number;
  /** Connections at once. A client that long-polls should do nothing else. @defaultValue 256 */
  readonly maxSockets?: number;
}

export const QUEUE_CLIENT_DEFAULTS = {
  requestTimeoutMs: 5_000,
  maxAttempts: 3,
  maxSockets: 256,
  connectTimeoutMs: 1_000,
} as const;

/** The longest wait of a long poll. @see AWS: ReceiveMessage, WaitTimeSeconds */
const MAX_WAIT_MS = 20_000;

/**
 * A client for long polls alone: it waits for an answer as long as the longest poll may take, and never repeats a
 * request, since an answer that was lost took its messages along.
 */
export function createPollingClient(options: Omit<QueueClientOptions, 'maxAttempts'> = {}): SQSClient {
  const answerMs = options.requestTimeoutMs ?? QUEUE_CLIENT_DEFAULTS.requestTimeoutMs;
  return createQueueClient({ ...options, requestTimeoutMs: MAX_WAIT_MS + answerMs, maxAttempts: 1 });
}

/** A client for everything but long polls. */
export function createQueueClient(options: QueueClientOptions = {}): SQSClient {
  const maxSockets = options.maxSockets ?? QUEUE_CLIENT_DEFAULTS.maxSockets;
  const config: SQSClientConfig = {
    // A queue URL is a name, not an address: otherwise a message could be sent to whatever host the URL carries.
    useQueueUrlAsEndpoint: false,
    // The SDK would throw away the whole batch for one body that was corrupted on the way; workers check each message.
    md5: false,
    maxAttempts: options.maxAttempts ?? QUEUE_CLIENT_DEFAULTS.maxAttempts,
    ...(options.endpoint !== undefined && { endpoint: options.endpoint }),
    ...(options.region !== undefined && { region: options.region }),
    ...(options.credentials !== undefined && { credentials: options.credentials }),
    requestHandler: {
      connectionTimeout: QUEUE_CLIENT_DEFAULTS.connectTimeoutMs,
      requestTimeout: options.requestTimeoutMs ?? QUEUE_CLIENT_DEFAULTS.requestTimeoutMs,
      // Without this the SDK only logs a warning and goes on waiting for a frozen server.
      throwOnRequestTimeout: true,
      httpAgent: { maxSockets, keepAlive: true },
      httpsAgent: { maxSockets, keepAlive: true },
    },
  };
  return new SQSClient(config);
}
