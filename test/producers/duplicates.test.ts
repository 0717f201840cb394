import fc from 'fast-check';
import { expect, test } from 'vitest';
import { z } from 'zod';
import { ConfigurationError, InvalidMessageError } from '../../src/errors.ts';
import { CHARGE_REQUESTED } from '../../src/messages/charge.ts';
import { decodeMessage, encodeMessage, type DecodedMessage, type EncodedMessage } from '../../src/messages/envelope.ts';
import { planSends, type DuplicatePolicy, type PlannedSend } from '../../src/producers/duplicates.ts';
import { generateCharges } from '../../src/producers/generate-charges.ts';

interface Case {
  readonly messages: readonly EncodedMessage[];
  readonly policy: DuplicatePolicy;
}

const anyCase: fc.Arbitrary<Case> = fc
  .record({
    count: fc.integer({ min: 1, max: 30 }),
    seed: fc.nat(),
    duplicateRatio: fc.double({ min: 0, max: 3, noNaN: true }),
    conflicts: fc.nat(12),
    malformed: fc.nat(12),
    maxDelaySeconds: fc.integer({ min: 1, max: 900 }),
  })
  .map(({ count, ...policy }) => ({ messages: encodedCharges(count, policy.seed), policy }));

function encodedCharges(count: number, seed = 1): readonly EncodedMessage[] {
  return generateCharges({ count, seed }).map((charge) => encodeMessage(CHARGE_REQUESTED, charge));
}

function decode(body: string): DecodedMessage {
  return decodeMessage(body, [CHARGE_REQUESTED]);
}

function hashOf(body: string): string {
  const decoded = decode(body);
  return decoded.kind === 'valid' ? decoded.message.payloadHash : decoded.code;
}

function ofKind(plan: readonly PlannedSend[], kind: PlannedSend['kind']): readonly PlannedSend[] {
  return plan.filter((send) => send.kind === kind);
}

function duplicatesOf(plan: readonly PlannedSend[]): readonly PlannedSend[] {
  return plan.filter(({ kind }) => kind.endsWith('duplicate'));
}

test('plans every original once, as it is, without delay and in its order', () => {
  fc.assert(
    fc.property(anyCase, ({ messages, policy }) => {
      const originals = ofKind(planSends(messages, policy), 'original');

      expect(originals).toEqual(
        messages.map(({ body, key }, of) => ({ kind: 'original', body, key, delaySeconds: 0, of })),
      );
    }),
  );
});

test('plans exactly as many duplicates, conflicts and malformed bodies as were asked for', () => {
  fc.assert(
    fc.property(anyCase, ({ messages, policy }) => {
      const plan = planSends(messages, policy);

      expect(duplicatesOf(plan)).toHaveLength(Math.round(messages.length * (policy.duplicateRatio ?? 0)));
      expect(ofKind(plan, 'conflict')).toHaveLength(policy.conflicts ?? 0);
      expect(ofKind(plan, 'malformed')).toHaveLength(policy.malformed ?? 0);
    }),
  );
});

test('spreads the duplicates evenly over messages and kinds', () => {
  const plan = planSends(encodedCharges(30), { seed: 5, duplicateRatio: 2 });

  const perMessage = Object.values(Object.groupBy(duplicatesOf(plan), ({ of }) => of)).map((sends) => sends?.length);
  expect(perMessage).toEqual(Array.from({ length: 30 }, () => 2));
  expect(ofKind(plan, 'duplicate')).toHaveLength(20);
  expect(ofKind(plan, 'delayed-duplicate')).toHaveLength(20);
  expect(ofKind(plan, 'reordered-duplicate')).toHaveLength(20);
});

test('plans duplicates that every receiver takes for the same message', () => {
  fc.assert(
    fc.property(anyCase, ({ messages, policy }) => {
      for (const duplicate of duplicatesOf(planSends(messages, policy))) {
        const original = messages[duplicate.of];

        expect(duplicate.key).toBe(original?.key);
        expect(hashOf(duplicate.body)).toBe(original?.payloadHash);
      }
    }),
  );
});

test('writes a reordered duplicate in another text, and the others in the very same', () => {
  fc.assert(
    fc.property(anyCase, ({ messages, policy }) => {
      for (const duplicate of duplicatesOf(planSends(messages, policy))) {
        const same = duplicate.body === messages[duplicate.of]?.body;

        expect(same).toBe(duplicate.kind !== 'reordered-duplicate');
      }
    }),
  );
});

test('finds another text also for a message with few fields, which a shuffle may leave as it was', () => {
  const counted = { type: 'counted', version: 1, schema: z.number(), keyOf: String };
  const messages = Array.from({ length: 600 }, (_, at) => encodeMessage(counted, at));

  const plan = planSends(messages, { seed: 1, duplicateRatio: 1 });

  const reordered = ofKind(plan, 'reordered-duplicate');
  expect(reordered).toHaveLength(200);
  expect(reordered.filter(({ body, of }) => body === messages[of]?.body)).toEqual([]);
});

