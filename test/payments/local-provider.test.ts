import fc from 'fast-check';
import { expect, test } from 'vitest';
import type { ChargeLog, JournalEntry } from '../../src/payments/charge-journal.ts';
import { KeyMemory } from '../../src/payments/key-memory.ts';
import { LocalProvider, type ChargeAttempt, type ChargeOutcome } from '../../src/payments/local-provider.ts';
import { ProviderFaults } from '../../src/payments/provider-faults.ts';
import { ManualClock } from './manual-clock.ts';
import { sampleBody, sampleEntry } from './sample-charge.ts';

const DAY_MS = 86_400_000;

function setUp(options: { log?: ChargeLog; maxKeys?: number } = {}) {
  const clock = new ManualClock();
  const entries: JournalEntry[] = [];
  const collect: ChargeLog = {
    append: (entry) => {
      entries.push(entry);
      return Promise.resolve();
    },
  };
  const memory = new KeyMemory(clock, options.maxKeys === undefined ? {} : { maxKeys: options.maxKeys });
  const faults = new ProviderFaults();
  const provider = new LocalProvider({ clock, memory, faults, log: options.log ?? collect });
  return { clock, entries, memory, faults, provider };
}

function attempt(key: string | null, body: Partial<ChargeAttempt['body']> = {}): ChargeAttempt {
  return { idempotencyKey: key, caller: 'worker-1', body: { ...sampleBody, ...body } };
}

function answered(outcome: ChargeOutcome): ChargeOutcome & { kind: 'answered' } {
  if (outcome.kind !== 'answered') throw new Error(`expected an answer, got ${outcome.kind}`);
  return outcome;
}

test('replays the stored answer for the same key and body until the last millisecond of 24 h', async () => {
  const { clock, entries, provider } = setUp();
  const first = answered(await provider.charge(attempt('k')));
  clock.advance(DAY_MS - 1);

  const second = answered(await provider.charge(attempt('k')));

  expect(second).toMatchObject({ replayed: true, entry: { result: first.entry.result } });
  expect(entries).toHaveLength(1);
});

test('charges the same key again once 24 h are over', async () => {
  const { clock, entries, provider } = setUp();
  await provider.charge(attempt('k'));
  clock.advance(DAY_MS);

  const second = answered(await provider.charge(attempt('k')));

  expect(second.replayed).toBe(false);
  expect(new Set(entries.map(({ result }) => JSON.stringify(result))).size).toBe(2);
});

test('keeps remembering a key when the wall clock is set back', async () => {
  const { clock, provider } = setUp();
  await provider.charge(attempt('k'));
  clock.advance(-5 * DAY_MS);

  expect(answered(await provider.charge(attempt('k'))).replayed).toBe(true);
});

test('purges what is outside the window when a new key comes', async () => {
  const { clock, memory, provider } = setUp();
  for (const key of ['a', 'b', 'c']) await provider.charge(attempt(key));
  clock.advance(DAY_MS - 10);
  await provider.charge(attempt('young'));
  clock.advance(10);

  await provider.charge(attempt('new'));

  expect(memory.size).toBe(2);
  expect(answered(await provider.charge(attempt('young'))).replayed).toBe(true);
});

test('refuses a new key when the memory is full, but still answers for known ones and for none', async () => {
  const { clock, entries, provider } = setUp({ maxKeys: 1 });
  await provider.charge(attempt('known'));

  expect(await provider.charge(attempt('new'))).toEqual({ kind: 'memory-full' });
  expect(answered(await provider.charge(attempt('known'))).replayed).toBe(true);
  expect((await provider.charge(attempt(null))).kind).toBe('answered');
  clock.advance(DAY_MS);
  expect((await provider.charge(attempt('new'))).kind).toBe('answered');
  expect(entries).toHaveLength(3);
});

test.each([
  ['account', { accountId: 'acc-2' }],
  ['amount', { amountMinor: 1251 }],
  ['currency', { currency: 'USD' }],
  ['description', { description: 'two' }],
  ['reference', { reference: 'req-2' }],
])('refuses a known key when the %s differs', async (_, change) => {
  const { entries, provider } = setUp();
  await provider.charge(attempt('k'));

  expect(await provider.charge(attempt('k', change))).toEqual({ kind: 'key-reused' });
  expect(entries).toHaveLength(1);
});

test('knows a retry from another worker as the same request', async () => {
  const { provider } = setUp();
  await provider.charge(attempt('k'));

  expect(answered(await provider.charge({ ...attempt('k'), caller: 'worker-2' })).replayed).toBe(true);
});

