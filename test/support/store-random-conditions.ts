/** Random conditions, valid for whatever is stored. */
import type { AttributeValue } from '@aws-sdk/client-dynamodb';
import fc from 'fast-check';
import {
  absent,
  all,
  any,
  atLeast,
  atMost,
  attributeAbsent,
  attributePresent,
  attributeType,
  beginsWith,
  between,
  contains,
  equals,
  lessThan,
  moreThan,
  not,
  notEquals,
  oneOf,
  present,
  sizeAtMost,
} from '../../src/store/conditions.ts';
import type { Condition, Placeholders } from '../../src/store/expressions.ts';

import { binary, number, scalar, text, value } from './store-random-values.ts';

export type Path = string;
const paths: readonly Path[] = ['n', 's', 'set', 'l', 'm', 'other', 'l[0]', 'l[1]', 'm.x', 'm.y', 'm.x[0]', 'missing'];
export const path: fc.Arbitrary<Path> = fc.constantFrom(...paths);

/** The placeholder path, with list indexes, which names do not have. */
export function pathText(placeholders: Placeholders, at: Path): string {
  const [names = '', ...indexes] = at.split('[');
  return [placeholders.name(names), ...indexes].join('[');
}

export type Render = (placeholders: Placeholders) => string;

export const given =
  (each: AttributeValue): Render =>
  (placeholders: Placeholders) =>
    placeholders.value(each);
export const at =
  (each: Path): Render =>
  (placeholders: Placeholders) =>
    pathText(placeholders, each);
const sizeAt =
  (each: Path): Render =>
  (placeholders: Placeholders) =>
    `size(${pathText(placeholders, each)})`;

const stored: fc.Arbitrary<Render> = fc.oneof(path.map(at), path.map(sizeAt));
const orderable: fc.Arbitrary<AttributeValue> = fc.oneof(number, text, binary);

const comparison: fc.Arbitrary<Condition> = fc.oneof(
  fc.tuple(stored, fc.constantFrom('=', '<>'), value.map(given)).map(
    ([left, by, other]) =>
      (placeholders: Placeholders) =>
        `${left(placeholders)} ${by} ${other(placeholders)}`,
  ),
  fc
    .tuple(stored, fc.constantFrom('<', '<=', '>', '>='), orderable.map(given), fc.boolean())
    .map(([left, by, other, turned]) => (placeholders: Placeholders) => {
      const [first, second] = turned ? [other, left] : [left, other];
      return `${first(placeholders)} ${by} ${second(placeholders)}`;
    }),
  fc.tuple(fc.uniqueArray(path, { minLength: 2, maxLength: 2 }), fc.constantFrom('=', '<>', '<', '<=', '>', '>=')).map(
    ([[left = '', other = ''], by]) =>
      (placeholders: Placeholders) =>
        `${pathText(placeholders, left)} ${by} ${pathText(placeholders, other)}`,
  ),
);
const rawFunction: fc.Arbitrary<Condition> = fc.oneof(
  fc.tuple(fc.constantFrom('attribute_exists', 'attribute_not_exists'), path).map(
    ([name, each]) =>
      (placeholders: Placeholders) =>
        `${name}(${pathText(placeholders, each)})`,
  ),
  fc.tuple(path, fc.oneof(text, binary)).map(
    ([each, part]) =>
      (placeholders: Placeholders) =>
        `begins_with(${pathText(placeholders, each)}, ${placeholders.value(part)})`,
  ),
  fc.tuple(path, value).map(
    ([each, part]) =>
      (placeholders: Placeholders) =>
        `contains(${pathText(placeholders, each)}, ${placeholders.value(part)})`,
  ),
);
const ranges: readonly (readonly [AttributeValue, AttributeValue])[] = [
  [{ N: '-1' }, { N: '1.5' }],
  [{ S: 'a' }, { S: '\ufffd' }],
  [{ B: Uint8Array.from([1]) }, { B: Uint8Array.from([1, 2]) }],
];
const rawRange: fc.Arbitrary<Condition> = fc
  .tuple(
    stored,
    fc.oneof(
      fc.constantFrom(...ranges).map(([low, high]) => [given(low), given(high)] as const),
      fc.tuple(stored, stored),
    ),
  )
  .map(
    ([each, [low, high]]) =>
      (placeholders: Placeholders) =>
        `${each(placeholders)} BETWEEN ${low(placeholders)} AND ${high(placeholders)}`,
  );
const rawChoice: fc.Arbitrary<Condition> = fc.tuple(path, fc.array(value, { minLength: 1, maxLength: 3 })).map(
  ([each, choices]) =>
    (placeholders: Placeholders) =>
      `${pathText(placeholders, each)} IN (${choices.map((choice) => placeholders.value(choice)).join(', ')})`,
);

const top = fc.constantFrom('n', 's', 'set', 'l', 'm', 'm.x', 'other');
const ordered = fc.constantFrom<number | string>(0, 1, 1.5, 'a', 'ab');
const built: fc.Arbitrary<Condition> = fc.oneof(
  fc.constantFrom(absent(), present()),
  top.map(attributeAbsent),
  top.map(attributePresent),
  fc.tuple(top, value).map(([at, given]) => equals(at, given)),
  fc.tuple(top, value).map(([at, given]) => notEquals(at, given)),
  fc.tuple(top, ordered).map(([at, given]) => lessThan(at, given)),
  fc.tuple(top, ordered).map(([at, given]) => atMost(at, given)),
  fc.tuple(top, ordered).map(([at, given]) => moreThan(at, given)),
  fc.tuple(top, ordered).map(([at, given]) => atLeast(at, given)),
  top.map((at) => between(at, 0, 1.5)),
  fc.tuple(top, fc.array(value, { minLength: 1, maxLength: 3 })).map(([at, given]) => oneOf(at, given)),
  top.map((at) => beginsWith(at, 'a')),
  fc.tuple(top, scalar).map(([at, given]) => contains(at, given)),
  fc
    .tuple(top, fc.constantFrom('S' as const, 'N' as const, 'L' as const, 'SS' as const))
    .map(([at, type]) => attributeType(at, type)),
  fc.tuple(top, fc.nat({ max: 3 })).map(([at, size]) => sizeAtMost(at, size)),
);

const recursive = fc.letrec<{ condition: Condition }>((tie) => ({
  condition: fc.oneof(
    { maxDepth: 3 },
    { weight: 6, arbitrary: built },
    { weight: 2, arbitrary: fc.oneof(comparison, rawFunction, rawRange, rawChoice) },
    tie('condition').map(not),
    fc.array(tie('condition'), { minLength: 2, maxLength: 3 }).map((parts) => all(...parts)),
    fc.array(tie('condition'), { minLength: 2, maxLength: 3 }).map((parts) => any(...parts)),
    // Without brackets: AND before OR, NOT before both.
    fc.tuple(built, fc.constantFrom(' AND ', ' OR '), built, fc.constantFrom(' AND NOT ', ' or '), built).map(
      ([first, one, second, two, third]): Condition =>
        (placeholders: Placeholders) =>
          `${first(placeholders)}${one}${second(placeholders)}${two}${third(placeholders)}`,
    ),
  ),
}));

/** Builders of src/store/conditions.ts and the bare grammar, nested in each other. */
export const condition: fc.Arbitrary<Condition> = recursive.condition;
