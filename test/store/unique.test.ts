import { describe, expect, test } from 'vitest';
import { ConfigurationError } from '../../src/errors.ts';
import { attributeAbsent, equals, present } from '../../src/store/conditions.ts';
import { TransactionCancelledError } from '../../src/store/transactions/transaction-writer.ts';
import { normaliseEmail } from '../../src/store/unique/normalise.ts';
import { useStoreBench } from '../support/store-bench.ts';
import { uniqueScene } from '../support/store-unique.ts';

const bench = useStoreBench();
const WRITE = 'TransactWriteItems';

describe('create', () => {
  test('writes the item and its sentinel in one transaction', async () => {
    // Arrange
    const scene = uniqueScene(bench);

    // Act
    const answer = await scene.unique().create(scene.user('ada', 'Ada@X.com'));

    // Assert
    expect(answer).toEqual({ kind: 'written' });
    expect(await scene.emails()).toEqual({ ada: 'Ada@X.com' });
    expect(await scene.sentinels()).toEqual({ 'ada@x.com': 'ada' });
    expect(bench.transport.seen.map(({ operation }) => operation)).toEqual([WRITE]);
  });

  test('of a taken value writes nothing and names its owner', async () => {
    const scene = uniqueScene(bench);
    await scene.truth.create(scene.user('ada', 'a@x.com'));

    const answer = await scene.unique().create(scene.user('bob', ' A@X.COM '));

    expect(answer).toEqual({ kind: 'taken', owner: scene.key('ada') });
    expect(await scene.emails()).toEqual({ ada: 'a@x.com' });
  });

  test('of an item that is there brings it and claims nothing', async () => {
    const scene = uniqueScene(bench);
    await scene.truth.create(scene.user('ada', 'a@x.com'));

    const answer = await scene.unique().create(scene.user('ada', 'b@x.com'));

    expect(answer).toEqual({ kind: 'conflict', current: scene.user('ada', 'a@x.com') });
    expect(await scene.sentinels()).toEqual({ 'a@x.com': 'ada' });
  });

  test('of an item whose sentinel outlived it takes the value up again', async () => {
    const scene = uniqueScene(bench);
    await scene.truth.create(scene.user('ada', 'a@x.com'));
    await scene.delete(scene.key('ada'));

    const answer = await scene.unique().create(scene.user('ada', 'a@x.com'));

    expect(answer).toEqual({ kind: 'written' });
    expect(await scene.sentinels()).toEqual({ 'a@x.com': 'ada' });
  });

  test('without the value claims nothing', async () => {
    const scene = uniqueScene(bench);

    const answer = await scene.unique().create(scene.user('ada'));

    expect(answer).toEqual({ kind: 'written' });
    expect(await scene.sentinels()).toEqual({});
  });

  test('of an item with a TTL gives the sentinel none, so that it never ends before its item', async () => {
    const scene = uniqueScene(bench);

    await scene.unique().create({ ...scene.user('ada', 'a@x.com'), ttl: 1_800_000_000 });

    expect(await bench.truth.get({ PK: `UNIQUE#${scene.constraint.scope}#a@x.com`, SK: 'UNIQUE' })).not.toHaveProperty(
      'ttl',
    );
  });
});

