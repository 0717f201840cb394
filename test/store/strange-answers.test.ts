/**
 * Answers that no DynamoDB gives, from whatever stands between: the write is applied, and its answer says nothing. Each
 * write of the store must then call it ambiguous: never done, never refused, never a fault that is final.
 */
import { describe, expect, test } from 'vitest';
import { BackendError } from '../../src/errors.ts';
import type { InProcessAnswer, InProcessBackend } from '../../src/store/client.ts';
import { equals } from '../../src/store/conditions.ts';
import { createMemoryBackend } from '../../src/store/memory/memory-backend.ts';
import { LockTimeoutError } from '../../src/store/locks/lock-errors.ts';
import { createStore, type Store } from '../../src/store/store.ts';
import { lockKey } from '../../src/store/table.ts';

type Answer = Omit<InProcessAnswer, 'body' | 'headers'> & { readonly body: string };

/** A store whose backend carries out every request; from `replace` on, `answer` stands in for the true answers. */
async function strangeStore() {
  const memory = createMemoryBackend();
  let replacement: ((answer: InProcessAnswer) => Answer) | undefined;
  let served = 0;
  const backend: InProcessBackend = {
    async handle(request, options) {
      const { response } = await memory.handle(request, options);
      served += 1;
      if (replacement === undefined) return { response };
      const { statusCode, body } = replacement(response);
      return { response: { statusCode, headers: {}, body: new TextEncoder().encode(body) } };
    },
  };
  const truth = createStore({ backend: memory });
  await truth.bootstrap();
  return {
    truth,
    store: createStore({ backend, random: () => 0 }),
    replace(answer: (answer: InProcessAnswer) => Answer) {
      replacement = answer;
      served = 0;
    },
    served: () => served,
  };
}

async function faultOf(work: Promise<unknown>): Promise<unknown> {
  const outcome = await work.then(
    (value) => ({ resolved: value }),
    (error: unknown) => error,
  );
  return outcome instanceof BackendError ? [outcome.reason, outcome.retryable] : outcome;
}

const KEY = { PK: 'strange', SK: 'item' };

const WRITES: [string, (store: Store) => Promise<unknown>][] = [
  ['items.create', (store) => store.items.create({ ...KEY, SK: 'new' })],
  ['items.replace', (store) => store.items.replace({ ...KEY, n: 2 }, { condition: equals('n', 1) })],
  ['items.update', (store) => store.items.update(KEY, { set: { n: 2 } })],
  ['items.remove', (store) => store.items.remove(KEY)],
  ['counters.add', (store) => store.counters.add('strange', 1)],
  [
    'transactions.write',
    (store) =>
      store.transactions.write([{ kind: 'put', label: 'put', item: { ...KEY, SK: 'new' } }], { deadlineMs: 1 }),
  ],
];

const ANSWERS: [string, Answer][] = [
  ['204 without a body', { statusCode: 204, body: '' }],
  ['200 without a body', { statusCode: 200, body: '' }],
  ['200 with blanks', { statusCode: 200, body: ' \r\n' }],
  ['202 with an object', { statusCode: 202, body: '{}' }],
  ['200 with HTML', { statusCode: 200, body: '<html></html>' }],
  ['200 with half an object', { statusCode: 200, body: '{"Attr' }],
  ['200 with null', { statusCode: 200, body: 'null' }],
  ['200 with a list', { statusCode: 200, body: '[]' }],
  ['200 with a text', { statusCode: 200, body: '"ok"' }],
  ['a redirection', { statusCode: 302, body: '' }],
  ['not modified', { statusCode: 304, body: '' }],
  ['a 4xx without a name', { statusCode: 400, body: '{}' }],
  ['a 4xx with HTML', { statusCode: 403, body: '<html></html>' }],
  ['408', { statusCode: 408, body: '' }],
  ['408 with a name', { statusCode: 408, body: '{"__type":"a#GatewayTimeout"}' }],
  ['499', { statusCode: 499, body: '' }],
  ['502 with HTML', { statusCode: 502, body: '<html></html>' }],
];

describe.each(WRITES)('%s', (_name, write) => {
  test.each(ANSWERS)('that is answered by %s may have been applied: ambiguous', async (_answer, answer) => {
    // Arrange
    const { store, truth, replace } = await strangeStore();
    await truth.items.create({ ...KEY, n: 1 });
    replace(() => answer);

    // Act & Assert
    expect(await faultOf(write(store))).toEqual(['ambiguous', true]);
  });

  test('that a service refuses by a name is not called ambiguous', async () => {
    // Arrange
    const { store, replace } = await strangeStore();
    replace(() => ({ statusCode: 400, body: '{"__type":"a#TeapotException"}' }));

    // Act & Assert
    expect(await faultOf(write(store))).toEqual(['unknown', false]);
  });
});

