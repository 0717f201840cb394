import { expect, test } from 'vitest';
import { bodyDigest, parseNotice, type DeadLetterNotice } from '../../src/queues/dead-letter-notice.ts';

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
