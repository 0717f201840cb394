/** The log as the library needs it: pino fits, and so does anything with these four methods. */

type LogMethod = (fields: Record<string, unknown>, text: string) => void;

/** Where the library writes what it does. pino fits, and so does anything with these four methods. */
export interface Log {
  readonly debug: LogMethod;
  readonly info: LogMethod;
  readonly warn: LogMethod;
  readonly error: LogMethod;
}

/** Says nothing. The library is silent until it is given a log. */
export const silentLog: Log = {
  debug: () => undefined,
  info: () => undefined,
  warn: () => undefined,
  error: () => undefined,
};

/** The same log with fields that each line carries. */
export function withFields(log: Log, bound: Record<string, unknown>): Log {
  const merged = (fields: Record<string, unknown>): Record<string, unknown> => ({ ...bound, ...fields });
  return {
    debug: (fields, text) => log.debug(merged(fields), text),
    info: (fields, text) => log.info(merged(fields), text),
    warn: (fields, text) => log.warn(merged(fields), text),
    error: (fields, text) => log.error(merged(fields), text),
  };
}
