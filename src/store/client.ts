/**
 * The DynamoDB client as this package needs it: time-outs that fire, enough sockets, values in both directions, and a
 * meter on requests and capacity. No other folder imports the DynamoDB client.
 */
import { DynamoDBClient, type DynamoDBClientConfig } from '@aws-sdk/client-dynamodb';
import { DynamoDBDocumentClient } from '@aws-sdk/lib-dynamodb';
import { ConfigurationError, type OptionFault } from '../errors.ts';
import { attachMeter, type RequestMeter } from './request-meter.ts';

export interface StoreClientOptions {
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
    requestHandler: {
      connectionTimeout: limits.connectTimeoutMs,
      requestTimeout: limits.requestTimeoutMs,
      // Without this the SDK only logs a warning and goes on waiting for a frozen server.
      throwOnRequestTimeout: true,
      httpAgent: { maxSockets: limits.maxSockets, keepAlive: true },
      httpsAgent: { maxSockets: limits.maxSockets, keepAlive: true },
    },
  };
  const client = new DynamoDBClient(config);
  if (options.meter !== undefined) attachMeter(client, options.meter);
  return DynamoDBDocumentClient.from(client, { marshallOptions: { removeUndefinedValues: true } });
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
  if (faults.length > 0) throw new ConfigurationError('store client', faults);
  return limits;
}
