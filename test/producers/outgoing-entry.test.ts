import { describe, expect, test } from 'vitest';
import { z } from 'zod';
import { CHARGE_REQUESTED } from '../../src/messages/charge.ts';
import type { MessageContract } from '../../src/messages/contract.ts';
import { prepareEntry, type OutgoingEntry } from '../../src/producers/outgoing-entry.ts';
import { charge } from '../messages/charges.ts';

const MIB = 1_048_576;

function reasonOf(entry: OutgoingEntry): string {
  const prepared = prepareEntry(entry, 0);
  return prepared.kind === 'invalid' ? prepared.reason : 'ready';
}

function bytesOf(entry: OutgoingEntry): number {
  const prepared = prepareEntry(entry, 0);
  return prepared.kind === 'ready' ? prepared.entry.bytes : -1;
}

test.each([-1, 901, 1.5, Number.NaN, Number.POSITIVE_INFINITY])(
  'refuses a delay of %d seconds by its rule',
  (delay) => {
    expect(reasonOf({ body: 'x', key: 'k', delaySeconds: delay })).toBe(
      `delaySeconds: a whole number from 0 to 900 s (got ${String(delay)})`,
    );
  },
);

test.each([0, 1, 900])('takes a delay of %d seconds', (delaySeconds) => {
  expect(reasonOf({ body: 'x', key: 'k', delaySeconds })).toBe('ready');
});

test('counts names, types and values of attributes towards the 1 MiB of a message', () => {
  const attributes = { trace: 'é' };
  const attributeBytes = 'trace'.length + 'String'.length + 2;

  expect(bytesOf({ body: 'x'.repeat(MIB - attributeBytes), key: 'k', attributes })).toBe(MIB);
  expect(reasonOf({ body: 'x'.repeat(MIB - attributeBytes + 1), key: 'k', attributes })).toBe(
    `body: at most ${String(MIB)} bytes with its attributes (got ${String(MIB + 1)})`,
  );
});

test('counts a body in UTF-8, not in characters', () => {
  expect(bytesOf({ body: 'äß鍵', key: 'k' })).toBe(7);
});

test('refuses an empty body, which could bring down the whole request', () => {
  expect(reasonOf({ body: '', key: 'k' })).toContain('body: must not be empty');
});

test.each([
  ['U+0000', 'a\u0000b'],
  ['U+FFFF', 'a\uffff'],
  ['U+D83D', '\ud83d alone'],
])('refuses a body with %s, which SQS does not take', (codePoint, body) => {
  expect(reasonOf({ body, key: 'k' })).toBe(`body: only characters that SQS takes (got ${codePoint})`);
});

test('takes line ends, tabs and whole emoji in a body', () => {
  expect(reasonOf({ body: '\t\r\n😀', key: 'k' })).toBe('ready');
});

test.each([
  ['an empty value', { trace: '' }],
  ['a name with a blank', { 'a b': 'x' }],
  ['a name that is kept for AWS', { 'AWS.trace': 'x' }],
  ['a name with two dots in a row', { 'a..b': 'x' }],
  ['a name that ends in a dot', { 'a.': 'x' }],
  ['a value with a control character', { trace: 'a\u0001' }],
  ['eleven attributes', Object.fromEntries(Array.from({ length: 11 }, (_, at) => [`a${String(at)}`, 'x']))],
])('refuses attributes with %s', (_what, attributes) => {
  expect(reasonOf({ body: 'x', key: 'k', attributes })).toMatch(/^attributes/);
});

test('tells all faults of an entry at once', () => {
  const reason = reasonOf({
    contract: CHARGE_REQUESTED,
    payload: charge({ currency: 'eur' }),
    delaySeconds: 901,
    attributes: { trace: '' },
  });

  expect(reason).toContain('payload.currency: must be an ISO 4217 code');
  expect(reason).toContain('delaySeconds: a whole number from 0 to 900 s (got 901)');
  expect(reason).toContain('attributes.trace: must not be empty');
});

test('does not throw when the code of a contract does', () => {
  const broken: MessageContract<unknown> = {
    type: 'broken',
    version: 1,
    schema: z.unknown(),
    keyOf() {
      throw new TypeError('no id here');
    },
  };

  expect(reasonOf({ contract: broken, payload: {} })).toBe('keyOf of "broken" threw: no id here');
});

describe('on a FIFO queue', () => {
  const body: OutgoingEntry = { body: '{}', key: 'order 1' };

  function idsOf(entry: OutgoingEntry): { groupId: string | undefined; deduplicationId: string | undefined } {
    const prepared = prepareEntry(entry, 0, { isFifo: true });
    if (prepared.kind === 'invalid') throw new Error(prepared.reason);
    const { groupId, deduplicationId } = prepared.entry;
    return { groupId, deduplicationId };
  }

  test('a message goes to the group of its key, and equal bodies have one deduplication id', () => {
    const [first, again] = [idsOf({ ...body, key: 'order-1' }), idsOf({ ...body, key: 'order-2' })];

    expect(first.groupId).toBe('order-1');
    expect(again.groupId).toBe('order-2');
    expect(again.deduplicationId).toBe(first.deduplicationId);
  });

  test('a key that SQS does not take as a group is written as its digest, another for each key', () => {
    const groups = ['order 1', 'order 2', 'x'.repeat(129), 'ä'].map((key) => idsOf({ ...body, key }).groupId);

    expect(new Set(groups).size).toBe(4);
    for (const group of groups) expect(group).toMatch(/^[0-9a-f]{64}$/);
  });

  test('what the caller names is taken as it is', () => {
    expect(idsOf({ ...body, groupId: 'g', deduplicationId: 'd' })).toEqual({ groupId: 'g', deduplicationId: 'd' });
  });

  test.each<[what: string, entry: OutgoingEntry]>([
    ['an empty group', { ...body, groupId: '' }],
    ['a group with a blank', { ...body, groupId: 'a b' }],
    ['a deduplication id of 129 characters', { ...body, deduplicationId: 'd'.repeat(129) }],
    ['a delay of its own', { ...body, delaySeconds: 1 }],
  ])('refuses %s', (_what, entry) => {
    expect(prepareEntry(entry, 0, { isFifo: true }).kind).toBe('invalid');
  });

  test('refuses a deduplication id on a standard queue, where it would do nothing', () => {
    expect(prepareEntry({ ...body, deduplicationId: 'd' }, 0).kind).toBe('invalid');
  });
});
