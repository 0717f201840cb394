// Stands in for LocalStack's `awslocal`, so that the init hook can be run without Docker: understands as much of the
// AWS command line as the hook uses and asks the endpoints of the environment through the SDK.
import * as dynamodb from '@aws-sdk/client-dynamodb';
import * as sqs from '@aws-sdk/client-sqs';

const SERVICES = {
  dynamodb: { client: dynamodb.DynamoDBClient, commands: dynamodb },
  sqs: { client: sqs.SQSClient, commands: sqs },
};

const [service, operation, ...flags] = process.argv.slice(2);

if (operation !== 'wait') {
  const options = parse(flags);
  const { client: Client, commands } = SERVICES[service];
  const Command = commands[`${pascal(operation)}Command`];
  const client = new Client({ useQueueUrlAsEndpoint: false });
  const answer = await client.send(new Command(options.input));
  if (options.query === undefined) process.stdout.write(`${JSON.stringify(answer)}\n`);
  else process.stdout.write(`${String(options.query.split('.').reduce((part, name) => part?.[name], answer))}\n`);
}

function parse(args) {
  const options = { input: {} };
  for (let at = 0; at < args.length; at += 2) {
    const [flag, value] = args.slice(at, at + 2);
    if (flag === '--cli-input-json') Object.assign(options.input, JSON.parse(value));
    else if (flag === '--query') options.query = value;
    else if (flag === '--attribute-names') options.input.AttributeNames = [value];
    else if (flag !== '--output') options.input[pascal(flag.slice(2))] = value;
  }
  return options;
}

function pascal(words) {
  return words
    .split('-')
    .map((word) => word[0].toUpperCase() + word.slice(1))
    .join('');
}
