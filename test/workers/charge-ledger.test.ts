import { expect, test } from 'vitest';
import { effectRecordKey } from '../../src/store/table.ts';
import { workerLab, type Bench } from '../support/worker-fixture.ts';

const lab = workerLab();

/** As when its record has outlived its retention. */
async function forgetRecord(bench: Bench, key = 'r1'): Promise<void> {
  const action = { kind: 'delete', label: 'record', key: effectRecordKey(bench.queue, key) } as const;
  await bench.store.transactions.write([action]);
}

/** A charge that has been made, and whose record is gone. */
async function forgottenCharge(): Promise<{ bench: Bench; run: ReturnType<Bench['run']> }> {
  const bench = await lab.open();
  const run = bench.run();
  await bench.send(bench.chargeBody());
  await run.when('completed');
  await forgetRecord(bench);
  return { bench, run };
}

test('answers a charge whose record is gone as it was answered then, without asking the provider', async () => {
  const { bench, run } = await forgottenCharge();

  await bench.send(bench.chargeBody());
  const reports = await run.when('completed', 2);
  await bench.send(bench.chargeBody());
  const [replay] = await run.when('replayed');

  const response = { requestId: 'r1', providerChargeId: 'ch_1' };
  expect(reports.map(({ outcome }) => outcome)).toMatchObject([{ response }, { response }]);
  expect(replay?.outcome).toMatchObject({ answer: { status: 'COMPLETED', response } });
  expect(bench.provider.calls.entries).toHaveLength(1);
  expect([await bench.balance(), await bench.depth()]).toEqual([1_250, 0]);
});

test('answers the same charge from a second queue on one table without asking the provider', async () => {
  const [first, second] = [await lab.open(), await lab.open()];
  const runs = [first.run(), second.run()];
  const body = first.chargeBody();
  await first.send(body);
  await runs[0]?.when('completed');

  await second.send(body);
  const reports = await runs[1]?.when('completed');

  const response = { requestId: 'r1', providerChargeId: 'ch_1' };
  expect(reports?.[0]?.outcome).toMatchObject({ response });
  expect([first.provider.calls.entries.length, second.provider.calls.entries.length]).toEqual([1, 0]);
  expect(await first.balance()).toBe(1_250);
  expect(await second.record()).toMatchObject({ status: 'COMPLETED' });
});

test.each([
  { title: 'amount', change: { amountMinor: 9_900 }, asked: '9900 EUR' },
  { title: 'currency', change: { currency: 'JPY' }, asked: '1250 JPY' },
])('dead-letters a charge that the ledger knows with another $title, and asks nobody', async ({ change, asked }) => {
  const { bench, run } = await forgottenCharge();

  await bench.send(bench.chargeBody(change));
  await run.when('exhausted');
  const letters = await bench.deadLetters();

  const detail = `CHARGE_CONFLICT: request r1: account ${bench.accountId} was charged 1250 EUR for it, not ${asked}`;
  expect(letters.map(({ notice }) => notice)).toMatchObject([{ reason: 'exhausted', detail }]);
  expect(bench.provider.calls.entries).toHaveLength(1);
  expect(await bench.balance()).toBe(1_250);
});

test('charges another request of an account whose ledger has an entry', async () => {
  const { bench, run } = await forgottenCharge();

  await bench.send(bench.chargeBody({ requestId: 'r2' }));
  await run.when('completed', 2);

  expect(bench.provider.charges).toHaveLength(2);
  expect(await bench.balance()).toBe(2_500);
});
