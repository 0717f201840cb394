import { expect, test } from 'vitest';
import { z } from 'zod';
import { InvalidMessageError } from '../../src/errors.ts';
import { CHARGE_REQUESTED } from '../../src/messages/charge.ts';
import type { MessageContract } from '../../src/messages/contract.ts';
import { decodeMessage, encodeMessage, type DecodedMessage } from '../../src/messages/envelope.ts';
import { MAX_MESSAGE_BYTES } from '../../src/messages/limits.ts';
import { charge } from './charges.ts';

/** A contract that takes any payload, so that only the envelope's own rules are at work. */
const ANYTHING: MessageContract<unknown> = { type: 'any.thing', version: 1, schema: z.unknown(), keyOf: () => 'key' };

const KEYED: MessageContract<{ id: string }> = {
  type: 'keyed.thing',
  version: 1,
  schema: z.strictObject({ id: z.string() }),
  keyOf: ({ id }) => id,
};

function envelope(fields: Record<string, unknown> = {}): string {
  return JSON.stringify({ type: 'any.thing', version: 1, key: 'key', payload: {}, ...fields });
}

function decode(body: string): DecodedMessage {
  return decodeMessage(body, [ANYTHING, KEYED, CHARGE_REQUESTED]);
}

function bodyOfSize(bytes: number): string {
  const empty = Buffer.byteLength(envelope({ payload: '' }));
  return envelope({ payload: 'x'.repeat(bytes - empty) });
}

function bodyWithText(text: string): string {
  return `{"type":"any.thing","version":1,"key":"key","payload":${text}}`;
}

test('decodes what it encoded, with the business key and the same hash', () => {
  const sent = encodeMessage(CHARGE_REQUESTED, charge());

  const received = decode(sent.body);

  expect(received).toEqual({
    kind: 'valid',
    message: {
      type: 'charge.requested',
      version: 1,
      key: 'req_1',
      payload: charge(),
      payloadHash: sent.payloadHash,
    },
  });
  expect(sent.bodyBytes).toBe(Buffer.byteLength(sent.body));
});

test.each<[what: string, body: string, code: string]>([
  ['a body that is empty', '', 'NOT_JSON'],
  ['a body that is cut off', '{"type":"any.thing"', 'NOT_JSON'],
  ['a list in the place of the envelope', '[]', 'ENVELOPE'],
  ['an envelope that is null', 'null', 'ENVELOPE'],
  ['an envelope without a key', envelope({ key: undefined }), 'ENVELOPE'],
  ['an envelope without a payload', envelope({ payload: undefined }), 'ENVELOPE'],
  ['an envelope with a field that no version knows', envelope({ extra: 1 }), 'ENVELOPE'],
  ['an empty key', envelope({ key: '' }), 'ENVELOPE'],
  ['a key that is a number', envelope({ key: 7 }), 'ENVELOPE'],
  ['a key of 2,000 characters', envelope({ key: 'k'.repeat(2_000) }), 'ENVELOPE'],
  ['a key of 256 characters with 3 bytes each', envelope({ key: '鍵'.repeat(256) }), 'ENVELOPE'],
  ['a key with a line end', envelope({ key: 'a\nb' }), 'ENVELOPE'],
  ['a version that is not whole', envelope({ version: 1.5 }), 'ENVELOPE'],
  ['version 0', envelope({ version: 0 }), 'ENVELOPE'],
  ['a type that nobody knows', envelope({ type: 'nobody.knows' }), 'UNKNOWN_TYPE'],
  ['a version that nobody knows', envelope({ version: 2 }), 'UNKNOWN_VERSION'],
  ['a payload against its schema', envelope({ type: 'keyed.thing', payload: { id: 1 } }), 'SCHEMA'],
  ['a key that is not that of the payload', envelope({ type: 'keyed.thing', payload: { id: 'x' } }), 'KEY_MISMATCH'],
  ['a number that only fits as Infinity', bodyWithText('1e400'), 'NOT_JSON'],
  ['a field named __proto__', bodyWithText('{"a":{"__proto__":{"admin":true}}}'), 'NOT_JSON'],
  ['half of a surrogate pair in a text', bodyWithText('"\\ud83d"'), 'NOT_JSON'],
  ['half of a surrogate pair in a field name', bodyWithText('{"\\ude00":1}'), 'NOT_JSON'],
])('refuses %s', (_what, body, code) => {
  const decoded = decode(body);

  expect(decoded).toMatchObject({ kind: 'invalid', code });
  expect(decoded.kind === 'invalid' && decoded.reason).toMatch(/./);
});