test('delays the delayed duplicates alone, from one second to the longest delay', () => {
  fc.assert(
    fc.property(anyCase, ({ messages, policy }) => {
      for (const { kind, delaySeconds } of duplicatesOf(planSends(messages, policy))) {
        const delayed = kind === 'delayed-duplicate';

        expect(delaySeconds).toBeGreaterThanOrEqual(delayed ? 1 : 0);
        expect(delaySeconds).toBeLessThanOrEqual(delayed ? (policy.maxDelaySeconds ?? 0) : 0);
        expect(Number.isInteger(delaySeconds)).toBe(true);
      }
    }),
  );
});

test('plans conflicts that are valid messages with the same key and another hash', () => {
  fc.assert(
    fc.property(anyCase, ({ messages, policy }) => {
      for (const conflict of ofKind(planSends(messages, policy), 'conflict')) {
        const original = messages[conflict.of];

        expect(decode(conflict.body)).toMatchObject({ kind: 'valid', message: { key: original?.key } });
        expect(hashOf(conflict.body)).not.toBe(original?.payloadHash);
        expect(conflict.delaySeconds).toBe(2);
      }
    }),
  );
});

test('sends every duplicate and every conflict after its original', () => {
  fc.assert(
    fc.property(anyCase, ({ messages, policy }) => {
      const seen = new Set<number>();
      for (const { kind, of } of planSends(messages, policy)) {
        if (kind === 'original') seen.add(of);

        expect(kind === 'malformed' || seen.has(of)).toBe(true);
      }
    }),
  );
});

test('plans malformed bodies that are refused for six different reasons, under labels of their own', () => {
  const plan = planSends(encodedCharges(3), { seed: 9, duplicateRatio: 0, malformed: 6 });
  const malformed = ofKind(plan, 'malformed');

  const refusals = Object.fromEntries(
    malformed.map(({ key, body }) => [key.replace(/^malformed-9-\d-/, ''), hashOf(body)]),
  );
  expect(refusals).toEqual({
    'not-json': 'NOT_JSON',
    'unknown-type': 'UNKNOWN_TYPE',
    'unknown-version': 'UNKNOWN_VERSION',
    'missing-field': 'ENVELOPE',
    'empty-key': 'ENVELOPE',
    'deep-nesting': 'NOT_JSON',
  });
  expect(new Set(malformed.map(({ key }) => key)).size).toBe(6);
});

test('gives the same plan for the same seed, and another for another', () => {
  const messages = encodedCharges(40);
  const policy = { duplicateRatio: 0.5, conflicts: 3, malformed: 3 };

  expect(planSends(messages, { ...policy, seed: 7 })).toEqual(planSends(messages, { ...policy, seed: 7 }));
  // Malformed bodies carry the seed in their labels, which would make any two plans differ.
  const unlabelled = { ...policy, malformed: 0 };
  expect(planSends(messages, { ...unlabelled, seed: 7 })).not.toEqual(planSends(messages, { ...unlabelled, seed: 8 }));
});

test('contradicts an amount at either end of its range without leaving it', () => {
  const [any] = generateCharges({ count: 1, seed: 1 });
  if (any === undefined) throw new Error('one charge was asked for');
  const messages = [1, 1_000_000_000_000].map((amountMinor) =>
    encodeMessage(CHARGE_REQUESTED, { ...any, amountMinor }),
  );

  const conflicts = ofKind(planSends(messages, { seed: 1, duplicateRatio: 0, conflicts: 2 }), 'conflict');

  expect(conflicts.map(({ body }) => decode(body).kind)).toEqual(['valid', 'valid']);
});

test('takes another way to contradict a payload, and refuses one that changes nothing', () => {
  const messages = encodedCharges(1);
  const contradict = (): { description: string } => ({ description: 'other' });

  const [, conflict] = planSends(messages, { seed: 1, duplicateRatio: 0, conflicts: 1, contradict });

  expect(JSON.parse(conflict?.body ?? '')).toMatchObject({ payload: { description: 'other' } });
  expect(() => planSends(messages, { seed: 1, conflicts: 1, contradict: (payload) => payload })).toThrow(
    InvalidMessageError,
  );
});

test('reports all wrong options of a plan together', () => {
  const policy = {
    seed: -1,
    duplicateRatio: 11,
    conflicts: 0.5,
    malformed: 1,
    maxDelaySeconds: 0,
    conflictDelaySeconds: 901,
  };

  let faults: string[] = [];
  try {
    planSends([], policy);
  } catch (error) {
    faults = error instanceof ConfigurationError ? error.faults.map(({ name }) => name) : [];
  }

  expect(faults).toEqual([
    'seed',
    'duplicateRatio',
    'conflicts',
    'maxDelaySeconds',
    'conflictDelaySeconds',
    'messages',
  ]);
});