test('charges every time when there is no key', async () => {
  const { entries, memory, provider } = setUp();

  await provider.charge(attempt(null));
  await provider.charge(attempt(null));

  expect(new Set(entries.map(({ result }) => JSON.stringify(result))).size).toBe(2);
  expect(memory.size).toBe(0);
});

test('says that a key is in use until its entry is durable, and that another body reuses it', async () => {
  let finish = (): void => undefined;
  const append = (): Promise<void> =>
    new Promise((resolve) => {
      finish = resolve;
    });
  const { provider } = setUp({ log: { append } });
  const first = provider.charge(attempt('k'));

  expect(await provider.charge(attempt('k'))).toEqual({ kind: 'key-in-use' });
  expect(await provider.charge(attempt('k', { amountMinor: 1 }))).toEqual({ kind: 'key-reused' });
  finish();
  expect(answered(await first).replayed).toBe(false);
  expect(answered(await provider.charge(attempt('k'))).replayed).toBe(true);
});

test('remembers nothing for a key whose entry could not be written', async () => {
  const failure = new Error('disk full');
  const { memory, provider } = setUp({ log: { append: () => Promise.reject(failure) } });

  await expect(provider.charge(attempt('k'))).rejects.toBe(failure);
  expect(memory.size).toBe(0);
});

test('takes over entries of an earlier run only within their 24 h', async () => {
  const { clock, memory, provider } = setUp();
  memory.remember(sampleEntry({ idempotencyKey: 'old', decidedAtMs: clock.nowMs() - DAY_MS }));
  memory.remember(sampleEntry({ idempotencyKey: null, decidedAtMs: clock.nowMs() }));

  expect(memory.size).toBe(0);
  expect(answered(await provider.charge(attempt('old'))).replayed).toBe(false);
});

test('declines once by a rule, and gives that answer for the key from then on', async () => {
  const { entries, faults, provider } = setUp();
  faults.add({ id: 'no', match: {}, effect: 'decline', times: 1 });

  const first = answered(await provider.charge(attempt('k')));
  const second = answered(await provider.charge(attempt('k')));

  expect(first.entry.result.kind).toBe('declined');
  expect(second).toMatchObject({ replayed: true, entry: { result: first.entry.result } });
  expect(entries.map(({ result }) => result.kind)).toEqual(['declined']);
});

test('writes nothing for a declined request without a key', async () => {
  const { entries, faults, provider } = setUp();
  faults.add({ id: 'no', match: {}, effect: 'decline', times: 1 });

  expect(answered(await provider.charge(attempt(null))).entry.result.kind).toBe('declined');
  expect(entries).toEqual([]);
});

test('leaves the key free after fail-before, so that the retry charges', async () => {
  const { entries, faults, provider } = setUp();
  faults.add({ id: 'f', match: {}, effect: 'fail-before', times: 1 });

  expect(await provider.charge(attempt('k'))).toEqual({ kind: 'failed-before' });
  expect(entries).toEqual([]);
  expect(answered(await provider.charge(attempt('k'))).replayed).toBe(false);
});

test('charges each key at most once in every order of requests and journal writes', async () => {
  const requests = fc.array(fc.record({ key: fc.constantFrom('a', 'b'), amountMinor: fc.constantFrom(1, 2) }), {
    minLength: 2,
    maxLength: 8,
  });
  await fc.assert(
    fc.asyncProperty(fc.scheduler(), requests, async (scheduler, list) => {
      const written: JournalEntry[] = [];
      const append = async (entry: JournalEntry): Promise<void> => {
        await scheduler.schedule(Promise.resolve(), `write ${entry.idempotencyKey ?? ''}`);
        written.push(entry);
      };
      const { provider } = setUp({ log: { append } });
      const send = async (key: string, amountMinor: number): Promise<ChargeOutcome> => {
        await scheduler.schedule(Promise.resolve(), `request ${key}`);
        return provider.charge(attempt(key, { amountMinor }));
      };

      const outcomes = await scheduler.waitFor(Promise.all(list.map(({ key, amountMinor }) => send(key, amountMinor))));

      const keys = written.map(({ idempotencyKey }) => idempotencyKey);
      expect(keys).toHaveLength(new Set(list.map(({ key }) => key)).size);
      expect(new Set(keys).size).toBe(keys.length);
      for (const [index, outcome] of outcomes.entries()) {
        const entry = written.find(({ idempotencyKey }) => idempotencyKey === list[index]?.key);
        const same = entry?.amountMinor === list[index]?.amountMinor;
        expect(same ? ['answered', 'key-in-use'] : ['key-reused']).toContain(outcome.kind);
        expect([entry, undefined]).toContain(outcome.kind === 'answered' ? outcome.entry : undefined);
      }
    }),
    { numRuns: 200 },
  );
});
