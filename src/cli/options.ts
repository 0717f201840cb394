/** Flags that many commands share. Each has an environment variable; the flag wins. */
import { InvalidArgumentError, Option, type Command } from 'commander';
import { FLOWS, type Flow } from '../queues/topology.ts';
import { LOG_LEVELS } from '../telemetry/logger.ts';

/** What the shared flags say. */
export interface ConnectionFlags {
  readonly sqsEndpoint?: string;
  readonly dynamodbEndpoint?: string;
  readonly region?: string;
  readonly table: string;
  readonly prefix: string;
  readonly json?: boolean;
  readonly logLevel: string;
}

export function withConnection(command: Command): Command {
  return command
    .addOption(
      new Option('--sqs-endpoint <url>', 'where SQS is; none: local backends of this command alone').env(
        'AWS_ENDPOINT_URL_SQS',
      ),
    )
    .addOption(new Option('--dynamodb-endpoint <url>', 'where DynamoDB is').env('AWS_ENDPOINT_URL_DYNAMODB'))
    .addOption(new Option('--region <name>', 'AWS region').env('AWS_REGION'))
    .addOption(new Option('--table <name>', 'DynamoDB table').env('ONLYONCE_TABLE').default('onlyonce'))
    .addOption(new Option('--prefix <text>', 'in front of every queue name').env('ONLYONCE_PREFIX').default(''))
    .addOption(
      new Option('--log-level <level>', 'what the log on stderr says')
        .env('ONLYONCE_LOG_LEVEL')
        .choices(LOG_LEVELS)
        .default('error'),
    )
    .addOption(jsonOption());
}

export function jsonOption(): Option {
  return new Option('--json', 'data as JSON, one object a line').env('ONLYONCE_JSON');
}

/** A flag that takes a whole number within a range. */
export function numberOption(flags: string, description: string, range: readonly [number, number]): Option {
  const [min, max] = range;
  return new Option(flags, `${description} (${String(min)}-${String(max)})`).argParser((text) => {
    const value = Number(text);
    if (text.trim() !== '' && Number.isInteger(value) && value >= min && value <= max) return value;
    throw new InvalidArgumentError(`must be a whole number from ${String(min)} to ${String(max)}.`);
  });
}

export function parseFlow(text: string): Flow {
  const flow = FLOWS.find((candidate) => candidate === text);
  if (flow === undefined) throw new InvalidArgumentError(`must be one of: ${FLOWS.join(', ')}.`);
  return flow;
}
