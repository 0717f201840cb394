import { startChild } from '../../src/local/child-process.ts';
import { LOCAL_ACCESS } from '../support/store-bench.ts';

/** Runs a program of the documents against a DynamoDB that is here already. @returns what it printed, line by line. */
export async function runProgram(
  file: string,
  place: { readonly cwd: string; readonly dynamodbEndpoint: string },
): Promise<{ code: number | null; output: string[] }> {
  const output: string[] = [];
  const child = startChild({
    name: file,
    command: process.execPath,
    args: [file],
    cwd: place.cwd,
    env: {
      PATH: process.env['PATH'],
      AWS_ENDPOINT_URL_DYNAMODB: place.dynamodbEndpoint,
      AWS_REGION: LOCAL_ACCESS.region,
      AWS_ACCESS_KEY_ID: 'test',
      AWS_SECRET_ACCESS_KEY: 'test',
    },
    stdin: 'none',
    onStdoutLine: (line) => void output.push(line),
    onStderrLine: (line) => void output.push(line),
  });
  const { code } = await child.exited;
  return { code, output };
}
