import type { AttributeValue } from '@aws-sdk/client-dynamodb';
import fc from 'fast-check';
import { describe, expect, it, test } from 'vitest';
import { fillIn, reasonsOf, renderRequest, renderValue } from '../../src/patterns/render-trace.ts';

function render(operation: string, input: object, failure?: unknown): string {
  return renderRequest({ operation, input, failure });
}

class Fault extends Error {
  readonly CancellationReasons: readonly object[] | undefined;
  constructor(name: string, reasons?: readonly object[]) {
    super('refused by the test');
    this.name = name;
    this.CancellationReasons = reasons;
  }
}

describe('a request', () => {
  test('shows names and values in the place of placeholders, and what is returned', () => {
    const text = render('UpdateItem', {
      TableName: 'table-1',
      Key: { PK: { S: 'USER#alice' }, SK: { S: 'PROFILE' } },
      ConditionExpression: '(#n0 >= :v1) AND (#n1 = :v10)',
      UpdateExpression: 'SET #n0 = #n0 - :v1',
      ExpressionAttributeNames: { '#n0': 'credits', '#n1': 'status' },
      ExpressionAttributeValues: { ':v1': { N: '7' }, ':v10': { S: 'active' } },
      ReturnValues: 'ALL_NEW',
      ReturnValuesOnConditionCheckFailure: 'ALL_OLD',
    });

    expect(text).toBe(
      [
        '>>> UpdateItem table-1',
        "    key:        {PK: 'USER#alice', SK: 'PROFILE'}",
        "    condition:  (credits >= 7) AND (status = 'active')",
        '    update:     SET credits = credits - 7',
        '    ReturnValues: ALL_NEW',
        '    ReturnValuesOnConditionCheckFailure: ALL_OLD',
      ].join('\n'),
    );
  });

  test('shows each action of a transaction, and the reason of each when it was refused', () => {
    const put = { TableName: 't', Item: { PK: { S: 'a' } }, ConditionExpression: 'attribute_not_exists(PK)' };
    const check = { TableName: 't', Key: { PK: { S: 'b' } }, ConditionExpression: 'attribute_exists(PK)' };
    const cancelled = new Fault('TransactionCanceledException', [{ Code: 'None' }, { Code: 'ConditionalCheckFailed' }]);

    const text = render('TransactWriteItems', { TransactItems: [{ Put: put }, { ConditionCheck: check }] }, cancelled);

    expect(text).toBe(
      [
        '>>> TransactWriteItems',
        '    - Put t',
        "        item:       {PK: 'a'}",
        '        condition:  attribute_not_exists(PK)',
        '    - ConditionCheck t',
        "        key:        {PK: 'b'}",
        '        condition:  attribute_exists(PK)',
        '    refused: TransactionCanceledException (None, ConditionalCheckFailed)',
      ].join('\n'),
    );
  });

  test('shows index, key condition and consistency of a query', () => {
    const text = render('Query', {
      TableName: 't',
      IndexName: 'GSI1',
      KeyConditionExpression: '#n0 = :v0',
      ExpressionAttributeNames: { '#n0': 'GSI1PK' },
      ExpressionAttributeValues: { ':v0': { S: 'EMAIL#a@x.com' } },
      ConsistentRead: true,
    });

    expect(text.split('\n').map((line) => line.trim())).toEqual([
      '>>> Query t',
      "key:        GSI1PK = 'EMAIL#a@x.com'",
      'IndexName: GSI1',
      'ConsistentRead: true',
    ]);
  });

  test('shows a long update with one assignment a line, cut at no comma of a function or value', () => {
    const text = render('UpdateItem', {
      TableName: 't',
      UpdateExpression: 'SET #n0 = if_not_exists(#n0, :v0) + :v1, #n1 = :v2 REMOVE #n2, #n3',
      ExpressionAttributeNames: { '#n0': 'attempts', '#n1': 'text', '#n2': 'owner', '#n3': 'lastError' },
      ExpressionAttributeValues: { ':v0': { N: '0' }, ':v1': { N: '1' }, ':v2': { S: `a, b, ${'c'.repeat(60)}` } },
    });

    expect(text.split('\n').slice(1)).toEqual([
      '    update:     SET attempts = if_not_exists(attempts, 0) + 1,',
      `                text = 'a, b, ${'c'.repeat(60)}' REMOVE owner,`,
      '                lastError',
    ]);
  });

  test('names a failure without a name for what it is', () => {
    expect(render('GetItem', { TableName: 't' }, { some: 'thing' })).toContain('refused: no answer');
    expect(reasonsOf('a text')).toEqual([]);
    expect(reasonsOf(new Fault('X', [{ Code: 'None' }, {}]))).toEqual(['None', 'None']);
  });
});

