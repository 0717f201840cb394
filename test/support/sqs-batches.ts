/** What a worker sends to SQS in batches, entry by entry, for tests that fail some of them or count them. */
import type {
  BatchResultErrorEntry,
  ChangeMessageVisibilityBatchCommandInput,
  ChangeMessageVisibilityBatchCommandOutput,
  ChangeMessageVisibilityBatchRequestEntry,
  SQSClient,
} from '@aws-sdk/client-sqs';
import { interceptCommand } from './worker-faults.ts';

/** The code of SQS that the entry fails with, or nothing to let it through. */
type OnChange = (entry: ChangeMessageVisibilityBatchRequestEntry) => string | undefined | Promise<string | undefined>;

/**
 * Shows each change of a visibility to `onChange` before it is sent.
 * @param options.onAnswer called with those that were sent, once they are answered.
 */
export function interceptChanges(
  client: SQSClient,
  onChange: OnChange,
  options: { readonly onAnswer?: (entry: ChangeMessageVisibilityBatchRequestEntry) => void } = {},
): void {
  interceptCommand<ChangeMessageVisibilityBatchCommandInput, ChangeMessageVisibilityBatchCommandOutput>(
    client,
    'ChangeMessageVisibilityBatchCommand',
    async (input, send) => {
      const Failed: BatchResultErrorEntry[] = [];
      const through: ChangeMessageVisibilityBatchRequestEntry[] = [];
      for (const entry of input.Entries ?? []) {
        const Code = await onChange(entry);
        if (Code === undefined) through.push(entry);
        else Failed.push({ Id: entry.Id, Code, SenderFault: true });
      }
      if (through.length === 0) return { $metadata: {}, Successful: [], Failed };
      const answer = await send({ ...input, Entries: through });
      for (const entry of through) options.onAnswer?.(entry);
      return { ...answer, Failed: [...(answer.Failed ?? []), ...Failed] };
    },
  );
}

/** Counts every request of a client by its command. */
export function countRequests(client: SQSClient, counts: Map<string, number>): void {
  client.middlewareStack.add(
    (next, context) => (args) => {
      const name = context.commandName ?? '';
      counts.set(name, (counts.get(name) ?? 0) + 1);
      return next(args);
    },
    { step: 'initialize', priority: 'high' },
  );
}
