/**
 * Random requests on the in-memory DynamoDB and on a local one: every answer, every refusal with its reasons and the
 * stored items it brings along, and the tables at the end are the same. Where the local DynamoDB is known to differ from
 * AWS, the requests keep away from it: those places are listed in local-differences.test.ts.
 */
import type { DynamoDBDocumentClient } from '@aws-sdk/lib-dynamodb';
import fc from 'fast-check';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { systemClock } from '../../../src/clock.ts';
import { createDocumentClient } from '../../../src/store/client.ts';
import { createTable } from '../../../src/store/create-table.ts';
import { createMemoryBackend } from '../../../src/store/memory/memory-backend.ts';
import { LOCAL_ACCESS, useStoreBench } from '../../support/store-bench.ts';
import { randomRequest, sendRandom, type RandomRequest } from '../../support/store-random-requests.ts';

const bench = useStoreBench();
const clients: { local?: DynamoDBDocumentClient } = {};

beforeAll(() => {
  clients.local = createDocumentClient({ ...LOCAL_ACCESS, endpoint: bench.backendEndpoint, maxAttempts: 1 });
});

afterAll(() => {
  clients.local?.destroy();
});

type Answer = Readonly<Record<string, unknown>>;

/** What a caller can see of it. Texts are left out: they differ between AWS's versions as well. */
async function answerTo(client: DynamoDBDocumentClient, request: RandomRequest): Promise<Answer> {
  try {
    const answer: Record<string, unknown> = { ...(await sendRandom(client, request)) };
    delete answer['$metadata'];
    if (request.operation === 'Scan' || request.operation === 'BatchGetItem') return inAnyOrder(answer);
    return answer;
  } catch (error) {
    if (!(error instanceof Error)) throw error;
    const fields: Readonly<Record<string, unknown>> = Object.fromEntries(Object.entries(error));
    const reasons: unknown = fields['CancellationReasons'];
    const withoutTexts = Array.isArray(reasons)
      ? reasons.map((reason: { readonly Code?: unknown; readonly Item?: unknown }) => [reason.Code, reason.Item])
      : undefined;
    return { refused: error.name, item: fields['Item'], reasons: withoutTexts };
  }
}

/** Neither a scan nor a batch has an order. */
function inAnyOrder(answer: Answer): Answer {
  const { Items, Responses } = answer as { Items?: object[]; Responses?: Record<string, object[]> };
  const found = [...(Items ?? []), ...Object.values(Responses ?? {}).flat()];
  return { ...answer, Items: new Set(found.map(canonicalText)), Responses: undefined };
}

function canonicalText(item: object): string {
  return JSON.stringify(
    Object.entries(item).toSorted(([left], [right]) => (left < right ? -1 : 1)),
    (_, value) =>
      typeof value === 'object' && value !== null && !Array.isArray(value)
        ? Object.fromEntries(Object.entries(value as object).toSorted(([left], [right]) => (left < right ? -1 : 1)))
        : (value as unknown),
  );
}

let tables = 0;

test(
  'random sequences of requests get the same answers and leave the same tables behind',
  { timeout: 180_000 },
  async () => {
    const outcomes = new Map<string, number>();
    const { local } = clients;
    if (local === undefined) throw new Error('there is no client');
    // A fresh table for each sequence; the requests are made without its name, so that a failure shrinks.
    const sequence = fc.array(randomRequest('TABLE'), { minLength: 5, maxLength: 20 });
    await fc.assert(
      fc.asyncProperty(sequence, async (requests) => {
        // Arrange
        tables += 1;
        const name = `random-${String(tables)}`;
        const memory = createDocumentClient({ backend: createMemoryBackend(), maxAttempts: 1 });
        await createTable(memory, name, systemClock);
        await createTable(local, name, systemClock);

        for (const { operation, input } of requests) {
          // Act
          const request = { operation, input: renamed(input, name) };
          const [ours, theirs] = [await answerTo(memory, request), await answerTo(local, request)];

          // Assert
          expect(ours, `${operation} ${JSON.stringify(input)}`).toEqual(theirs);
          const outcome = `${operation}: ${typeof ours['refused'] === 'string' ? ours['refused'] : 'done'}`;
          outcomes.set(outcome, (outcomes.get(outcome) ?? 0) + 1);
        }
        const everything: RandomRequest = { operation: 'Scan', input: { TableName: name } };
        expect(await answerTo(memory, everything)).toEqual(await answerTo(local, everything));
      }),
      { numRuns: 300 },
    );
    // Requests that were all refused, or all accepted, would prove little.
    expect([...outcomes.keys()]).toEqual(expect.arrayContaining(EXPECTED_OUTCOMES));
  },
);

const EXPECTED_OUTCOMES = [
  'PutItem: done',
  'PutItem: ConditionalCheckFailedException',
  'PutItem: ValidationException',
  'UpdateItem: done',
  'UpdateItem: ConditionalCheckFailedException',
  'UpdateItem: ValidationException',
  'DeleteItem: done',
  'TransactWriteItems: done',
  'TransactWriteItems: TransactionCanceledException',
  'TransactWriteItems: IdempotentParameterMismatchException',
  'TransactGetItems: done',
  'TransactGetItems: ValidationException',
  'BatchGetItem: done',
  'BatchGetItem: ValidationException',
  'Query: done',
  'Query: ValidationException',
  'Scan: done',
];

/** Puts the table's name in; request tokens hold it as well, since they are known to the whole server. */
function renamed(input: object, name: string): object {
  return rename(input) as object;

  function rename(value: unknown): unknown {
    if (typeof value === 'string') return value.replace('TABLE', name);
    if (Array.isArray(value)) return value.map(rename);
    if (typeof value !== 'object' || value === null || value instanceof Uint8Array) return value;
    return Object.fromEntries(
      Object.entries(value).map(([field, each]) => [field.replace('TABLE', name), rename(each)]),
    );
  }
}
