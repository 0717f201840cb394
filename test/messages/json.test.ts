import fc from 'fast-check';
import { expect, test } from 'vitest';
import { z } from 'zod';
import { seededRandom } from '../../src/clock.ts';
import type { MessageContract } from '../../src/messages/contract.ts';
import { decodeMessage } from '../../src/messages/envelope.ts';
import { canonicalJson, parseJson, type Json } from '../../src/messages/json.ts';

const ANYTHING: MessageContract<unknown> = { type: 'any.thing', version: 1, schema: z.unknown(), keyOf: () => 'key' };

const name = fc.string({ unit: 'grapheme', maxLength: 8 }).filter((text) => text !== '__proto__');

/** Any JSON value that `parseJson` takes. */
const json: fc.Arbitrary<Json> = fc.letrec<{ value: Json }>((tie) => ({
  value: fc.oneof(
    { depthSize: 'small', withCrossShrink: true },
    fc.constant(null),
    fc.boolean(),
    fc.integer(),
    fc.double({ noNaN: true, noDefaultInfinity: true }),
    fc.string({ unit: 'grapheme' }),
    fc.array(tie('value'), { maxLength: 4 }),
    fc.dictionary(name, tie('value'), { maxKeys: 6 }),
  ),
})).value;

/** Writes a value with the fields of each object in an order of its own, and now and then a blank between. */
function written(value: Json, random: () => number): string {
  if (typeof value !== 'object' || value === null) return JSON.stringify(value);
  const blank = random() < 0.3 ? '\n ' : '';
  if (Array.isArray(value)) {
    return `[${blank}${(value as readonly Json[]).map((item) => written(item, random)).join(',')}]`;
  }
  const fields = Object.entries(value)
    .map(([field, child]) => ({ text: `${JSON.stringify(field)}:${blank}${written(child, random)}`, rank: random() }))
    .sort((left, right) => left.rank - right.rank);
  return `{${blank}${fields.map(({ text }) => text).join(',')}}`;
}

function hashOf(payloadText: string): string {
  const decoded = decodeMessage(`{"type":"any.thing","version":1,"key":"key","payload":${payloadText}}`, [ANYTHING]);
  return decoded.kind === 'valid' ? decoded.message.payloadHash : `refused: ${decoded.reason}`;
}

/** Changes one leaf, or one empty list or object, somewhere in the value. */
function withOtherLeaf(value: Json, random: () => number): Json {
  if (typeof value === 'string') return `${value}.`;
  if (typeof value === 'boolean') return !value;
  if (value === null || typeof value === 'number') return value === null ? 0 : null;
  const entries = Object.entries<Json>(value);
  const [field, child] = entries[Math.floor(random() * entries.length)] ?? [];
  if (field === undefined || child === undefined) return 'no longer empty';
  const changed = entries.map(([at, item]) => [at, at === field ? withOtherLeaf(child, random) : item] as const);
  return Array.isArray(value) ? changed.map(([, item]) => item) : Object.fromEntries(changed);
}

test('gives one hash to a payload, however its fields are ordered and its text is laid out', () => {
  fc.assert(
    fc.property(json, fc.nat(), (value, seed) => {
      const hash = hashOf(JSON.stringify(value));

      expect(hash).toMatch(/^[0-9a-f]{64}$/);
      expect(hashOf(written(value, seededRandom(seed)))).toBe(hash);
    }),
  );
});

test('gives another hash when one leaf of the payload changes', () => {
  fc.assert(
    fc.property(json, fc.nat(), (value, seed) => {
      const other = withOtherLeaf(value, seededRandom(seed));

      expect(hashOf(JSON.stringify(other))).not.toBe(hashOf(JSON.stringify(value)));
    }),
  );
});

test('writes canonical JSON that parses to the same value', () => {
  fc.assert(
    fc.property(json, (value) => {
      const parsed = parseJson(canonicalJson(value));

      expect(parsed).toEqual({ kind: 'parsed', value: JSON.parse(JSON.stringify(value)) as Json });
    }),
  );
});

test('keeps lists in their order: another order is another message', () => {
  expect(hashOf('[1,2]')).not.toBe(hashOf('[2,1]'));
});

test('takes 1.0, 1 and 1e0 for the same number, and "1" for another value', () => {
  expect(hashOf('1.0')).toBe(hashOf('1'));
  expect(hashOf('1e0')).toBe(hashOf('1'));
  expect(hashOf('"1"')).not.toBe(hashOf('1'));
});

test('never throws at any text', () => {
  fc.assert(
    fc.property(fc.oneof(fc.string({ unit: 'binary' }), fc.json()), (text) => {
      expect(['parsed', 'refused']).toContain(parseJson(text).kind);
    }),
  );
});

test('leaves the prototype of objects alone when a text tries to set it', () => {
  const parsed = parseJson('{"__proto__":{"admin":true}}');

  expect(parsed).toEqual({ kind: 'refused', reason: 'a field is named __proto__' });
  expect(({} as Record<string, unknown>)['admin']).toBeUndefined();
});
