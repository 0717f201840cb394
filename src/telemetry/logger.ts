/** The process's own log: pino, one JSON line each, on stderr so that stdout stays data. */
import pino from 'pino';
import type { Log } from './log.ts';

export const LOG_LEVELS = ['debug', 'info', 'warn', 'error', 'silent'] as const;
export type LogLevel = (typeof LOG_LEVELS)[number];

/** Fields that may carry what customers sent, or secrets, wherever they stand. */
const REDACTED = ['payload', 'body', 'authorization', 'secretAccessKey', 'sessionToken'];

/**
 * A log of this process: pino, one JSON line each, on stderr. Fields that may carry secrets or what customers sent
 * (`payload`, `body`, credentials) are redacted, down to the third level.
 * @param options `level`: the least that is written; `silent`: nothing. `name`: in each line.
 */
export function createLogger(options: { readonly level: LogLevel; readonly name: string }): Log {
  const paths = REDACTED.flatMap((field) => [field, `*.${field}`, `*.*.${field}`]);
  return pino(
    { name: options.name, level: options.level, redact: { paths, censor: '[redacted]' } },
    pino.destination(2),
  );
}
