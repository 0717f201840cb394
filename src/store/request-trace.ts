/** Tells of every request before it is sent, for people who want to see what the store does. */
import type { DynamoDBClient } from '@aws-sdk/client-dynamodb';

/** A request of the store that is about to be sent, and how it ends. */
export interface TracedRequest {
  /** For example `UpdateItem`. */
  readonly operation: string;
  /** The request as it goes out: attribute values (`{ N: '1' }`) and placeholders as DynamoDB takes them. */
  readonly input: object;
  /** Resolves when the request has ended: with what it failed by, or undefined. Never rejects. */
  readonly failure: Promise<unknown>;
}

/** Is called once per request, however often the SDK sends it. What it throws ends the request unsent. */
export type RequestTrace = (request: TracedRequest) => void;

export function attachTrace(client: DynamoDBClient, trace: RequestTrace): void {
  client.middlewareStack.add(
    (next, context) => async (args) => {
      const ended = Promise.withResolvers<unknown>();
      const operation = (context.commandName ?? 'Unknown').replace(/Command$/, '');
      trace({ operation, input: args.input, failure: ended.promise });
      try {
        const result = await next(args);
        ended.resolve(undefined);
        return result;
      } catch (error) {
        ended.resolve(error);
        throw error;
      }
    },
    // The document client turns values into attribute values during the step before this one; retries come after it.
    { step: 'build', priority: 'high', name: 'onlyonceTrace' },
  );
}
