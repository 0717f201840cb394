/** What a transaction is refused for before anything is sent, and how large its items are counted. */
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { ConfigurationError } from '../../src/errors.ts';
import { absent, equals, present } from '../../src/store/conditions.ts';
import { plus } from '../../src/store/expressions.ts';
import { itemBytes, MAX_ITEM_BYTES } from '../../src/store/item-size.ts';
import { fromStored, MAX_STORED_BYTES, toStored } from '../../src/store/effects/stored-value.ts';
import { checkTransaction, renderAction, type TransactionAction } from '../../src/store/transactions/transaction.ts';
import { effectRecordKey, keyText, ledgerEntryKey } from '../../src/store/table.ts';

function put(label: string, bytes = 0): TransactionAction {
  return { kind: 'put', label, item: { PK: label, SK: 's', padding: 'x'.repeat(bytes) } };
}

function faultsOf(actions: readonly TransactionAction[]): string[] {
  try {
    checkTransaction(actions);
    return [];
  } catch (error) {
    if (error instanceof ConfigurationError) return error.faults.map((fault) => `${fault.name}: ${fault.rule}`);
    throw error;
  }
}

describe('the check of a transaction', () => {
  test('refuses none and more than 100 actions', () => {
    // Arrange
    const actions = Array.from({ length: 101 }, (_, index) => put(`p${String(index)}`));

    // Act & Assert
    expect([faultsOf([]), faultsOf(actions.slice(1)), faultsOf(actions)]).toEqual([
      ['actions: from 1 to 100'],
      [],
      ['actions: from 1 to 100'],
    ]);
  });

  test('names both actions that touch one item, whatever they do to it', () => {
    // Arrange
    const key = { PK: 'a', SK: 's' };
    const actions: TransactionAction[] = [
      { kind: 'check', label: 'fence', key, condition: present() },
      { kind: 'update', label: 'balance', key, change: { set: { balance: plus(1, 0) } } },
      { kind: 'delete', label: 'other', key: { PK: 'a', SK: 't' } },
    ];

    // Act & Assert
    expect(faultsOf(actions)).toEqual(['balance: one action per item, but "fence" has the same key']);
  });

  test('takes keys apart that only look alike when they are joined', () => {
    expect(
      faultsOf([
        { kind: 'delete', label: 'a', key: { PK: 'a|b', SK: 'c' } },
        { kind: 'delete', label: 'b', key: { PK: 'a', SK: 'b|c' } },
      ]),
    ).toEqual([]);
  });

  test('takes an item of exactly 400 KiB and refuses one byte more', () => {
    // Arrange
    const room = MAX_ITEM_BYTES - itemBytes({ PK: 'item', SK: 's', padding: '' });

    // Act & Assert
    expect([faultsOf([put('item', room)]), faultsOf([put('item', room + 1)])]).toEqual([
      [],
      ['item: an item of at most 409600 bytes'],
    ]);
  });

  test('refuses more than 4 MB in all', () => {
    // Arrange
    const actions = Array.from({ length: 11 }, (_, index) => put(`p${String(index)}`, 400_000));

    // Act & Assert
    expect([faultsOf(actions.slice(1)), faultsOf(actions)]).toEqual([[], ['size: at most 4194304 bytes in all']]);
  });

  test('lists every fault at once', () => {
    // Arrange
    const actions = [
      ...Array.from({ length: 101 }, (_, index) => put(`p${String(index)}`, 45_000)),
      put('p0'),
      put('large', 500_000),
    ];

    // Act & Assert
    expect(faultsOf(actions).map((fault) => fault.split(':')[0])).toEqual(['actions', 'p0', 'large', 'size']);
  });

  test.each(['record', 'fence', 'unique'] as const)('refuses the role %s without a condition', (role) => {
    // Arrange
    const key = { PK: 'a', SK: 's' };
    const actions: readonly TransactionAction[] = [
      { kind: 'put', label: 'l', role, item: key },
      { kind: 'update', label: 'l', role, key, change: { set: { n: 1 } } },
      { kind: 'delete', label: 'l', role, key },
    ];

    // Act & Assert
    for (const action of actions) {
      expect(faultsOf([action])).toEqual([expect.stringMatching(`^l: condition: given with the role ${role}`)]);
      expect(faultsOf([{ ...action, condition: absent() }])).toEqual([]);
    }
  });

  test.each<[string, unknown]>([
    ['a list of actions', [put('a')]],
    ['nothing', undefined],
    ['null', null],
    ['a text', 'put'],
    ['an unknown kind', { kind: 'add', label: 'a', key: { PK: 'a', SK: 's' } }],
    ['a put without an item', { kind: 'put', label: 'a' }],
    ['an update without a change', { kind: 'update', label: 'a', key: { PK: 'a', SK: 's' } }],
    ['a delete without a key', { kind: 'delete', label: 'a' }],
  ])('names by its place what is no action: %s', (_title, action) => {
    expect(faultsOf([put('p'), action as TransactionAction])).toEqual([
      'action 1: one action: a put, an update, a delete or a check',
    ]);
  });

  test('counts what an update sets', () => {
    const key = { PK: 'a', SK: 's' };
    const action: TransactionAction = {
      kind: 'update',
      label: 'big',
      key,
      change: { set: { text: 'x'.repeat(500_000) } },
    };
    expect(faultsOf([action])).toEqual(['big: an item of at most 409600 bytes']);
  });
});