describe('a value', () => {
  const cases: readonly (readonly [AttributeValue, string])[] = [
    [{ S: '' }, "''"],
    [{ S: `it's "so" \\ \n` }, String.raw`'it\'s "so" \\ \n'`],
    [{ S: '\u0000\u{1F600}' }, String.raw`'\u0000` + "\u{1F600}'"],
    [{ N: '99999999999999999999999999999999999999' }, '99999999999999999999999999999999999999'],
    [{ N: '-0' }, '-0'],
    [{ BOOL: false }, 'false'],
    [{ NULL: true }, 'null'],
    [{ L: [{ N: '1' }, { S: 'x' }] }, "[1, 'x']"],
    [{ M: { 'odd name': { M: {} }, plain: { L: [] } } }, '{"odd name": {}, plain: []}'],
    [{ SS: ['a', 'b'] }, "set('a', 'b')"],
    [{ NS: ['1', '2'] }, 'set(1, 2)'],
    [{ B: new Uint8Array(3) }, '3 bytes'],
    [{ BS: [new Uint8Array(1), new Uint8Array(2)] }, 'set(1 bytes, 2 bytes)'],
    [{ $unknown: ['X', 1] }, '?'],
  ];

  test.each(cases)('is written as a literal: %j', (value, text) => {
    expect(renderValue(value)).toBe(text);
  });
});

describe('placeholders', () => {
  const word = fc.oneof(fc.constantFrom('v1', 'v10', 'n1', 'n10'), fc.stringMatching(/^[A-Za-z0-9_]{1,4}$/));
  /** Texts that would betray a second look at what was filled in, or a replacement pattern. */
  const nasty = fc.oneof(fc.string(), fc.constantFrom(':v1', '#n1', '$&', "$'", ':v10 AND #n0'));
  const part = fc.oneof(
    fc.record({ kind: fc.constant('name' as const), word, name: nasty }),
    fc.record({ kind: fc.constant('value' as const), word, value: nasty }),
    fc.record({ kind: fc.constant('text' as const), text: fc.constantFrom(' = ', ' AND ', '(', ')', ', ', ' >= ') }),
  );

  it('are filled in each whole and once, whatever the values look like', () => {
    fc.assert(
      fc.property(fc.array(part, { maxLength: 12 }), (parts) => {
        const names: Record<string, string> = {};
        const values: Record<string, AttributeValue> = {};
        for (const each of parts) {
          if (each.kind === 'name') names[`#${each.word}`] = each.name;
          if (each.kind === 'value') values[`:${each.word}`] = { S: each.value };
        }
        // A space behind each placeholder, as there is always a sign between two of them.
        const expression = parts.map((each) =>
          each.kind === 'text' ? each.text : `${signOf(each.kind)}${each.word} `,
        );
        const expected = parts.map((each) => {
          if (each.kind === 'text') return each.text;
          if (each.kind === 'value') return `${renderValue(values[`:${each.word}`] ?? { NULL: true })} `;
          const name = names[`#${each.word}`] ?? '';
          return `${/^[A-Za-z_][A-Za-z0-9_]*$/.test(name) ? name : JSON.stringify(name)} `;
        });

        expect(fillIn(expression.join(''), names, values)).toBe(expected.join(''));
      }),
    );
  });

  it('are told apart when one is the beginning of another', () => {
    const values = { ':v1': { S: 'a' }, ':v10': { S: 'b' }, ':v100': { S: 'c' } };

    expect(fillIn(':v100 + :v10 + :v1', {}, values)).toBe("'c' + 'b' + 'a'");
  });

  it('stay when they stand for nothing', () => {
    expect(fillIn('#a = :b', {}, {})).toBe('#a = :b');
  });
});

function signOf(kind: 'name' | 'value'): string {
  return kind === 'name' ? '#' : ':';
}
