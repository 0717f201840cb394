import { type } from 'arktype';
import fc from 'fast-check';
import * as v from 'valibot';
import { expect, test } from 'vitest';
import { z } from 'zod';
import { ConfigurationError, InvalidMessageError } from '../../src/errors.ts';
import { defineMessage, type MessageContract, type Upcaster } from '../../src/messages/contract.ts';
import { decodeMessage, encodeMessage, type DecodedMessage } from '../../src/messages/envelope.ts';
import type { StandardSchema } from '../../src/messages/schema.ts';

interface Order {
  readonly orderId: string;
  readonly quantity: number;
}

const LIBRARIES: readonly (readonly [string, StandardSchema<Order>])[] = [
  ['zod', z.strictObject({ orderId: z.string(), quantity: z.int().min(1) })],
  ['valibot', v.strictObject({ orderId: v.string(), quantity: v.pipe(v.number(), v.integer(), v.minValue(1)) })],
  ['arktype', type({ orderId: 'string', quantity: 'number.integer >= 1', '+': 'reject' })],
];

const keyOf = (order: Order): string => order.orderId;

function envelope(version: number, payload: unknown, key = 'o1'): string {
  return JSON.stringify({ type: 'order.placed', version, key, payload });
}

function codeOf(decoded: DecodedMessage): string {
  return decoded.kind === 'invalid' ? decoded.code : decoded.kind;
}

function faultsOf(define: () => unknown): readonly string[] {
  try {
    define();
    return [];
  } catch (error) {
    if (!(error instanceof ConfigurationError)) throw error;
    return error.faults.map(({ name }) => name);
  }
}

test.each(LIBRARIES)('takes a schema made with %s, and tells which field it refused', (_library, schema) => {
  const contract = defineMessage({ type: 'order.placed', version: 1, schema, keyOf });

  const sent = encodeMessage(contract, { orderId: 'o1', quantity: 2 });
  const refused = decodeMessage(envelope(1, { orderId: 'o1', quantity: 0 }), [contract]);

  expect(decodeMessage(sent.body, [contract])).toMatchObject({
    kind: 'valid',
    message: { key: 'o1', payload: { orderId: 'o1', quantity: 2 } },
  });
  expect(refused).toMatchObject({
    kind: 'invalid',
    code: 'SCHEMA',
    reason: containing('payload.quantity'),
  });
  expect(() => encodeMessage(contract, { orderId: 'o1', quantity: 0.5 })).toThrow(InvalidMessageError);
});

test('gives a message the same hash whatever library checks it', () => {
  const hashes = LIBRARIES.map(
    ([, schema]) =>
      encodeMessage(defineMessage({ type: 'order.placed', version: 1, schema, keyOf }), { orderId: 'o1', quantity: 2 })
        .payloadHash,
  );

  expect(new Set(hashes).size).toBe(1);
});

const NEWEST = z.strictObject({ orderId: z.string(), quantity: z.int(), currency: z.string() });
const UPCASTERS: readonly Upcaster[] = [
  { fromVersion: 2, up: (payload) => ({ ...(payload as object), currency: 'EUR' }) },
  { fromVersion: 1, up: (payload) => ({ orderId: (payload as { id: string }).id, quantity: 1 }) },
];
const UPCAST = defineMessage({
  type: 'order.placed',
  version: 3,
  schema: NEWEST,
  keyOf: ({ orderId }) => orderId,
  upcasters: UPCASTERS,
});

test('brings a message of an older version up, step by step, and hands it on as the newest one', () => {
  const first = decodeMessage(envelope(1, { id: 'o1' }), [UPCAST]);
  const second = decodeMessage(envelope(2, { orderId: 'o1', quantity: 7 }), [UPCAST]);

  expect(first).toMatchObject({
    kind: 'valid',
    message: { version: 3, payload: { orderId: 'o1', quantity: 1, currency: 'EUR' } },
  });
  expect(second).toMatchObject({ kind: 'valid', message: { version: 3, payload: { quantity: 7 } } });
});

test('keeps the hash that an old message had before its upcaster was written, so that its record still fits', () => {
  const old: MessageContract<{ id: string }> = defineMessage({
    type: 'order.placed',
    version: 1,
    schema: z.strictObject({ id: z.string() }),
    keyOf: ({ id }) => id,
  });
  const body = envelope(1, { id: 'o1' });
  const hashOf = (decoded: DecodedMessage): string =>
    decoded.kind === 'valid' ? decoded.message.payloadHash : decoded.reason;

  expect(hashOf(decodeMessage(body, [UPCAST]))).toBe(hashOf(decodeMessage(body, [old])));
});

