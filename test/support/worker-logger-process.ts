/** Writes one line of each kind through the process's own log. */
import { withFields } from '../../src/telemetry/log.ts';
import { createLogger, type LogLevel } from '../../src/telemetry/logger.ts';

const log = createLogger({ level: (process.argv[2] ?? 'info') as LogLevel, name: 'logger-test' });
const secret = {
  payload: 'SECRET',
  body: 'SECRET',
  authorization: 'SECRET',
  secretAccessKey: 'SECRET',
  sessionToken: 'SECRET',
};

log.debug({}, 'at debug');
log.info({ key: 'r1', ...secret }, 'at the top');
log.warn({ request: secret }, 'one level down');
log.error({ err: Object.assign(new Error('failed'), { response: secret }) }, 'two levels down');
withFields(log, { key: 'r1', attempt: 1 }).info({ attempt: 2 }, 'bound');
process.stdout.write('data\n');
