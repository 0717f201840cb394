import { expect, test } from 'vitest';
import { CHARGE_REQUESTED } from '../../src/messages/charge.ts';
import { validate } from '../../src/messages/schema.ts';
import { charge } from './charges.ts';

test.each<[what: string, fields: Record<string, unknown>]>([
  ['an amount of zero', { amountMinor: 0 }],
  ['a negative amount', { amountMinor: -5 }],
  ['an amount in whole units with cents behind the point', { amountMinor: 12.5 }],
  ['an amount beyond 10^12', { amountMinor: 1_000_000_000_001 }],
  ['a currency in small letters', { currency: 'eur' }],
  ['a currency that does not exist', { currency: 'XQQ' }],
  ['an empty request id', { requestId: '' }],
  ['a request id with a blank', { requestId: 'req 1' }],
  ['a request id with a line end behind it', { requestId: 'req_1\n' }],
  ['a request id with a # that separates keys', { requestId: 'req#1' }],
  ['a request id of 101 characters', { requestId: 'r'.repeat(101) }],
  ['a description of 501 characters', { description: 'd'.repeat(501) }],
  ['a field that it does not know', { tip: 5 }],
])('refuses %s in a charge', (_what, fields) => {
  const checked = validate(CHARGE_REQUESTED.schema, { ...charge(), ...fields });

  expect(checked.kind).toBe('refused');
});

test('names a charge by its request id, and no other field of it', () => {
  expect(CHARGE_REQUESTED.keyOf(charge({ requestId: 'req_9', accountId: 'acct_2' }))).toBe('req_9');
});
