import { expect, test } from 'vitest';
import { absent } from '../../src/store/conditions.ts';
import type { TracedRequest } from '../../src/store/request-trace.ts';
import { createStore } from '../../src/store/store.ts';
import { LOCAL_ACCESS, useStoreBench } from '../support/store-bench.ts';

const bench = useStoreBench();

function tracedStore() {
  const traced: TracedRequest[] = [];
  const store = bench.store({ trace: (request) => void traced.push(request) });
  return { store, traced };
}

test('the trace of an update holds attribute values and placeholders as they go out', async () => {
  const { store, traced } = tracedStore();
  const key = { PK: bench.unique('trace'), SK: 'X' };

  await store.update({ key, change: { set: { count: 1, name: 'a' } }, condition: absent() });

  expect(traced).toHaveLength(1);
  expect(traced[0]).toMatchObject({
    operation: 'UpdateItem',
    input: {
      TableName: 'onlyonce',
      Key: { PK: { S: key.PK }, SK: { S: 'X' } },
      ExpressionAttributeNames: { '#n0': 'count' },
      ExpressionAttributeValues: { ':v0': { N: '1' }, ':v1': { S: 'a' } },
    },
  });
  // What was traced is what was sent, and nothing else was.
  expect(bench.transport.seen.map(({ body }) => body)).toEqual(traced.map(({ input }) => input));
  expect(await traced[0]?.failure).toBeUndefined();
});

test('the trace of a transaction holds attribute values within each action, and the failure its reasons', async () => {
  const { store, traced } = tracedStore();
  const item = { PK: bench.unique('trace'), SK: 'X', deep: { list: [1, 'two'] } };
  const action = { kind: 'put', label: 'item', item, condition: absent() } as const;
  await store.transactions.write([action]);

  const refused = store.transactions.write([action]);

  await expect(refused).rejects.toMatchObject({ code: 'TRANSACTION_CANCELLED' });
  expect(traced.map(({ operation }) => operation)).toEqual(['TransactWriteItems', 'TransactWriteItems']);
  expect(traced[0]).toMatchObject({
    input: { TransactItems: [{ Put: { Item: { deep: { M: { list: { L: [{ N: '1' }, { S: 'two' }] } } } } } }] },
  });
  expect(bench.transport.seen.map(({ body }) => body)).toEqual(traced.map(({ input }) => input));
  expect(await traced[0]?.failure).toBeUndefined();
  expect(await traced[1]?.failure).toMatchObject({
    name: 'TransactionCanceledException',
    CancellationReasons: [{ Code: 'ConditionalCheckFailed' }],
  });
});

test('a request that the SDK repeats is traced once', async () => {
  const { store, traced } = tracedStore();
  bench.transport.fault('GetItem', { kind: 'lose the answer' });

  await store.get({ PK: bench.unique('trace'), SK: 'X' });

  expect(bench.transport.count('GetItem')).toBe(2);
  expect(traced.map(({ operation }) => operation)).toEqual(['GetItem']);
  expect(await traced[0]?.failure).toBeUndefined();
});

test('a request without an answer ends with what it failed by', async () => {
  const traced: TracedRequest[] = [];
  const store = createStore({
    ...LOCAL_ACCESS,
    endpoint: 'http://127.0.0.1:1',
    maxAttempts: 1,
    trace: (request) => void traced.push(request),
  });

  await expect(store.get({ PK: 'a', SK: 'b' })).rejects.toMatchObject({ code: 'BACKEND' });
  store.close();

  expect(traced).toHaveLength(1);
  expect(await traced[0]?.failure).toMatchObject({ code: 'ECONNREFUSED' });
});

test('every client of a store is traced: leases and effect records too', async () => {
  const { store, traced } = tracedStore();

  const answer = await store.leases().tryAcquire(bench.unique('lock'), 'me');

  expect(answer.kind).toBe('acquired');
  expect(traced.map(({ operation }) => operation)).toEqual(['UpdateItem']);
  if (answer.kind === 'acquired') await answer.lease.release();
});
