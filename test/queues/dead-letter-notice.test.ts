import { expect, test } from 'vitest';
import { bodyDigest, originalOf, parseNotice, type DeadLetterNotice } from '../../src/queues/dead-letter-notice.ts';

const notice: DeadLetterNotice = {
  reason: 'invalid',
  detail: 'NOT_JSON: the body is not JSON',
  sourceQueue: 'q',
  messageId: 'm1',
  receiveCount: 1,
  deadLetteredAtMs: 1_700_000_000_000,
};

test('reads a notice as it was written', () => {
  expect(parseNotice(JSON.stringify(notice))).toEqual(notice);
});

test.each([
  ['none', undefined],
  ['an empty text', ''],
  ['no JSON', '{"reason":'],
  ['JSON that is no object', '"invalid"'],
  ['an object of somebody else', '{"reason":"by hand"}'],
  ['a notice with a wrong type', JSON.stringify({ ...notice, receiveCount: '1' })],
])('takes %s for no notice', (_case, text) => {
  expect(parseNotice(text)).toBeUndefined();
});

test('knows a body by a digest that no other body has', () => {
  expect(bodyDigest('a')).toMatch(/^[0-9a-f]{64}$/);
  expect(bodyDigest('a')).not.toBe(bodyDigest('a '));
});

const fuller: DeadLetterNotice = {
  ...notice,
  attempts: 3,
  payloadHash: 'aa',
  recordedHash: 'bb',
  sentAtMs: 1,
  firstReceivedAtMs: 2,
  worker: 'w1',
  traceId: 't1',
};

test('reads what later versions tell besides, and leaves out what it cannot read of it', () => {
  const odd = { ...fuller, attempts: 'three', worker: 7, somethingNew: true };

  expect(parseNotice(JSON.stringify(fuller))).toEqual(fuller);
  expect(parseNotice(JSON.stringify(odd))).toEqual({ ...fuller, attempts: undefined, worker: undefined });
});

test('knows the copies of one message, and takes no other message for a copy', () => {
  const original = originalOf(notice, 'a');

  expect(originalOf({ ...fuller, deadLetteredAtMs: 5, receiveCount: 9 }, 'a')).toBe(original);
  expect([
    originalOf({ ...notice, messageId: 'm2' }, 'a'),
    originalOf({ ...notice, sourceQueue: 'q2' }, 'a'),
    originalOf(notice, 'b'),
  ]).not.toContain(original);
  expect([originalOf(undefined, 'a'), originalOf({ ...notice, messageId: '' }, 'a')]).toEqual([undefined, undefined]);
});
