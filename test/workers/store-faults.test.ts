import { afterAll, beforeAll, expect, test } from 'vitest';
import { StoreProxy, storeError, type StoreAnswer, type StoreFault } from '../support/worker-faults.ts';
import { workerLab } from '../support/worker-fixture.ts';

const lab = workerLab();
let proxy: StoreProxy;

beforeAll(async () => {
  proxy = await StoreProxy.start(lab.dynamodbEndpoint);
});
afterAll(async () => {
  await proxy.stop();
});

async function openBench(settings: { visibilityTimeoutSeconds?: number } = {}) {
  proxy.fault = (_request, forward) => forward();
  return { bench: await lab.open(settings), dynamodbEndpoint: proxy.endpoint };
}

/** Applies the first `times` commits and answers each with `answer` instead. */
function losingCommits(times: number, answer: StoreAnswer | 'cut'): StoreFault & { commits: () => number } {
  let commits = 0;
  const fault: StoreFault = async ({ operation }, forward) => {
    if (operation !== 'TransactWriteItems') return forward();
    commits += 1;
    const real = await forward();
    return commits <= times ? answer : real;
  };
  return Object.assign(fault, { commits: () => commits });
}

test.each([
  ['is lost', 'cut' as const],
  ['is throttled', storeError(400, 'ThrottlingException')],
  ['is an internal error', storeError(500, 'InternalServerError')],
])('M3 the effect is applied once when the answer to the commit %s', async (_case, answer) => {
  const { bench, dynamodbEndpoint } = await openBench();
  const fault = losingCommits(4, answer);
  proxy.fault = fault;
  const run = bench.run({ dynamodbEndpoint });
  await bench.send(bench.chargeBody());

  const [report] = await run.when('completed');

  expect(report?.outcome).toMatchObject({ attempt: 1 });
  expect(fault.commits()).toBe(5);
  expect([bench.provider.charges.length, await bench.balance(), await bench.depth()]).toEqual([1, 1_250, 0]);
});

test('M3 knows its own commit again when DynamoDB has forgotten the token of the first try', async () => {
  const { bench, dynamodbEndpoint } = await openBench();
  let commits = 0;
  proxy.fault = async ({ operation, body }, forward) => {
    if (operation !== 'TransactWriteItems') return forward();
    commits += 1;
    const other = body.replace(/"ClientRequestToken":"[^"]*"/, `"ClientRequestToken":"other-${String(commits)}"`);
    const real = await forward(other);
    return commits === 1 ? 'cut' : real;
  };
  const run = bench.run({ dynamodbEndpoint });
  await bench.send(bench.chargeBody());

  const [report] = await run.when('completed');

  expect([report?.outcome, commits]).toMatchObject([{ attempt: 1 }, 2]);
  expect([bench.provider.charges.length, await bench.balance()]).toEqual([1, 1_250]);
});

test.each([1, 2, 3, 4, 5])('M3 one effect, whichever answer of the store is lost: number %i', async (lostAnswer) => {
  const { bench, dynamodbEndpoint } = await openBench();
  let requests = 0;
  proxy.fault = async (_request, forward) => {
    requests += 1;
    const isLost = requests === lostAnswer;
    const real = await forward();
    return isLost ? 'cut' : real;
  };
  const run = bench.run({ dynamodbEndpoint });
  await bench.send(bench.chargeBody());

  const [report] = await run.when('completed');

  expect(report?.outcome).toMatchObject({ attempt: 1 });
  expect(await bench.record()).toMatchObject({ status: 'COMPLETED', attempts: 1, deliveries: 1 });
  expect([bench.provider.charges.length, await bench.balance(), await bench.depth()]).toEqual([1, 1_250, 0]);
});

test('M19 starts no handler while the store cannot be reached, and loses no message and no attempt', async () => {
  const { bench, dynamodbEndpoint } = await openBench();
  proxy.fault = () => Promise.resolve('cut');
  const run = bench.run({ dynamodbEndpoint, maxAttempts: 1 });
  const requestIds = ['r1', 'r2', 'r3'];
  await bench.sendAll(requestIds.map((requestId) => bench.chargeBody({ requestId })));
  await run.when('retry', 9);
  const callsWhileDown = bench.provider.calls.entries.length;
  proxy.fault = (_request, forward) => forward();

  const reports = await run.when('completed', 3);

  expect(callsWhileDown).toBe(0);
  expect(reports.map(({ key }) => String(key)).toSorted()).toEqual(requestIds);
  expect(reports.map(({ outcome }) => outcome)).toMatchObject(requestIds.map(() => ({ attempt: 1, takenOver: false })));
  expect([bench.provider.charges.length, await bench.balance(), await bench.deadLetters()]).toEqual([3, 3_750, []]);
});

test('M19 does not use up attempts when the store fails under a running handler', async () => {
  const { bench, dynamodbEndpoint } = await openBench();
  let reads = 0;
  proxy.fault = ({ operation }, forward) => {
    if (operation !== 'GetItem') return forward();
    reads += 1;
    // Three tries of the SDK each: the reads of four attempts fail.
    return reads <= 12 ? Promise.resolve(storeError(500, 'InternalServerError')) : forward();
  };
  const run = bench.run({ dynamodbEndpoint, maxAttempts: 1 });
  await bench.send(bench.chargeBody());

  const [report] = await run.when('completed');

  expect(run.tally()).toEqual({ retry: 4, completed: 1 });
  expect(report?.outcome).toMatchObject({ attempt: 1 });
  expect(await bench.balance()).toBe(1_250);
});

test('L13 keeps the lease over beats that fail, and completes', async () => {
  const { bench, dynamodbEndpoint } = await openBench();
  const healed = Promise.withResolvers<void>();
  let failed = 0;
  bench.provider.beforeCharge = () => {
    proxy.fault = ({ operation }, forward) => {
      if (operation !== 'UpdateItem') return forward();
      failed += 1;
      if (failed === 6) {
        proxy.fault = (_request, forwardNow) => forwardNow();
        healed.resolve();
      }
      return Promise.resolve(storeError(400, 'ThrottlingException'));
    };
    return healed.promise;
  };
  const run = bench.run({ dynamodbEndpoint });
  await bench.send(bench.chargeBody());

  const [report] = await run.when('completed');

  expect(report?.outcome).toMatchObject({ attempt: 1, takenOver: false });
  expect([failed, run.deliveries.entries.length, await bench.balance()]).toEqual([6, 1, 1_250]);
});

test('L13 is told of the loss when no beat comes through for a lease, and touches nothing', async () => {
  const { bench, dynamodbEndpoint } = await openBench({ visibilityTimeoutSeconds: 2 });
  const atWork = Promise.withResolvers<void>();
  bench.provider.beforeCharge = ({ nth }) => {
    if (nth > 1) return;
    proxy.fault = ({ operation }, forward) =>
      operation === 'UpdateItem' ? Promise.resolve(storeError(400, 'ThrottlingException')) : forward();
    return atWork.promise;
  };
  const run = bench.run({ dynamodbEndpoint });
  await bench.send(bench.chargeBody());
  const [lost] = await run.when('lost');
  proxy.fault = (_request, forward) => forward();
  atWork.resolve();

  const [report] = await run.when('completed');

  expect(lost?.outcome).toEqual({ kind: 'lost', reason: 'deadline' });
  expect(report?.outcome).toMatchObject({ takenOver: true });
  expect([bench.provider.charges.length, await bench.balance()]).toEqual([1, 1_250]);
});
