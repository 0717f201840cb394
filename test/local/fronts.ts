import { request } from 'node:http';
import { ReceiveMessageCommand, type SQSClient } from '@aws-sdk/client-sqs';
import { loadCompanion } from '../../src/local/companion.ts';
import { startQueueFront, type QueueFront } from '../../src/local/queue-front.ts';

/** A front of its own with an empty SQS behind it. */
export async function freshFront(options: { maxWaitingPolls?: number } = {}): Promise<QueueFront> {
  const { buildQueueApp } = await loadCompanion();
  return startQueueFront({ app: await buildQueueApp(), ...options });
}

export function endpointOf({ port }: QueueFront): string {
  return `http://127.0.0.1:${String(port)}`;
}

export function longPoll(queueUrl: string): ReceiveMessageCommand {
  return new ReceiveMessageCommand({ QueueUrl: queueUrl, WaitTimeSeconds: 20 });
}

/** Receives once, without waiting. */
export async function receive(
  sqs: SQSClient,
  queueUrl: string,
): Promise<{ body: string | undefined; receiveCount: string | undefined }[]> {
  const { Messages = [] } = await sqs.send(
    new ReceiveMessageCommand({
      QueueUrl: queueUrl,
      WaitTimeSeconds: 0,
      MessageSystemAttributeNames: ['ApproximateReceiveCount'],
    }),
  );
  return Messages.map((message) => ({ body: message.Body, receiveCount: message.Attributes?.ApproximateReceiveCount }));
}

/** An answer as it came over the wire, its body parsed. */
export interface RawAnswer {
  statusCode: number | undefined;
  headers: Record<string, unknown>;
  body: unknown;
}

/** A request as no SDK would send it: any Host header, any bytes. */
export function post(port: number, body: Buffer, headers: Record<string, string> = {}): Promise<RawAnswer> {
  const sqsHeaders = { 'content-type': 'application/x-amz-json-1.0', 'x-amz-target': 'AmazonSQS.SendMessage' };
  return new Promise((resolve, reject) => {
    const sent = request(
      { host: '127.0.0.1', port, method: 'POST', headers: { ...sqsHeaders, ...headers } },
      (response) => {
        const chunks: Buffer[] = [];
        response.on('data', (chunk: Buffer) => chunks.push(chunk));
        response.on('end', () => {
          const answer: unknown = JSON.parse(Buffer.concat(chunks).toString('utf8'));
          resolve({ statusCode: response.statusCode, headers: response.headers, body: answer });
        });
      },
    );
    sent.on('error', reject);
    sent.end(body);
  });
}
