import { expect, test } from 'vitest';
import { processLab } from '../support/process-bench.ts';
import { runCli } from '../support/process-cli.ts';

const LOCAL = ['--sqs-endpoint', 'http://127.0.0.1:1', '--dynamodb-endpoint', 'http://127.0.0.1:1'];
const REMOTE = ['--sqs-endpoint', 'https://sqs.example.com', '--dynamodb-endpoint', 'https://dynamodb.example.com'];

const lab = processLab();

test.each([
  ['an unknown command', ['prodce'], 'Did you mean produce?'],
  ['an unknown option', ['verify', '--sentt', 'x'], 'Did you mean --sent?'],
  ['a missing argument', ['produce'], "missing required argument 'flow'"],
  ['an unknown flow', ['work', 'refunds'], 'must be one of: charges.'],
  ['a number out of range', ['produce', 'charges', '--count', '0'], 'must be a whole number from 1 to 1000000.'],
  ['no number at all', ['produce', 'charges', '--seed', ''], 'must be a whole number from 0 to 2147483647.'],
  ['a choice that is none', ['demo', '--protection', 'some'], 'Allowed choices are full, none.'],
  ['too few workers for a demo', ['demo', '--workers', '1'], 'must be a whole number from 2 to 32.'],
  ['a seed that is too large', ['demo', '--seed', '2147483648'], 'must be a whole number from 0 to 2147483647.'],
  ['an unknown log level', ['queues', 'ls', '--log-level', 'loud'], 'Allowed choices are'],
  ['an argument too many', ['bootstrap', 'charges'], 'too many arguments'],
  [
    'an endpoint that is no URL',
    ['queues', 'ls', '--sqs-endpoint', 'x', '--dynamodb-endpoint', 'y'],
    '"x" is not a URL',
  ],
  ['SQS alone', ['queues', 'ls', ...LOCAL.slice(0, 2)], 'set AWS_ENDPOINT_URL_DYNAMODB too, or none of them'],
  ['DynamoDB alone', ['queues', 'ls', ...LOCAL.slice(2)], 'set AWS_ENDPOINT_URL_SQS too, or none of them'],
  [
    'a demo on a remote endpoint',
    ['demo', ...REMOTE],
    '"demo" only runs on local endpoints, and sqs.example.com is not one',
  ],
  [
    'a worker without protection on a remote endpoint',
    ['work', 'charges', '--protection', 'none', ...REMOTE],
    '"work --protection none" only runs on local endpoints, and sqs.example.com is not one',
  ],
  ['a worker without a provider on a shared queue', ['work', 'charges', ...LOCAL], 'set ONLYONCE_PROVIDER_URL'],
  ['a remote endpoint without a region', ['queues', 'ls', ...REMOTE], 'name one with --region or AWS_REGION'],
])('%s exits with 2 and says what is wrong', async (_fault, args, sentence) => {
  // Act
  const end = await runCli(args);

  // Assert
  expect(end).toMatchObject({ code: 2, stdout: '' });
  expect(end.stderr).toContain(sentence);
  expect(end.stderr).not.toMatch(/^\s+at /m);
});

test.each([
  ['bootstrap', ['bootstrap']],
  ['produce', ['produce', 'charges', '--count', '1']],
  ['work', ['work', 'charges', '--provider-url', 'http://127.0.0.1:9']],
  ['verify', ['verify']],
  ['effects get', ['effects', 'get', 'charges', 'r1']],
  ['queues ls', ['queues', 'ls']],
  ['dlq ls', ['dlq', 'ls', 'charges']],
  ['demo', ['demo']],
])('%s on an endpoint where nothing answers exits with 1 and a sentence', async (_command, args) => {
  // Act
  const end = await runCli([...args, ...LOCAL, '--json']);

  // Assert
  expect(end).toMatchObject({ code: 1, stdout: '' });
  expect(end.stderr).toMatch(/^onlyonce: .*ECONNREFUSED 127\.0\.0\.1:1$/m);
  expect(end.stderr).toContain('Nothing answers there: check the endpoints');
  expect(end.stderr).not.toMatch(/^\s+at /m);
});

test('help and version are data and exit with 0, a bare command group is a usage error', async () => {
  // Act
  const help = await runCli(['--help']);
  const version = await runCli(['--version']);
  const bare = await runCli(['dlq']);

  // Assert
  expect(help).toMatchObject({ code: 0, stderr: '' });
  for (const command of [
    'demo',
    'up',
    'bootstrap',
    'produce',
    'work',
    'verify',
    'effects',
    'queues',
    'dlq',
    'inject',
  ]) {
    expect(help.stdout).toMatch(new RegExp(`^ {2}${command} `, 'm'));
  }
  expect(version.stdout).toMatch(/^\d+\.\d+\.\d+\n$/);
  expect(bare).toMatchObject({ code: 2, stdout: '' });
  expect(bare.stderr).toContain('Usage: onlyonce dlq');
});

test('environment variables stand for flags, and the flag wins', async () => {
  // Arrange
  const scene = await lab.open();
  const env = { ONLYONCE_COUNT: '3', ONLYONCE_SEED: '4', ONLYONCE_JSON: '1' };

  // Act
  const byEnvironment = await scene.run(['produce', 'charges'], { env });
  const byFlag = await scene.run(['produce', 'charges', '--count', '2'], { env });
  const elsewhere = await scene.run(['queues', 'ls', '--prefix', 'elsewhere-'], { env });
  const wrong = await scene.run(['produce', 'charges'], { env: { ONLYONCE_COUNT: 'many' } });

  // Assert
  expect(byEnvironment.json()).toHaveLength(3);
  expect(byEnvironment.stderr).toContain('seed 4');
  expect(byFlag.json()).toHaveLength(2);
  expect(elsewhere).toMatchObject({ code: 3, stdout: '' });
  expect(wrong).toMatchObject({ code: 2, stdout: '' });
  expect(wrong.stderr).toContain('ONLYONCE_COUNT');
});

test('a variable that says no, or nothing, is no flag', async () => {
  // Arrange
  const scene = await lab.open();
  const env = { ONLYONCE_JSON: 'false', ONLYONCE_COUNT: '', ONLYONCE_SEED: '1' };

  // Act
  const end = await scene.run(['produce', 'charges'], { env });

  // Assert
  expect(end).toMatchObject({ code: 0, stdout: '' });
  expect(end.stderr).toContain('sent 100 to');
});

test('AWS_ENDPOINT_URL stands for both endpoints', async () => {
  // Act
  const end = await runCli(['queues', 'ls'], { env: { AWS_ENDPOINT_URL: 'http://127.0.0.1:1' } });

  // Assert
  expect(end).toMatchObject({ code: 1, stdout: '' });
  expect(end.stderr).toContain('ECONNREFUSED 127.0.0.1:1');
});
