/** Random attribute values, keys and items: few of each, so that they meet. */
import type { AttributeValue } from '@aws-sdk/client-dynamodb';
import fc from 'fast-check';

export type Values = Record<string, AttributeValue>;

export const PARTITIONS: readonly string[] = ['p', 'q#1'];
const SORTS = ['a', 'b', '\u{1f600}', '\ufffd'];

export const key: fc.Arbitrary<Values> = fc.record({
  PK: fc.constantFrom(...PARTITIONS).map((S) => ({ S })),
  SK: fc.constantFrom(...SORTS).map((S) => ({ S })),
});

export const number: fc.Arbitrary<AttributeValue> = fc
  .constantFrom(
    '0',
    '1',
    '-1',
    '1.0',
    '1.50',
    '2',
    '007',
    '-0',
    '1e3',
    '9007199254740993',
    '0.1',
    '99999999999999999999',
  )
  .map((N) => ({ N }));
export const text: fc.Arbitrary<AttributeValue> = fc
  .constantFrom('', 'a', 'ab', 'b', 'é', '\u{1f600}', '\uffff')
  .map((S) => ({ S }));
export const binary: fc.Arbitrary<AttributeValue> = fc
  .constantFrom([], [1], [1, 2], [255])
  .map((bytes) => ({ B: Uint8Array.from(bytes) }));
export const set: fc.Arbitrary<AttributeValue> = fc.oneof(
  fc.subarray(['a', 'b', 'c'], { minLength: 1 }).map((SS) => ({ SS })),
  fc.subarray(['1', '2', '3'], { minLength: 1 }).map((NS) => ({ NS })),
);
export const scalar: fc.Arbitrary<AttributeValue> = fc.oneof(
  { weight: 3, arbitrary: number },
  { weight: 3, arbitrary: text },
  binary,
  fc.boolean().map((BOOL) => ({ BOOL })),
  fc.constant({ NULL: true as const }),
);
const recursive = fc.letrec<{ value: AttributeValue }>((tie) => ({
  value: fc.oneof(
    { maxDepth: 2 },
    { weight: 6, arbitrary: scalar },
    { weight: 2, arbitrary: set },
    fc.array(tie('value'), { maxLength: 3 }).map((L) => ({ L })),
    fc.dictionary(fc.constantFrom('x', 'y'), tie('value'), { maxKeys: 2 }).map((M) => ({ M })),
  ),
}));
export const value: fc.Arbitrary<AttributeValue> = recursive.value;
export const list: fc.Arbitrary<AttributeValue> = fc.array(scalar, { maxLength: 3 }).map((L) => ({ L }));
const map: fc.Arbitrary<AttributeValue> = fc
  .dictionary(fc.constantFrom('x', 'y'), value, { maxKeys: 2 })
  .map((M) => ({ M }));

export const attributes: fc.Arbitrary<Values> = fc.record(
  {
    n: fc.oneof({ weight: 4, arbitrary: number }, value),
    s: fc.oneof({ weight: 4, arbitrary: text }, value),
    set: fc.oneof({ weight: 4, arbitrary: set }, value),
    l: fc.oneof({ weight: 4, arbitrary: list }, value),
    m: fc.oneof({ weight: 4, arbitrary: map }, value),
    other: value,
    GSI1PK: fc.constantFrom<AttributeValue>({ S: 'g' }, { S: 'g' }, { S: 'h' }, { N: '1' }),
    GSI1SK: fc.constantFrom<AttributeValue>({ S: '1' }, { S: '2' }, { S: '3' }),
  },
  { requiredKeys: [] },
);