describe('change', () => {
  test('frees the old value and claims the new one', async () => {
    // Arrange
    const scene = uniqueScene(bench);
    await scene.truth.create({ ...scene.user('ada', 'a@x.com'), name: 'Ada' });

    // Act
    const answer = await scene.unique().change(scene.key('ada'), 'B@x.com');

    // Assert
    expect(answer).toEqual({ kind: 'written' });
    expect(await bench.truth.get(scene.key('ada'))).toEqual({ ...scene.user('ada', 'B@x.com'), name: 'Ada' });
    expect(await scene.sentinels()).toEqual({ 'b@x.com': 'ada' });
    expect(await scene.truth.create(scene.user('bob', 'a@x.com'))).toEqual({ kind: 'written' });
  });

  test('to a taken value changes nothing', async () => {
    const scene = uniqueScene(bench);
    await scene.truth.create(scene.user('ada', 'a@x.com'));
    await scene.truth.create(scene.user('bob', 'b@x.com'));

    const answer = await scene.unique().change(scene.key('bob'), 'A@x.com');

    expect(answer).toEqual({ kind: 'taken', owner: scene.key('ada') });
    expect(await scene.sentinels()).toEqual({ 'a@x.com': 'ada', 'b@x.com': 'bob' });
    expect(await scene.emails()).toEqual({ ada: 'a@x.com', bob: 'b@x.com' });
  });

  test('to another spelling of the same value updates the item alone', async () => {
    const scene = uniqueScene(bench);
    await scene.truth.create(scene.user('ada', 'a@x.com'));

    const answer = await scene.unique().change(scene.key('ada'), 'A@X.com');

    expect(answer).toEqual({ kind: 'written' });
    expect(await scene.emails()).toEqual({ ada: 'A@X.com' });
    expect(await scene.sentinels()).toEqual({ 'a@x.com': 'ada' });
    expect(bench.transport.seen.find(({ operation }) => operation === WRITE)?.body['TransactItems']).toHaveLength(1);
  });

  test('to the value that is there already is written, as often as it is asked for', async () => {
    const scene = uniqueScene(bench);
    await scene.truth.create(scene.user('ada', 'a@x.com'));
    const unique = scene.unique();

    expect(await unique.change(scene.key('ada'), 'a@x.com')).toEqual({ kind: 'written' });
    expect(await unique.change(scene.key('ada'), 'a@x.com')).toEqual({ kind: 'written' });
    expect(await scene.sentinels()).toEqual({ 'a@x.com': 'ada' });
  });

  test.each([
    ['no value', undefined],
    ['null', null],
    ['a number', 5],
    ['an empty text', ''],
    ['a text that its rule refuses', 'a\u0000b'],
  ])('from %s claims the new value', async (_what, before) => {
    const scene = uniqueScene(bench);
    await scene.put(scene.user('ada', before));

    const answer = await scene.unique().change(scene.key('ada'), 'a@x.com');

    expect(answer).toEqual({ kind: 'written' });
    expect(await scene.emails()).toEqual({ ada: 'a@x.com' });
    expect(await scene.sentinels()).toEqual({ 'a@x.com': 'ada' });
  });

  test('of an item that is not there makes none', async () => {
    const scene = uniqueScene(bench);

    const answer = await scene.unique().change(scene.key('ada'), 'a@x.com');

    expect(answer).toEqual({ kind: 'conflict', current: undefined });
    expect([await scene.emails(), await scene.sentinels()]).toEqual([{}, {}]);
  });

  test.each([undefined, 5])('of an item without a text (%j) that goes meanwhile makes none', async (before) => {
    const scene = uniqueScene(bench);
    await scene.put(scene.user('ada', before));
    const held = bench.transport.fault(WRITE, { kind: 'hold' });

    const answer = scene.unique().change(scene.key('ada'), 'a@x.com');
    await held.hit;
    await scene.delete(scene.key('ada'));
    await held.release();

    expect(await answer).toEqual({ kind: 'conflict', current: undefined });
    expect([await scene.emails(), await scene.sentinels()]).toEqual([{}, {}]);
  });

  test('under a false condition of the caller changes nothing and brings the item', async () => {
    const scene = uniqueScene(bench);
    await scene.truth.create({ ...scene.user('ada', 'a@x.com'), status: 'closed' });

    const answer = await scene.unique().change(scene.key('ada'), 'b@x.com', { condition: equals('status', 'open') });

    expect(answer).toMatchObject({ kind: 'conflict', current: { email: 'a@x.com', status: 'closed' } });
    expect(await scene.sentinels()).toEqual({ 'a@x.com': 'ada' });
  });

  test('under a true condition of the caller is written', async () => {
    const scene = uniqueScene(bench);
    await scene.truth.create({ ...scene.user('ada', 'a@x.com'), status: 'open' });

    const answer = await scene.unique().change(scene.key('ada'), 'b@x.com', { condition: equals('status', 'open') });

    expect(answer).toEqual({ kind: 'written' });
  });
});

