import { expect, test } from 'vitest';
import { ProviderFaults, faultRuleSchema, type FaultRuleInput } from '../../src/payments/provider-faults.ts';

const request = { reference: 'req-1', caller: 'w1', fresh: true };

function rule(changes: Partial<FaultRuleInput> = {}): FaultRuleInput {
  return { match: {}, effect: 'hold', times: 1, ...changes };
}

test('acts as often as "times" says and counts what it saw and did', () => {
  const faults = new ProviderFaults();
  faults.add(rule({ id: 'r', times: 2 }));

  const taken = [1, 2, 3].map(() => faults.take(request)?.id);

  expect(taken).toEqual(['r', 'r', undefined]);
  expect(faults.list()).toMatchObject([{ id: 'r', seen: 3, effective: 2 }]);
});

test('starts at the nth request that fits, not counting others', () => {
  const faults = new ProviderFaults();
  faults.add(rule({ match: { reference: 'req-1', nth: 2 } }));

  expect(faults.take({ ...request, reference: 'other' })).toBeUndefined();
  expect(faults.take(request)).toBeUndefined();
  expect(faults.take({ ...request, reference: 'other' })).toBeUndefined();
  expect(faults.take(request)).toBeDefined();
  expect(faults.take(request)).toBeUndefined();
});

test('acts only on the caller it names', () => {
  const faults = new ProviderFaults();
  faults.add(rule({ match: { caller: 'w2' } }));

  expect(faults.take({ ...request, caller: null })).toBeUndefined();
  expect(faults.take(request)).toBeUndefined();
  expect(faults.take({ ...request, caller: 'w2' })).toBeDefined();
});

test('lets the first rule act and the next one only on the next request', () => {
  const faults = new ProviderFaults();
  faults.add(rule({ id: 'first' }));
  faults.add(rule({ id: 'second' }));

  expect([faults.take(request)?.id, faults.take(request)?.id]).toEqual(['first', 'second']);
});

test('does not spend a decline on a key that has its answer already', () => {
  const faults = new ProviderFaults();
  faults.add(rule({ effect: 'decline' }));

  expect(faults.take({ ...request, fresh: false })).toBeUndefined();
  expect(faults.take(request)).toBeDefined();
});

test('refuses an id that is taken', () => {
  const faults = new ProviderFaults();
  faults.add(rule({ id: 'r' }));

  expect(faults.add(rule({ id: 'r' }))).toBe('id-taken');
});

test('keeps at most 100 rules and makes room only by dropping spent ones', () => {
  const faults = new ProviderFaults();
  for (let n = 0; n < 100; n += 1) faults.add(rule({ id: `r${String(n)}` }));

  expect(faults.add(rule({ id: 'one more' }))).toBe('full');
  faults.take(request);
  expect(faults.add(rule({ id: 'one more' }))).toMatchObject({ id: 'one more' });
  expect(faults.list()).toHaveLength(100);
  expect(faults.has('r0')).toBe(false);
});

test.each([
  ['late without a delay', { effect: 'late' }],
  ['a delay without late', { effect: 'hold', delayMs: 5 }],
  ['an unknown effect', { effect: 'explode' }],
  ['an unknown field', { effect: 'hold', when: 'now' }],
  ['an unknown condition', { effect: 'hold', match: { amount: 1 } }],
  ['zero times', { effect: 'hold', times: 0 }],
  ['a zero nth', { effect: 'hold', match: { nth: 0 } }],
])('does not accept a rule with %s', (_, input) => {
  expect(faultRuleSchema.safeParse(input).success).toBe(false);
});

test('fills in the defaults: every request, once', () => {
  expect(faultRuleSchema.parse({ effect: 'hold' })).toEqual({ effect: 'hold', match: {}, times: 1 });
});