test('refuses a version above the newest and one below the oldest, and names those it reads', () => {
  const twoUp = defineMessage({ ...UPCAST, upcasters: UPCASTERS.filter(({ fromVersion }) => fromVersion === 2) });

  expect(codeOf(decodeMessage(envelope(4, {}), [UPCAST]))).toBe('UNKNOWN_VERSION');
  expect(decodeMessage(envelope(1, { id: 'o1' }), [twoUp])).toMatchObject({
    code: 'UNKNOWN_VERSION',
    reason: containing('only 2, 3'),
  });
});

test('checks what an upcaster made against the newest schema', () => {
  const bad = defineMessage({ ...UPCAST, upcasters: [{ fromVersion: 2, up: () => ({ orderId: 'o1' }) }] });

  expect(codeOf(decodeMessage(envelope(2, { orderId: 'o1', quantity: 1 }), [bad]))).toBe('SCHEMA');
});

test.each<[what: string, contract: MessageContract<Order>]>([
  ['a keyOf', { ...base(), keyOf: () => throwing() }],
  ['an upcaster', { ...base(), version: 2, upcasters: [{ fromVersion: 1, up: () => throwing() }] }],
  ['a schema', { ...base(), schema: { '~standard': { version: 1, vendor: 'own', validate: () => throwing() } } }],
])('makes a message invalid on which %s of the contract throws: trying again would not help', (_what, contract) => {
  const decoded = decodeMessage(envelope(1, { orderId: 'o1', quantity: 1 }), [contract]);

  expect(decoded).toMatchObject({
    kind: 'invalid',
    code: 'CONTRACT_FAILED',
    reason: containing('thrown by the contract'),
  });
});

test('tells a sender that its keyOf threw', () => {
  const contract = { ...base(), keyOf: () => throwing() };

  expect(() => encodeMessage(contract, { orderId: 'o1', quantity: 1 })).toThrow(InvalidMessageError);
});

test('refuses a schema that validates asynchronously, for the sender and for the receiver', () => {
  const schema = z.object({ orderId: z.string(), quantity: z.number() }).refine(() => Promise.resolve(true));
  const contract = defineMessage({ type: 'order.placed', version: 1, schema: asPromise(schema), keyOf });

  expect(() => encodeMessage(contract, { orderId: 'o1', quantity: 1 })).toThrow(ConfigurationError);
  expect(() => decodeMessage(envelope(1, { orderId: 'o1', quantity: 1 }), [contract])).toThrow(ConfigurationError);
});

test('an upcaster or schema that changes what it is given does not change the hash', () => {
  const up = (payload: unknown): unknown => Object.assign(payload as object, { quantity: 99 });
  const meddling = defineMessage({ ...base(), version: 2, upcasters: [{ fromVersion: 1, up }] });
  const body = envelope(1, { orderId: 'o1', quantity: 1 });

  const [first, again] = [decodeMessage(body, [meddling]), decodeMessage(body, [{ ...base(), version: 1 }])];

  expect(first.kind === 'valid' && again.kind === 'valid' && first.message.payloadHash).toBe(
    again.kind === 'valid' ? again.message.payloadHash : '',
  );
});

test('lists every wrong option of a definition at once', () => {
  // What plain JavaScript can pass.
  const wrong = {
    type: 'no blanks',
    version: 0,
    schema: {},
    keyOf: 'id',
    upcasters: [],
  } as unknown as MessageContract<Order>;

  expect(faultsOf(() => defineMessage(wrong))).toEqual(['type', 'version', 'schema', 'keyOf']);
});

test('takes upcasters only as a chain without a gap up to the version below the newest', () => {
  const chains = fc.record({
    version: fc.integer({ min: 1, max: 6 }),
    from: fc.array(fc.integer({ min: 0, max: 7 }), { maxLength: 6 }),
  });

  fc.assert(
    fc.property(chains, ({ version, from }) => {
      const upcasters = from.map((fromVersion) => ({ fromVersion, up: (payload: unknown) => payload }));
      const expected = Array.from({ length: from.length }, (_, index) => version - from.length + index);
      const isChain =
        from.length === 0 ||
        (from.toSorted((left, right) => left - right).join() === expected.join() && (expected[0] ?? 0) >= 1);

      expect(faultsOf(() => defineMessage({ ...base(), version, upcasters })).length === 0).toBe(isChain);
    }),
  );
});

function base(): MessageContract<Order> {
  return {
    type: 'order.placed',
    version: 1,
    schema: z.strictObject({ orderId: z.string(), quantity: z.int() }),
    keyOf,
  };
}

/** Vitest types its matchers as any. */
function containing(text: string): unknown {
  return expect.stringContaining(text) as unknown;
}

function throwing(): never {
  throw new Error('thrown by the contract');
}

/** Zod answers at once where it can; this one makes its waiting visible. */
function asPromise(schema: StandardSchema<Order>): StandardSchema<Order> {
  return {
    '~standard': { ...schema['~standard'], validate: async (value) => schema['~standard'].validate(value) },
  };
}