describe('an update whose answer is an object', () => {
  test.each([
    ['without the item', '{}'],
    ['whose item is no map', '{"Attributes":7}'],
    ['whose item is empty', '{"Attributes":{}}'],
    ['with a value of a type that is not known', '{"Attributes":{"PK":{"S":"a"},"n":{"Q":"1"}}}'],
  ])('%s says nothing: ambiguous', async (_title, body) => {
    // Arrange
    const { store, truth, replace } = await strangeStore();
    await truth.items.create({ ...KEY, n: 1 });
    replace(() => ({ statusCode: 200, body }));

    // Act & Assert
    expect(await faultOf(store.counters.add('strange', 1))).toEqual(['ambiguous', true]);
    expect(await faultOf(store.items.update(KEY, { set: { n: 2 } }))).toEqual(['ambiguous', true]);
  });
});

test('a read that is answered without a body does not say that the item is absent', async () => {
  // Arrange
  const { store, truth, replace } = await strangeStore();
  await truth.items.create({ ...KEY, n: 1 });
  replace(() => ({ statusCode: 200, body: '' }));

  // Act & Assert
  expect(await faultOf(store.get(KEY))).toEqual(['ambiguous', true]);
  expect(await faultOf(store.items.get(KEY))).toEqual(['ambiguous', true]);
});

test('a value that cannot be sent never left: it is not ambiguous', async () => {
  // Arrange
  const { store, served, replace } = await strangeStore();
  replace(() => ({ statusCode: 200, body: '' }));

  // Act
  const fault = await faultOf(store.update({ key: KEY, change: { set: { value: Symbol('no value') } } }));

  // Assert
  expect(fault).not.toEqual(['ambiguous', true]);
  expect(served()).toBe(0);
});

describe('a lease is not granted', () => {
  test.each(['{"S":"1"}', '{"N":"0"}', '{"N":"-1"}', '{"N":"1.5"}', '{"N":"9007199254740993"}', '{"NULL":true}'])(
    'with the token %s',
    async (token) => {
      // Arrange
      const { store, truth, replace } = await strangeStore();
      replace(({ body }) => {
        const text = new TextDecoder().decode(body);
        return { statusCode: 200, body: text.replaceAll(/("fencingToken":)\{[^}]*\}/g, `$1${token}`) };
      });

      // Act & Assert
      expect(await faultOf(store.leases().tryAcquire('strange', 'w1'))).toEqual(['ambiguous', true]);
      const both = store.locks().acquireAll(['strange 1', 'strange 2'], { maxWaitMs: 50 });
      // Granted in the table, so that further tries find them held: by a lease that nobody was given.
      await expect(both).rejects.toThrow(LockTimeoutError);
      expect(await truth.get(lockKey('strange 2'))).toHaveProperty('owner');
    },
  );

  test('by an answer without a body', async () => {
    // Arrange
    const { store, replace } = await strangeStore();
    replace(() => ({ statusCode: 200, body: '' }));

    // Act & Assert
    expect(await faultOf(store.leases().tryAcquire('strange', 'w1'))).toEqual(['ambiguous', true]);
  });
});

describe('on a machine whose clock is wrong', () => {
  const SKEW_MS = 3_600_000;

  /** Refuses what is signed more than 5 minutes off its own time, as AWS does. */
  function strictStore(name: string) {
    const memory = createMemoryBackend();
    const refusals: string[] = [];
    const backend: InProcessBackend = {
      async handle(request, options) {
        const serverMs = Date.now() + SKEW_MS;
        const headers = { date: new Date(serverMs).toUTCString() };
        const signed = request.headers['x-amz-date'] ?? '';
        const iso = signed.replace(/^(....)(..)(..)T(..)(..)(..)Z$/, '$1-$2-$3T$4:$5:$6Z');
        if (Math.abs(Date.parse(iso) - serverMs) <= 300_000) {
          const { response } = await memory.handle(request, options);
          return { response: { ...response, headers: { ...response.headers, ...headers } } };
        }
        refusals.push(signed);
        return { response: { statusCode: 403, headers, body: new TextEncoder().encode(`{"__type":"a#${name}"}`) } };
      },
    };
    return { backend, memory, refusals };
  }

  test.each(['InvalidSignatureException', 'RequestTimeTooSkewed', 'RequestExpired', 'SignatureDoesNotMatch'])(
    'the first request of each client, refused by %s, is repeated with the corrected time',
    async (name) => {
      // Arrange
      const { backend, memory, refusals } = strictStore(name);
      await createStore({ backend: memory }).bootstrap();
      const store = createStore({ backend, random: () => 0 });

      // Act
      const lock = await store.leases().tryAcquire('skewed', 'w1');
      const added = await store.items.create({ ...KEY });
      await store.transactions.write([{ kind: 'put', label: 'put', item: { ...KEY, SK: 'other' } }]);

      // Assert
      expect([lock.kind, added.kind]).toEqual(['acquired', 'written']);
      expect(refusals.length).toBeGreaterThan(0);
    },
  );
});
