import { describe, expect, it } from 'vitest';
import { differencesOf, Rule, toJson } from '../../src/patterns/expected.ts';

const expected = { list: ['None', 'Failed'], count: new Rule('fewer than 50', (value) => Number(value) < 50) };

describe('what a walk-through came to', () => {
  it('is right when every value is the expected one or keeps its rule, whatever the order of fields', () => {
    expect(differencesOf(expected, { count: 6, list: ['None', 'Failed'] })).toEqual([]);
    expect(differencesOf({ item: { a: 1, b: 2 } }, { item: { b: 2, a: 1 } })).toEqual([]);
  });

  it.each([
    ['a wrong value', { list: ['None'], count: 6 }, 'list: expected ["None","Failed"], found ["None"]'],
    ['a broken rule', { list: ['None', 'Failed'], count: 50 }, 'count: expected fewer than 50, found 50'],
    ['a missing value', { list: ['None', 'Failed'] }, 'count: expected fewer than 50, but it never came about'],
    ['a surplus value', { list: ['None', 'Failed'], count: 6, more: null }, 'more: nothing was expected, found null'],
  ])('names %s', (_case, results, sentence) => {
    expect(differencesOf(expected, results)).toEqual([sentence]);
  });

  it('tells 1 from "1" and nothing from null', () => {
    expect(differencesOf({ a: 1 }, { a: '1' })).toHaveLength(1);
    expect(differencesOf({ a: null }, {})).toHaveLength(1);
    expect(toJson(undefined)).toBeNull();
    expect(toJson([undefined, { a: undefined, b: 1 }])).toEqual([null, { b: 1 }]);
  });
});
