import { SendMessageCommand, type MessageAttributeValue, type SQSClient } from '@aws-sdk/client-sqs';
import { createQueuePair } from '../../src/queues/create-queues.ts';
import { NOTICE_ATTRIBUTE, type DeadLetterNotice } from '../../src/queues/dead-letter-notice.ts';

export const notice: DeadLetterNotice = {
  reason: 'invalid',
  detail: 'NOT_JSON: the body is not JSON',
  sourceQueue: 'q',
  messageId: 'm1',
  receiveCount: 1,
  deadLetteredAtMs: 1_700_000_000_000,
};

/** A dead-letter queue with a letter for each body; those that begin with `ours` carry a notice. */
export async function queuesWithLetters(
  client: SQSClient,
  name: string,
  bodies: readonly string[],
): Promise<{ from: string; to: string }> {
  const pair = await createQueuePair(client, name);
  const [to, from] = [pair.queue.url, pair.deadLetterQueue.url];
  for (const body of bodies) {
    const attributes: Record<string, MessageAttributeValue> = { trace: { DataType: 'String', StringValue: 't1' } };
    if (body.startsWith('ours')) {
      attributes[NOTICE_ATTRIBUTE] = { DataType: 'String', StringValue: JSON.stringify(notice) };
    }
    const input = { QueueUrl: from, MessageBody: body, MessageAttributes: attributes };
    await client.send(new SendMessageCommand(input));
  }
  return { from, to };
}