describe('remove', () => {
  test('deletes the item and frees its value', async () => {
    const scene = uniqueScene(bench);
    await scene.truth.create(scene.user('ada', 'A@x.com'));

    expect(await scene.unique().remove(scene.key('ada'))).toEqual({ kind: 'written' });
    expect([await scene.emails(), await scene.sentinels()]).toEqual([{}, {}]);
    expect(await scene.unique().remove(scene.key('ada'))).toEqual({ kind: 'conflict', current: undefined });
  });

  test('of an item that was changed meanwhile removes nothing', async () => {
    const scene = uniqueScene(bench);
    await scene.truth.create(scene.user('ada', 'a@x.com'));
    const held = bench.transport.fault(WRITE, { kind: 'hold' });

    const answer = scene.unique().remove(scene.key('ada'));
    await held.hit;
    await scene.truth.change(scene.key('ada'), 'b@x.com');
    await held.release();

    expect(await answer).toEqual({ kind: 'conflict', current: scene.user('ada', 'b@x.com') });
    expect(await scene.sentinels()).toEqual({ 'b@x.com': 'ada' });
  });
});

describe('an item from before the constraint', () => {
  test('without a sentinel is changed and removed like others', async () => {
    const scene = uniqueScene(bench);
    await scene.put(scene.user('ada', 'a@x.com'));
    await scene.put(scene.user('bob', 'b@x.com'));

    expect(await scene.unique().change(scene.key('ada'), 'c@x.com')).toEqual({ kind: 'written' });
    expect(await scene.unique().remove(scene.key('bob'))).toEqual({ kind: 'written' });
    expect(await scene.emails()).toEqual({ ada: 'c@x.com' });
    expect(await scene.sentinels()).toEqual({ 'c@x.com': 'ada' });
  });

  test('with the same value as another frees nothing of the other', async () => {
    const scene = uniqueScene(bench);
    await scene.truth.create(scene.user('ada', 'a@x.com'));
    await scene.put(scene.user('bob', 'a@x.com'));
    await scene.put(scene.user('cy', 'A@x.com'));

    expect(await scene.unique().change(scene.key('bob'), 'b@x.com')).toEqual({ kind: 'written' });
    expect(await scene.unique().remove(scene.key('cy'))).toEqual({ kind: 'written' });
    expect(await scene.sentinels()).toEqual({ 'a@x.com': 'ada', 'b@x.com': 'bob' });
  });

  test('gets its sentinel by a claim with a check on the value it has', async () => {
    const scene = uniqueScene(bench);
    await scene.put(scene.user('ada', 'A@x.com'));
    const { truth } = scene;
    const check = {
      kind: 'check',
      label: 'user',
      key: scene.key('ada'),
      condition: equals('email', 'A@x.com'),
    } as const;

    await bench.store().transactions.write([check, truth.claimAction('A@x.com', scene.key('ada'))]);

    expect(await scene.sentinels()).toEqual({ 'a@x.com': 'ada' });
  });
});

describe('owner', () => {
  test('finds whose a value is, in one consistent read, however it is written', async () => {
    const scene = uniqueScene(bench);
    await scene.truth.create(scene.user('ada', 'a@x.com'));

    expect(await scene.unique().owner(' A@X.com')).toEqual(scene.key('ada'));
    expect(await scene.unique().owner('b@x.com')).toBeUndefined();
    expect(bench.transport.seen).toMatchObject([
      { operation: 'GetItem', body: { ConsistentRead: true } },
      { operation: 'GetItem', body: { ConsistentRead: true } },
    ]);
  });

  test.each([
    ['no owner', {}],
    ['a text', { ref: 'USER#ada' }],
    ['half a key', { ref: { PK: 'USER#ada' } }],
    ['an empty key', { ref: { PK: '', SK: 'PROFILE' } }],
  ])('and claims name the sentinel itself where it names %s', async (_what, attributes) => {
    const scene = uniqueScene(bench);
    const key = { PK: `UNIQUE#${scene.constraint.scope}#a@x.com`, SK: 'UNIQUE' };
    await scene.put({ ...key, ...attributes });

    expect(await scene.unique().owner('a@x.com')).toEqual(key);
    expect(await scene.unique().create(scene.user('ada', 'a@x.com'))).toEqual({ kind: 'taken', owner: key });
  });
});

