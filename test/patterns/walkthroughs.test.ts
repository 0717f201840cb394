import { describe, expect, test } from 'vitest';
import { PATTERNS } from '../../src/patterns/catalogue.ts';
import { runPattern, type PatternReport } from '../../src/patterns/run-pattern.ts';
import { renderSection, type Section } from '../../src/patterns/transcript.ts';
import { LOCAL_ACCESS, useStoreBench } from '../support/store-bench.ts';

const bench = useStoreBench();
const REFUSED = 'ConditionalCheckFailedException';

async function walkThrough(number: number): Promise<{ report: PatternReport; sections: Section[] }> {
  const pattern = PATTERNS.find((each) => each.number === number);
  if (pattern === undefined) throw new Error(`there is no pattern ${String(number)}`);
  const sections: Section[] = [];
  const report = await runPattern(pattern, {
    client: { ...LOCAL_ACCESS, endpoint: bench.transport.endpoint },
    tablePrefix: 'onlyonce',
    signal: new AbortController().signal,
    onSection: (section) => void sections.push(section),
    note: () => undefined,
  });
  return { report, sections };
}

/** What the reader of the trace sees. */
function textOf(sections: readonly Section[]): string {
  return sections.map((section) => renderSection(section, false)).join('\n');
}

describe('on a store that keeps its word, each walk-through comes to what it must', () => {
  test('22: created once, never overwritten, never half made, never overdrawn', async () => {
    const { report, sections } = await walkThrough(22);

    expect(report).toEqual({
      pattern: 22,
      title: 'Conditional writes',
      ok: true,
      results: {
        create: 'OK',
        createAgain: REFUSED,
        updateMissing: REFUSED,
        spend: 'OK',
        spendAgain: REFUSED,
        itemAtFailure: { PK: 'USER#alice', SK: 'PROFILE', name: 'Alice', credits: 3, status: 'active' },
      },
    });
    expect(textOf(sections)).toContain("status = 'active'");
    expect(textOf(sections)).not.toMatch(/[#:][nv]\d/);
  });

  test('23: the slower writer is refused, and its repeat loses nothing', async () => {
    const { report } = await walkThrough(23);

    expect(report).toMatchObject({
      ok: true,
      results: {
        afterDeposit: { balance: 150, version: 2 },
        staleWithdrawal: 'rejected',
        afterRetry: { balance: 120, version: 3 },
      },
    });
  });

  test('24: additions are all there, what was read and written is not, and no ticket is sold twice', async () => {
    const { report, sections } = await walkThrough(24);

    expect(report).toMatchObject({
      ok: true,
      results: { added: 50, nextInvoiceNumber: 1, firstSale: 'sold', secondSale: 'sold out' },
    });
    expect(report.results['readThenWritten']).toBeLessThan(50);
    expect(report.results['readThenWritten']).toBeGreaterThan(0);
    expect(textOf(sections)).toContain('... (+47 more UpdateItem calls not shown)');
    expect(sections[1]?.requests.filter(({ operation }) => operation === 'PutItem').length).toBeGreaterThanOrEqual(50);
  });

  test('25: the refused order says why and leaves nothing', async () => {
    const { report, sections } = await walkThrough(25);

    expect(report).toMatchObject({
      ok: true,
      results: {
        firstOrder: 'OK',
        secondOrder: ['None', 'ConditionalCheckFailed', 'None'],
        snapshot: [
          { PK: 'PRODUCT#widget', SK: 'STOCK', stock: 1 },
          { PK: 'CUSTOMER#alice', SK: 'PROFILE', orderCount: 1 },
          null,
        ],
      },
    });
    expect(textOf(sections)).toContain('refused: TransactionCanceledException (None, ConditionalCheckFailed, None)\n');
  });

  test('26: an address has one owner, whatever its case, and is free again after a change', async () => {
    const { report } = await walkThrough(26);

    expect(report).toMatchObject({
      ok: true,
      results: {
        aliceSignsUp: 'OK',
        bobTakesHers: { answer: 'taken', owner: 'USER#alice' },
        bobSignsUp: 'OK',
        bobChangesToHers: { answer: 'taken', owner: 'USER#alice' },
        bobChanges: 'OK',
        ownerOfBobsAddress: 'USER#bob',
      },
    });
    expect(report.results['keys']).toHaveLength(4);
  });

  test('27: three calls with two keys charge twice', async () => {
    const { report } = await walkThrough(27);

    expect(report).toMatchObject({
      ok: true,
      results: {
        firstCall: { kind: 'completed', response: { chargeId: 'ch_1', amount: 50 } },
        sameKeyAgain: { kind: 'replayed', response: { chargeId: 'ch_1', amount: 50 } },
        newKey: { kind: 'completed', response: { chargeId: 'ch_2', amount: 20 } },
        charges: [50, 20],
      },
    });
  });

  test('28: the index refuses a consistent read and holds one address twice', async () => {
    const { report } = await walkThrough(28);

    expect(report).toMatchObject({
      ok: true,
      results: {
        consistentIndexRead: 'ValidationException',
        indexReadRightAfterWrite: 1,
        tableRead: { PK: 'USER#1', SK: 'PROFILE' },
        foundByRepeating: ['USER#1'],
        usersOfOneAddress: ['USER#1', 'USER#2'],
      },
    });
  });

  test('29: one holder at a time, a takeover when the lease is over, and no release by another', async () => {
    const { report } = await walkThrough(29);

    expect(report).toMatchObject({
      ok: true,
      results: {
        firstAcquires: true,
        secondTriesMeanwhile: false,
        firstReleases: true,
        secondAcquires: true,
        thirdTakesOver: true,
        sleeperReleases: false,
        holder: 'worker-C',
      },
    });
  });
});

describe('a store that does not keep its word is found out', () => {
  test('22: one that overwrites and says so', async () => {
    bench.transport.fault('PutItem', { kind: 'say', body: {} }, { nth: 2 });

    const { report } = await walkThrough(22);

    expect(report).toMatchObject({
      ok: false,
      differences: [`createAgain: expected "${REFUSED}", found "OK"`],
    });
  });

  test('24: one that says it has added and has not', async () => {
    const Attributes = { PK: { S: 'COUNTER#views' }, SK: { S: 'COUNTER' }, value: { N: '7' } };
    bench.transport.fault('UpdateItem', { kind: 'say', body: { Attributes } }, { nth: 7 });

    const { report } = await walkThrough(24);

    expect(report).toMatchObject({ ok: false, differences: ['added: expected 50, found 49'] });
  });

  test('25: one that cancels without a word', async () => {
    const silent = { kind: 'refuse', name: 'TransactionCanceledException' } as const;
    bench.transport.fault('TransactWriteItems', silent, { nth: 3 });

    const { report } = await walkThrough(25);

    expect(report.ok).toBe(false);
    expect(report.differences).toEqual([
      'secondOrder: expected ["None","ConditionalCheckFailed","None"], found ["None","None","None"]',
    ]);
  });
});
