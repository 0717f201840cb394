/** A change that adds up is never repeated after a lost answer, unless its condition sees to it that it counts once. */
import { inspect } from 'node:util';
import { describe, expect, test } from 'vitest';
import { ConfigurationError } from '../../src/errors.ts';
import { equals } from '../../src/store/conditions.ts';
import { append, minus, plus, type Change, type Condition, type SetExpression } from '../../src/store/expressions.ts';
import { fill, spend } from '../../src/store/guarded-change.ts';
import type { Item, ItemKey } from '../../src/store/table.ts';
import { useStoreBench } from '../support/store-bench.ts';

const bench = useStoreBench();

async function failureOf(write: Promise<unknown>): Promise<unknown> {
  return write.then(
    (answer) => `no failure: ${inspect(answer)}`,
    (error: unknown) => error,
  );
}

async function stored(attributes: Item): Promise<ItemKey & Item> {
  const item = { PK: bench.unique('SUM'), SK: 'S', ...attributes };
  await bench.truth.items.create(item);
  return item;
}

describe('a repeated update', () => {
  const ownSum: SetExpression = (to, path) => `${to.name(path)}+${to.value(1)}`;
  const wrappedSum: SetExpression = (to, path) => plus(1, 0)(to, path);
  const seven = spend('n', 7);
  const two = fill('n', 2, 100);
  test.each<[string, Change, Condition | undefined]>([
    ['plus', { set: { n: plus(1, 0) } }, undefined],
    ['plus beside others', { set: { a: 1, n: plus(1, 0) }, remove: ['b'] }, undefined],
    ['minus', { set: { n: minus(1) } }, undefined],
    ['append', { set: { log: append('a') } }, undefined],
    ['spend', seven.change, seven.condition],
    ['fill', two.change, two.condition],
    ['an expression of its own', { set: { n: ownSum } }, undefined],
    ['one that wraps plus', { set: { n: wrappedSum } }, undefined],
  ])('is not on offer where it would count twice: %s', async (_title, change, condition) => {
    // Arrange
    const item = await stored({ n: 20, log: [] });
    const store = bench.store();
    bench.transport.fault('UpdateItem', { kind: 'lose the answer' }, { times: 9 });

    // Act
    const errors = [
      await failureOf(store.items.update(item, change, { ...(condition && { condition }), whenUnanswered: 'repeat' })),
      ...(condition === undefined ? [await failureOf(store.update({ key: item, change }))] : []),
    ];

    // Assert
    expect(errors).toEqual(errors.map(() => expect.any(ConfigurationError) as unknown));
    expect(await bench.truth.items.get(item)).toEqual(item);
  });

  test('of a sum is on offer where its own application makes its condition false', async () => {
    // Arrange
    const item = await stored({ n: 20, version: 3 });
    bench.transport.fault('UpdateItem', { kind: 'lose the answer' });

    // Act
    const change = { set: { n: plus(1, 0), version: plus(1, 0) } };
    await bench.store().update({ key: item, change, condition: equals('version', 3) });

    // Assert
    expect(await bench.truth.items.get(item)).toEqual({ ...item, n: 21, version: 4 });
  });
});