describe("the actions for transactions of one's own", () => {
  test('claim and free beside other writes, and are refused by name and role', async () => {
    // Arrange
    const scene = uniqueScene(bench);
    const { transactions } = bench.store();
    const unique = scene.unique();
    await scene.truth.create(scene.user('ada', 'a@x.com'));
    const swap = (owner: string, from: string, to: string) =>
      transactions.write([
        unique.freeAction(from, scene.key(owner)),
        unique.claimAction(to, scene.key(owner)),
        {
          kind: 'update',
          label: 'user',
          key: scene.key(owner),
          change: { set: { email: to } },
          condition: equals('email', from),
        },
      ]);

    // Act
    await swap('ada', 'a@x.com', 'b@x.com');
    const refusal = await failureOf(
      transactions.write([
        { kind: 'put', label: 'user', item: scene.user('bob', 'b@x.com'), condition: attributeAbsent('PK') },
        unique.claimAction('B@x.com', scene.key('bob')),
      ]),
    );
    const foreign = await failureOf(transactions.write([unique.freeAction('b@x.com', scene.key('bob'))]));

    // Assert
    expect(await scene.sentinels()).toEqual({ 'b@x.com': 'ada' });
    expect(refusal).toMatchObject({ isUniqueViolation: true, decisive: { item: { ref: scene.key('ada') } } });
    expect(foreign).toBeInstanceOf(TransactionCancelledError);
  });

  async function failureOf(write: Promise<void>): Promise<unknown> {
    return write.catch((error: unknown) => error);
  }
});

describe('a rule of the caller', () => {
  test('decides what is equal', async () => {
    const scene = uniqueScene(bench, (value) => value.slice(0, 1));
    await scene.truth.create(scene.user('ada', 'xy'));

    expect(await scene.unique().create(scene.user('bob', 'xz'))).toMatchObject({ kind: 'taken' });
    expect(await scene.unique().create(scene.user('bob', 'yz'))).toEqual({ kind: 'written' });
  });

  test.each([
    ['nothing', ''],
    ['half a surrogate pair', '\ud83d'],
    ['no text', 5 as unknown as string],
  ])('that makes %s of a value is refused before anything is sent', async (_what, result) => {
    const scene = uniqueScene(bench, () => result);

    await expect(scene.unique().create(scene.user('ada', 'a'))).rejects.toBeInstanceOf(ConfigurationError);
    expect(bench.transport.seen).toEqual([]);
  });
});

describe('odd values', () => {
  test.each(['a#b', '#', 'UNIQUE#email#a', '..', 'size', '日本語', '👩‍👩‍👧', '__proto__', `${'€'.repeat(600)}`])(
    'like %j are claimed, found, changed and freed',
    async (value) => {
      const scene = uniqueScene(bench);
      const unique = scene.unique();

      expect(await unique.create(scene.user('ada#1', value))).toEqual({ kind: 'written' });
      expect(await unique.owner(value)).toEqual(scene.key('ada#1'));
      expect(await unique.create(scene.user('bob', value))).toMatchObject({ kind: 'taken' });
      expect(await unique.change(scene.key('ada#1'), `${value}2`)).toEqual({ kind: 'written' });
      expect(await unique.remove(scene.key('ada#1'))).toEqual({ kind: 'written' });
      expect(await scene.sentinels()).toEqual({});
    },
  );

  test('of one scope never meet those of another', async () => {
    const scene = uniqueScene(bench);
    const other = uniqueScene(bench);
    await scene.truth.create(scene.user('ada', 'a@x.com'));

    expect(await other.unique().create(other.user('ada', 'a@x.com'))).toEqual({ kind: 'written' });
  });

  test.each([
    ['empty', ''],
    ['too long for a key', '€'.repeat(700)],
    ['a control character', 'a\u0007'],
    ['a number', 5],
    ['null', null],
  ])('that are %s are refused before anything is sent', async (_what, value) => {
    const scene = uniqueScene(bench);
    const unique = scene.unique();

    await expect(unique.create(scene.user('ada', value))).rejects.toBeInstanceOf(ConfigurationError);
    await expect(unique.change(scene.key('ada'), value as string)).rejects.toBeInstanceOf(ConfigurationError);
    await expect(unique.owner(value as string)).rejects.toBeInstanceOf(ConfigurationError);
    expect(() => unique.claimAction(value as string, scene.key('ada'))).toThrow(ConfigurationError);
    expect(bench.transport.seen).toEqual([]);
  });

  test('fit a key to the last byte', async () => {
    const scene = uniqueScene(bench);
    const room = 2_048 - `UNIQUE#${scene.constraint.scope}#`.length;

    expect(await scene.unique().create(scene.user('ada', 'a'.repeat(room)))).toEqual({ kind: 'written' });
    await expect(scene.unique().create(scene.user('bob', 'a'.repeat(room + 1)))).rejects.toBeInstanceOf(
      ConfigurationError,
    );
  });
});

