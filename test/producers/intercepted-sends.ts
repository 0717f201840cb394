import type {
  SendMessageBatchCommandInput,
  SendMessageBatchCommandOutput,
  SendMessageBatchRequestEntry,
  SQSClient,
} from '@aws-sdk/client-sqs';

/** One SendMessageBatch before it leaves. */
export interface SendCall {
  /** Counts from 1. */
  readonly number: number;
  readonly entries: readonly SendMessageBatchRequestEntry[];
  /** Lets these entries go on to the real SQS. @defaultValue all of them */
  pass(entries?: readonly SendMessageBatchRequestEntry[]): Promise<SendMessageBatchCommandOutput>;
}

/**
 * Puts `intercept` before the SDK's own retries, and lists the entries of every call. What it throws is what the producer
 * sees; all that it passes on is real.
 */
export function interceptSends(
  client: SQSClient,
  intercept: (call: SendCall) => Promise<SendMessageBatchCommandOutput> = (call) => call.pass(),
): readonly (readonly SendMessageBatchRequestEntry[])[] {
  const calls: (readonly SendMessageBatchRequestEntry[])[] = [];
  client.middlewareStack.add(
    (next, context) => async (args) => {
      if (context['commandName'] !== 'SendMessageBatchCommand') return next(args);
      // The name says which command it is; the middleware's own types only know the union of all.
      const input = args.input as SendMessageBatchCommandInput;
      const entries = input.Entries ?? [];
      calls.push(entries);
      const answer = await intercept({
        number: calls.length,
        entries,
        async pass(passed = entries) {
          const { output } = await next({ ...args, input: { ...input, Entries: [...passed] } });
          return output as SendMessageBatchCommandOutput;
        },
      });
      return { output: answer, response: undefined };
    },
    { step: 'initialize', name: 'interceptSends' },
  );
  return calls;
}

/** An error as the SDK throws it for an HTTP answer. */
export function answerError(name: string, httpStatusCode: number): Error {
  return Object.assign(new Error(`injected ${name}`), { name, $metadata: { httpStatusCode } });
}

/** The real answer, with entries in it that SQS did not take. They must not have been passed on. */
export function withFailed(
  answer: SendMessageBatchCommandOutput,
  entries: readonly SendMessageBatchRequestEntry[],
  fault: { readonly Code: string; readonly SenderFault: boolean },
): SendMessageBatchCommandOutput {
  const failed = entries.map(({ Id }) => ({ Id, Message: `injected ${fault.Code}`, ...fault }));
  return { ...answer, Failed: [...(answer.Failed ?? []), ...failed] };
}
