import { DynamoDBClient } from '@aws-sdk/client-dynamodb';
import { CreateQueueCommand, SQSClient } from '@aws-sdk/client-sqs';

const LOCAL = { region: 'us-east-1', credentials: { accessKeyId: 'test', secretAccessKey: 'test' } };

export function sqsClient(endpoint: string): SQSClient {
  // One attempt: a retry would hide what the server did. Sockets: every long poll of a test holds one.
  const requestHandler = { httpAgent: { maxSockets: 100 } };
  return new SQSClient({ ...LOCAL, endpoint, useQueueUrlAsEndpoint: false, maxAttempts: 1, requestHandler });
}

export function dynamodbClient(endpoint: string): DynamoDBClient {
  return new DynamoDBClient({ ...LOCAL, endpoint });
}

export async function createQueue(
  sqs: SQSClient,
  name: string,
  attributes: Record<string, string> = {},
): Promise<string> {
  const { QueueUrl } = await sqs.send(new CreateQueueCommand({ QueueName: name, Attributes: attributes }));
  if (QueueUrl === undefined) throw new Error(`no URL for the queue ${name}`);
  return QueueUrl;
}