test('a constraint that is wrong is refused with all its faults', () => {
  const wrong = [
    { scope: 'a#b', attribute: 'contact.email' },
    { scope: '', attribute: '' },
    { scope: '\ud83d', attribute: 'PK' },
  ];

  for (const constraint of wrong) {
    const create = () => bench.store().unique(constraint);
    expect(create).toThrow(ConfigurationError);
    expect(create).toThrow(/scope: [^]*attribute: /);
  }
});

test('a reserved word may be the attribute', async () => {
  const unique = bench.store().unique({ scope: bench.unique('word'), attribute: 'value' });
  const key = { PK: bench.unique('ITEM'), SK: 'META' };

  expect(await unique.create({ ...key, value: 'a' })).toEqual({ kind: 'written' });
  expect(await unique.change(key, 'b')).toEqual({ kind: 'written' });
  expect(await unique.change(key, 'c', { condition: present() })).toEqual({ kind: 'written' });
  expect(await unique.remove({ ...key, extra: 'more than the key' } as typeof key)).toEqual({ kind: 'written' });
});

test('pattern 26: a sentinel per address keeps two users from one address, also through a change', async () => {
  // Arrange
  const scene = uniqueScene(bench, normaliseEmail);
  const emails = scene.unique();
  const { user, key } = scene;

  // Act
  const answers = [
    await emails.create(user('alice', 'a@x.com')),
    await emails.create(user('bob', 'A@x.com')),
    await emails.create(user('bob', 'b@x.com')),
    await emails.change(key('bob'), 'a@x.com'),
    await emails.change(key('bob'), 'bob@x.com'),
  ];

  // Assert
  const taken = { kind: 'taken', owner: key('alice') };
  expect(answers).toEqual([{ kind: 'written' }, taken, { kind: 'written' }, taken, { kind: 'written' }]);
  expect(await emails.owner('bob@x.com')).toEqual(key('bob'));
  expect(await scene.emails()).toEqual({ alice: 'a@x.com', bob: 'bob@x.com' });
  expect(await scene.sentinels()).toEqual({ 'a@x.com': 'alice', 'bob@x.com': 'bob' });
});

describe.each(['constructor', 'toString', 'hasOwnProperty', 'valueOf'])('an attribute called %s', (attribute) => {
  test("is the item's own, not what every object inherits", async () => {
    // Arrange
    const scope = bench.unique('inherited');
    const unique = bench.store().unique({ scope, attribute });
    const without = { PK: bench.unique('USER'), SK: 'PROFILE' };
    const named = { PK: bench.unique('USER'), SK: 'PROFILE', [attribute]: 'Ada' };

    // Act
    const answers = [
      await unique.create(without),
      await unique.create(named),
      await unique.change(without, 'ada'),
      await unique.change(without, 'Bob'),
      await unique.remove(named),
      await unique.change(without, 'ada'),
    ];

    // Assert
    expect(answers.map(({ kind }) => kind)).toEqual(['written', 'written', 'taken', 'written', 'written', 'written']);
    expect(await unique.owner('ADA')).toEqual(without);
    expect(await bench.truth.items.get(without)).toEqual({ ...without, [attribute]: 'ada' });
    for await (const orphan of bench.store().uniqueOrphans()) expect(orphan.scope).not.toBe(scope);
  });
});

test('an attribute called __proto__ is refused: it could not be read back', () => {
  expect(() => bench.store().unique({ scope: 'a', attribute: '__proto__' })).toThrow(/attribute outside the key/);
});