test('refuses a body that is nested 500,000 levels deep without overflowing the stack', () => {
  const deep = '['.repeat(500_000) + ']'.repeat(500_000);

  expect(decode(bodyWithText(deep))).toMatchObject({ kind: 'invalid', code: 'NOT_JSON' });
});

test('takes 32 levels of nesting, counted with the envelope, and refuses 33', () => {
  const lists = (levels: number): string => '['.repeat(levels) + ']'.repeat(levels);

  expect(decode(bodyWithText(lists(31)))).toMatchObject({ kind: 'valid' });
  expect(decode(bodyWithText(lists(32)))).toMatchObject({ kind: 'invalid', code: 'NOT_JSON' });
});

test('takes a body of exactly 1 MiB and refuses one byte more', () => {
  expect(decode(bodyOfSize(MAX_MESSAGE_BYTES))).toMatchObject({ kind: 'valid' });
  expect(decode(bodyOfSize(MAX_MESSAGE_BYTES + 1))).toMatchObject({ kind: 'invalid', code: 'TOO_LARGE' });
});

test('encodes a body of exactly 1 MiB and throws at one byte more', () => {
  const room = MAX_MESSAGE_BYTES - Buffer.byteLength(envelope({ payload: '' }));

  const encoded = encodeMessage(ANYTHING, 'x'.repeat(room));

  expect(encoded.bodyBytes).toBe(MAX_MESSAGE_BYTES);
  expect(() => encodeMessage(ANYTHING, 'x'.repeat(room + 1))).toThrow(InvalidMessageError);
});

test('counts a body in the bytes it really sends: 12 for an emoji, 2 for an umlaut', () => {
  const plain = encodeMessage(ANYTHING, '').bodyBytes;

  expect(encodeMessage(ANYTHING, '😀').bodyBytes - plain).toBe(12);
  expect(encodeMessage(ANYTHING, 'ü').bodyBytes - plain).toBe(2);
});

test('sends an emoji as escapes that decode to the same emoji', () => {
  const { body } = encodeMessage(CHARGE_REQUESTED, charge({ description: 'Pizza 🍕 für zwei' }));

  expect(body).not.toMatch(/[\ud800-\udfff]/);
  expect(decode(body)).toMatchObject({ message: { payload: { description: 'Pizza 🍕 für zwei' } } });
});

test('throws for a payload against its contract and names the field', () => {
  expect(() => encodeMessage(CHARGE_REQUESTED, charge({ amountMinor: 0.5 }))).toThrow(/payload\.amountMinor/);
});

test('throws for a business key that no message may have', () => {
  expect(() => encodeMessage(KEYED, { id: '' })).toThrow(/key: must not be empty/);
  expect(() => encodeMessage(KEYED, { id: 'k'.repeat(513) })).toThrow(/key: must not be over 512 bytes/);
});

test('does not quote a body that is not JSON, since it may hold a secret', () => {
  const decoded = decode('{"password":"hunter2"');

  expect(JSON.stringify(decoded)).not.toContain('hunter2');
});

test('gives reasons that SQS takes as an attribute, whatever names they quote', () => {
  const names = Array.from({ length: 4 }, (_, shift) => 'x'.repeat(430 + shift) + '😀'.repeat(60));
  const bodies = [
    ...names.map((name) => envelope({ [name]: 1 })),
    envelope({ type: 'nobody\u0000\u0007.knows' }),
    envelope({ ['bad\u0001name']: 1 }),
  ];

  const reasons = bodies.map((body) => {
    const decoded = decode(body);
    return decoded.kind === 'invalid' ? decoded.reason : 'valid';
  });

  for (const reason of reasons) {
    expect(reason).toMatch(/^[\u0020-\ud7ff\ue000-\ufffd\u{10000}-\u{10ffff}]+$/u);
    expect(reason.length).toBeLessThanOrEqual(500);
    expect(reason).not.toBe('valid');
  }
});

test('tells messages apart whose payload is equal but whose version is not', () => {
  const second: MessageContract<unknown> = { ...ANYTHING, version: 2 };

  expect(encodeMessage(ANYTHING, 1).payloadHash).not.toBe(encodeMessage(second, 1).payloadHash);
});
