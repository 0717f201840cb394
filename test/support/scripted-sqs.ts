/** SQS as a test answers for it, request by request, on a clock that stands still until the test moves it. */
import type { BatchResultErrorEntry, SQSClient } from '@aws-sdk/client-sqs';
import { onTestFinished } from 'vitest';
import { createQueueClient } from '../../src/queues/client.ts';
import { createAcknowledger, type Acknowledger } from '../../src/workers/acknowledger.ts';
import { ManualClock } from '../payments/manual-clock.ts';
import { interceptCommand } from './worker-faults.ts';

export interface SentEntry {
  readonly id: string;
  readonly handle: string;
  /** Undefined in a delete. */
  readonly seconds: number | undefined;
}

export interface SentRequest {
  readonly kind: 'delete' | 'change';
  readonly atMs: number;
  readonly entries: readonly SentEntry[];
}

/** What becomes of one entry: done, a failure of its own, or not mentioned at all. */
export type EntryFate = 'done' | 'missing' | { readonly Code: string; readonly SenderFault: boolean };

/** The fate of each entry; rejects for a request that fails, never settles for one that hangs. */
export type Answering = (request: SentRequest, nth: number) => readonly EntryFate[] | Promise<readonly EntryFate[]>;

export const allDone: Answering = ({ entries }) => entries.map(() => 'done');

export interface ScriptedSqs {
  readonly acknowledger: Acknowledger;
  readonly clock: ManualClock;
  readonly requests: SentRequest[];
  /** Lets time pass in small steps, and what is due happen. */
  pass(ms: number): Promise<void>;
}

/** With a window of 10 ms for settlements, 100 ms for beats, and a second for one beat in all. */
export function scriptedSqs(
  answering: Answering = allDone,
  settings: { readonly random?: () => number; readonly inFlight?: () => number } = {},
): ScriptedSqs {
  const clock = new ManualClock(0);
  const requests: SentRequest[] = [];
  const client = scriptedClient();
  answerBatches(client, async (kind, entries) => {
    const request: SentRequest = { kind, atMs: clock.monotonicMs(), entries };
    requests.push(request);
    return answering(request, requests.length);
  });
  const acknowledger = createAcknowledger({
    client,
    queueUrl: 'https://queue.invalid/000000000000/q',
    clock,
    random: () => 0.5,
    ...settings,
    batchWindowMs: 10,
    visibilityAnswerMs: 1_000,
  });
  return {
    acknowledger,
    clock,
    requests,
    async pass(ms) {
      // What was just asked for is under way before the time goes on.
      await new Promise(setImmediate);
      for (let passed = 0; passed < ms; passed += 5) {
        clock.advance(5);
        await new Promise(setImmediate);
      }
    },
  };
}

/** A client whose every command the test answers: there is nobody at the other end. */
export function scriptedClient(): SQSClient {
  const client = createQueueClient({
    region: 'us-east-1',
    credentials: { accessKeyId: 'test', secretAccessKey: 'test' },
  });
  onTestFinished(() => {
    client.destroy();
  });
  return client;
}

interface BatchInput {
  readonly QueueUrl: string;
  readonly Entries: { Id: string; ReceiptHandle: string; VisibilityTimeout?: number }[];
}

interface BatchOutput {
  readonly $metadata: Record<string, never>;
  readonly Successful: { Id: string }[];
  readonly Failed: (BatchResultErrorEntry & { Id: string; Code: string; SenderFault: boolean })[];
}

function answerBatches(
  client: SQSClient,
  answer: (kind: SentRequest['kind'], entries: SentEntry[]) => Promise<readonly EntryFate[]>,
): void {
  const kinds = { DeleteMessageBatchCommand: 'delete', ChangeMessageVisibilityBatchCommand: 'change' } as const;
  for (const [command, kind] of Object.entries(kinds)) {
    interceptCommand<BatchInput, BatchOutput>(client, command, async ({ Entries }) => {
      const entries = Entries.map((entry) => ({
        id: entry.Id,
        handle: entry.ReceiptHandle,
        seconds: entry.VisibilityTimeout,
      }));
      const fates = await answer(kind, entries);
      const output: BatchOutput = { $metadata: {}, Successful: [], Failed: [] };
      for (const [index, fate] of fates.entries()) {
        const Id = entries[index]?.id ?? '';
        if (fate === 'done') output.Successful.push({ Id });
        else if (fate !== 'missing') output.Failed.push({ Id, ...fate });
      }
      return output;
    });
  }
}
