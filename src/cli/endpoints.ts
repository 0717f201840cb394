/** Where SQS and DynamoDB are, and whether that is this machine. */
import { CommandError, EXIT } from './exit-codes.ts';
import type { ConnectionFlags } from './options.ts';

export interface Endpoints {
  readonly sqs: string;
  readonly dynamodb: string;
}

/**
 * The endpoints that were given; undefined when there are none, and local backends are to be started.
 * `AWS_ENDPOINT_URL` stands for both, as in every AWS tool.
 */
export function givenEndpoints(flags: ConnectionFlags, env: NodeJS.ProcessEnv = process.env): Endpoints | undefined {
  const common = env['AWS_ENDPOINT_URL'];
  const sqs = nonEmpty(flags.sqsEndpoint) ?? nonEmpty(common);
  const dynamodb = nonEmpty(flags.dynamodbEndpoint) ?? nonEmpty(common);
  if (sqs === undefined && dynamodb === undefined) return undefined;
  if (sqs === undefined || dynamodb === undefined) {
    const missing = sqs === undefined ? 'AWS_ENDPOINT_URL_SQS' : 'AWS_ENDPOINT_URL_DYNAMODB';
    throw new CommandError(EXIT.usage, `only one endpoint is given: set ${missing} too, or none of them`);
  }
  for (const url of [sqs, dynamodb]) {
    if (!URL.canParse(url))
      throw new CommandError(EXIT.usage, `"${url}" is not a URL: an endpoint looks like http://127.0.0.1:4566`);
  }
  return { sqs, dynamodb };
}

/** DynamoDB's endpoint for commands that need no queue; undefined when none is given at all. */
export function givenDynamodb(flags: ConnectionFlags, env: NodeJS.ProcessEnv = process.env): string | undefined {
  const common = nonEmpty(env['AWS_ENDPOINT_URL']);
  const dynamodb = nonEmpty(flags.dynamodbEndpoint) ?? common;
  // SQS alone is as much a mistake here as elsewhere: a local DynamoDB is not what was meant.
  if (dynamodb === undefined) return givenEndpoints(flags, env)?.dynamodb;
  return givenEndpoints({ ...flags, sqsEndpoint: dynamodb, dynamodbEndpoint: dynamodb }, {})?.dynamodb;
}

/** Loopback, or a name without dots as services of a compose file have. */
export function isLocal(endpoint: string): boolean {
  const host = new URL(endpoint).hostname.replace(/^\[|\]$/g, '');
  return /^127(\.\d+){3}$/.test(host) || host === '::1' || host === 'localhost' || /^[a-z][a-z0-9_-]*$/i.test(host);
}

/** For commands that must never reach a real account. */
export function demandLocal(endpoints: Endpoints, command: string): void {
  const remote = [endpoints.sqs, endpoints.dynamodb].find((endpoint) => !isLocal(endpoint));
  if (remote === undefined) return;
  throw new CommandError(
    EXIT.usage,
    `"${command}" only runs on local endpoints, and ${new URL(remote).host} is not one`,
  );
}

function nonEmpty(text: string | undefined): string | undefined {
  return text === undefined || text === '' ? undefined : text;
}