describe('an action as it is sent', () => {
  const key = { PK: 'a', SK: 's' };

  test.each<[string, TransactionAction, object]>([
    [
      'put',
      { kind: 'put', label: 'l', item: { ...key, a: 1 }, condition: absent() },
      { Put: { Item: { ...key, a: 1 }, ConditionExpression: 'attribute_not_exists(#n0)' } },
    ],
    ['put without a condition', { kind: 'put', label: 'l', item: key }, { Put: { Item: key } }],
    [
      'update',
      { kind: 'update', label: 'l', key, change: { set: { a: 1 } }, condition: equals('a', 0) },
      { Update: { Key: key, UpdateExpression: 'SET #n0 = :v0', ConditionExpression: '#n0 = :v1' } },
    ],
    [
      'delete',
      { kind: 'delete', label: 'l', key, condition: present() },
      { Delete: { Key: key, ConditionExpression: 'attribute_exists(#n0)' } },
    ],
    [
      'check',
      { kind: 'check', label: 'l', key, condition: present() },
      { ConditionCheck: { Key: key, ConditionExpression: 'attribute_exists(#n0)' } },
    ],
  ])('%s asks for the stored item when its condition fails', (_title, action, expected) => {
    // Act
    const rendered = renderAction(action, 'table');

    // Assert
    expect(rendered).toMatchObject(expected);
    expect(Object.values(rendered)).toMatchObject([
      { TableName: 'table', ReturnValuesOnConditionCheckFailure: 'ALL_OLD' },
    ]);
  });
});

describe('the size of an item', () => {
  test.each<[string, Record<string, unknown>, number]>([
    ['text in UTF-8', { é: '€' }, 2 + 3],
    ['numbers at two digits a byte', { n: 1_234 }, 1 + 3],
    ['truth and nothing', { t: true, n: null }, 2 + 2],
    ['bytes', { b: new Uint8Array(7) }, 1 + 7],
    ['a set', { s: new Set(['ab', 'c']) }, 1 + 3],
    ['a list', { l: ['ab', 'c'] }, 1 + 3 + 3 + 2],
    ['a map', { m: { a: 'b' } }, 1 + 3 + 2 + 1],
  ])('counts %s', (_title, item, bytes) => {
    expect(itemBytes(item)).toBe(bytes);
  });
});

describe('a stored value', () => {
  test('reads back as JSON has it, whatever it is', () => {
    fc.assert(
      fc.property(fc.jsonValue(), (value) => {
        expect(fromStored(toStored(value))).toEqual(JSON.parse(JSON.stringify(value)));
      }),
    );
  });

  test('is null where the handler returned nothing', () => {
    expect([fromStored(toStored(undefined)), fromStored(undefined)]).toEqual([null, null]);
  });

  test('is kept whole up to its limit and by digest beyond it', () => {
    // Arrange
    const fits = 'x'.repeat(MAX_STORED_BYTES - 2);

    // Act
    const stored = [toStored(fits), toStored(`${fits}y`)];

    // Assert
    expect(fromStored(stored[0])).toBe(fits);
    expect(fromStored(stored[1])).toEqual({
      digest: 'sha256',
      sha256: expect.stringMatching(/^[0-9a-f]{64}$/) as unknown,
      bytes: MAX_STORED_BYTES + 1,
    });
  });

  test('counts bytes, not characters', () => {
    expect(toStored('€'.repeat(MAX_STORED_BYTES / 2))).toHaveProperty('bytes', MAX_STORED_BYTES * 1.5 + 2);
  });
});

test('keys of different things never meet', () => {
  // Act
  const keys = [
    effectRecordKey('q', 'k'),
    effectRecordKey('q#k', ''),
    ledgerEntryKey('a', 'r'),
    ledgerEntryKey('a', 'META'),
  ];

  // Assert
  expect(new Set(keys.map(keyText)).size).toBe(keys.length);
});
