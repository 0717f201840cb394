/** Random update expressions, valid in themselves: whether they fit is for the stored item to say. */
import type { AttributeValue } from '@aws-sdk/client-dynamodb';
import fc from 'fast-check';
import type { Placeholders } from '../../src/store/expressions.ts';
import { at, given, path, pathText, type Path, type Render } from './store-random-conditions.ts';
import { list, number, set, value } from './store-random-values.ts';

const sign = fc.constantFrom('+', '-');
const fallback = (kind: fc.Arbitrary<AttributeValue>): fc.Arbitrary<Render> =>
  fc.tuple(path, kind).map(
    ([each, other]): Render =>
      (placeholders) =>
        `if_not_exists(${pathText(placeholders, each)}, ${placeholders.value(other)})`,
  );
const right: fc.Arbitrary<Render> = fc.oneof(
  { weight: 4, arbitrary: value.map(given) },
  path.map(at),
  fallback(value),
  fc
    .tuple(
      fc.oneof(fallback(number), path.map(at), number.map(given)),
      sign,
      fc.oneof(fallback(number), number.map(given)),
    )
    .map(
      ([left, by, other]): Render =>
        (placeholders) =>
          `${left(placeholders)} ${by} ${other(placeholders)}`,
    ),
  fc.tuple(fc.oneof(fallback(list), path.map(at), list.map(given)), list).map(
    ([left, each]): Render =>
      (placeholders) =>
        `list_append(${left(placeholders)}, ${placeholders.value(each)})`,
  ),
);

export interface Part {
  readonly clause: 'SET' | 'REMOVE' | 'ADD' | 'DELETE';
  readonly path: Path;
  readonly text: Render;
}

const part: fc.Arbitrary<Part> = fc.oneof(
  {
    weight: 5,
    arbitrary: fc.tuple(path, right).map(([each, term]): Part => ({
      clause: 'SET',
      path: each,
      text: (placeholders) => `${pathText(placeholders, each)} = ${term(placeholders)}`,
    })),
  },
  path.map((each): Part => ({ clause: 'REMOVE', path: each, text: at(each) })),
  fc.tuple(fc.oneof(fc.constantFrom('n', 'set'), path), fc.oneof(number, set)).map(([each, term]): Part => ({
    clause: 'ADD',
    path: each,
    text: (placeholders) => `${pathText(placeholders, each)} ${placeholders.value(term)}`,
  })),
  fc.tuple(fc.oneof(fc.constant('set'), path), set).map(([each, term]): Part => ({
    clause: 'DELETE',
    path: each,
    text: (placeholders) => `${pathText(placeholders, each)} ${placeholders.value(term)}`,
  })),
  fc.tuple(fc.constantFrom('GSI1PK', 'GSI1SK'), fc.constantFrom('g', 'h')).map(([each, S]): Part => ({
    clause: 'SET',
    path: each,
    text: (placeholders) => `${each} = ${placeholders.value({ S })}`,
  })),
);
/** All members of a list count as one thing: the local DynamoDB shifts them while it removes some. */
function isWithin(inner: Path, outer: Path): boolean {
  return inner.startsWith(outer.replace(/\[\d+\]$/, ''));
}

/**
 * No two of them on the same thing, or one within the other: such an update is refused whatever is stored. One of them
 * sets something: an update that only removes does not make an item on AWS, but does on the local DynamoDB.
 */
export const parts: fc.Arbitrary<readonly Part[]> = fc
  .uniqueArray(part, {
    maxLength: 3,
    comparator: (left, other) => isWithin(left.path, other.path) || isWithin(other.path, left.path),
  })
  .map((changes) => [
    { clause: 'SET', path: 'tick', text: (placeholders) => `tick = ${placeholders.value({ N: '1' })}` },
    ...changes,
  ]);

export function updateText(parts: readonly Part[], placeholders: Placeholders): string {
  return (['REMOVE', 'SET', 'DELETE', 'ADD'] as const)
    .map((clause) => ({ clause, texts: parts.filter((each) => each.clause === clause) }))
    .filter(({ texts }) => texts.length > 0)
    .map(({ clause, texts }) => `${clause} ${texts.map(({ text: render }) => render(placeholders)).join(', ')}`)
    .join(' ');
}
