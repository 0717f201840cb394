/**
 * The DynamoDB client as this package needs it: time-outs that fire, enough sockets, values in both directions, and a
 * meter on requests and capacity. No other folder imports the DynamoDB client.
 */
import { DynamoDBClient, type DynamoDBClientConfig } from '@aws-sdk/client-dynamodb';
import { DynamoDBDocumentClient } from '@aws-sdk/lib-dynamodb';
import { ConfigurationError, type OptionFault } from '../errors.ts';
import { attachAnswerCheck } from './answer-check.ts';
import { attachMeter, type RequestMeter } from './request-meter.ts';
import { attachTrace, type RequestTrace } from './request-trace.ts';

/** One request as the AWS SDK would send it. */
export interface InProcessRequest {
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: unknown;
}

/** One answer as DynamoDB would send it. */
export interface InProcessAnswer {
  readonly statusCode: number;
  readonly headers: Record<string, string>;
  readonly body: Uint8Array;
}

/** What the AWS SDK says along with a request. */
export interface InProcessOptions {
  readonly abortSignal?: { readonly aborted: boolean };
}

/** A DynamoDB in this process that answers the SDK's requests in the place of a server. */
export interface InProcessBackend {
  handle(request: InProcessRequest, options?: InProcessOptions): Promise<{ response: InProcessAnswer }>;
}

export interface StoreClientOptions {
  /**
   * Answers in the place of a server, for example `createMemoryBackend()`. Endpoint, region and credentials are not
   * needed then, and an endpoint is refused beside it. @defaultValue none
   */
  readonly backend?: InProcessBackend;
  /** Where DynamoDB is. Handed to the SDK as it is. @defaultValue AWS, found by the SDK from the region */
  readonly endpoint?: string;
  /** @defaultValue what the SDK finds (AWS_REGION, profile) */
  readonly region?: string;
  /** @defaultValue what the SDK finds (environment, profile, role) */
  readonly credentials?: { readonly accessKeyId: string; readonly secretAccessKey: string };
  /** Until a connection stands. Unit: ms. Range: 1-60000. @defaultValue 1000 */
  readonly connectTimeoutMs?: number;
  /** Until the whole answer is there. Unit: ms. Range: 1-60000. @defaultValue 3000 */
  readonly requestTimeoutMs?: number;
  /** Connections at once: at least what works in parallel, or requests wait in line. Range: 1-1000. @defaultValue 1000 */
  readonly maxSockets?: number;
  /** Tries of one request inside the SDK. Range: 1-10. @defaultValue 3 */
  readonly maxAttempts?: number;
  /** Counts requests and capacity. @defaultValue none */
  readonly meter?: RequestMeter;
  /** Is told of every request before it is sent, as DynamoDB takes it. For walk-throughs and tests. @defaultValue none */
  readonly trace?: RequestTrace;
}

type Limits = Required<
  Pick<StoreClientOptions, 'connectTimeoutMs' | 'requestTimeoutMs' | 'maxSockets' | 'maxAttempts'>
>;

export const STORE_CLIENT_DEFAULTS: Limits = {
  connectTimeoutMs: 1_000,
  requestTimeoutMs: 3_000,
  maxSockets: 1_000,
  maxAttempts: 3,
};

const MAX_OF: Limits = { connectTimeoutMs: 60_000, requestTimeoutMs: 60_000, maxSockets: 1_000, maxAttempts: 10 };

/**
 * @throws {ConfigurationError} when a limit is out of its range; all faults are listed.
 */
export function createDocumentClient(options: StoreClientOptions = {}): DynamoDBDocumentClient {
  const limits = resolveLimits(options);
  const config: DynamoDBClientConfig = {
    maxAttempts: limits.maxAttempts,
    ...(options.endpoint !== undefined && { endpoint: options.endpoint }),
    ...(options.region !== undefined && { region: options.region }),
    ...(options.credentials !== undefined && { credentials: options.credentials }),
    ...(options.backend === undefined ? overNetwork(limits) : inProcess(options.backend)),
  };
  const client = new DynamoDBClient(config);
  attachAnswerCheck(client);
  if (options.meter !== undefined) attachMeter(client, options.meter);
  if (options.trace !== undefined) attachTrace(client, options.trace);
  return DynamoDBDocumentClient.from(client, { marshallOptions: { removeUndefinedValues: true } });
}

function overNetwork(limits: Limits): Pick<DynamoDBClientConfig, 'requestHandler'> {
  return {
    requestHandler: {
      connectionTimeout: limits.connectTimeoutMs,
      requestTimeout: limits.requestTimeoutMs,
      // Without this the SDK only logs a warning and goes on waiting for a frozen server.
      throwOnRequestTimeout: true,
      httpAgent: { maxSockets: limits.maxSockets, keepAlive: true },
      httpsAgent: { maxSockets: limits.maxSockets, keepAlive: true },
    },
  };
}

/** The SDK asks for all of this before it builds a request. None of it leads anywhere: `.invalid` is no real domain. */
function inProcess(
  backend: InProcessBackend,
): Pick<DynamoDBClientConfig, 'endpoint' | 'region' | 'credentials' | 'requestHandler'> {
  return {
    endpoint: 'http://in-process.invalid',
    region: 'in-process',
    credentials: { accessKeyId: 'in-process', secretAccessKey: 'in-process' },
    requestHandler: { handle: backend.handle.bind(backend) },
  };
}

function resolveLimits(options: StoreClientOptions): Limits {
  const limits = { ...STORE_CLIENT_DEFAULTS };
  const faults: OptionFault[] = [];
  for (const name of ['connectTimeoutMs', 'requestTimeoutMs', 'maxSockets', 'maxAttempts'] as const) {
    const value = options[name] ?? STORE_CLIENT_DEFAULTS[name];
    const max = MAX_OF[name];
    if (!Number.isInteger(value) || value < 1 || value > max) {
      faults.push({ name, rule: `a whole number from 1 to ${String(max)}`, value });
    }
    limits[name] = value;
  }
  if (options.backend !== undefined && options.endpoint !== undefined) {
    faults.push({ name: 'endpoint', rule: 'absent where a backend is given', value: options.endpoint });
  }
  if (faults.length > 0) throw new ConfigurationError('store client', faults);
  return limits;
}
