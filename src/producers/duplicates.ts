/**
 * Trouble on purpose: a plan of sends in which messages come twice, late, in other words, with other contents, or
 * broken. Pure and repeatable from its seed, so that a run can be told beforehand what must come out of it.
 */
import { seededRandom, type Random } from '../clock.ts';
import { ConfigurationError, InvalidMessageError, type OptionFault } from '../errors.ts';
import { toBody, type EncodedMessage } from '../messages/envelope.ts';
import { canonicalJson, parseJson, type Json } from '../messages/json.ts';
import { MAX_DELAY_SECONDS } from '../messages/limits.ts';
import { MALFORMED_KINDS, malformedBody } from './malformed-bodies.ts';
import { isJsonObject, reordered, type JsonObject } from './reordered-json.ts';

export type PlannedKind =
  | 'original'
  /** The very same body again: SQS gives it another message id. */
  | 'duplicate'
  /** The same body, visible some seconds later: when its first delivery was finished long ago. */
  | 'delayed-duplicate'
  /** The same message with its fields in another order: other text, equal meaning. */
  | 'reordered-duplicate'
  /** The same business key with other contents: must be told from a duplicate. */
  | 'conflict'
  /** Refused by every receiver. */
  | 'malformed';

/** Can be handed to `sendBatch` as it is. */
export interface PlannedSend {
  readonly kind: PlannedKind;
  readonly body: string;
  /** The business key; of a malformed body a label that is unique within the plan, since most have no key to read. */
  readonly key: string;
  /** Unit: s. */
  readonly delaySeconds: number;
  /** The message that it repeats, contradicts, or was spoiled from, by its place in `messages`. */
  readonly of: number;
}

export interface DuplicatePolicy {
  /** The same seed and messages give the same plan. */
  readonly seed: number;
  /** Duplicates per message. Range: 0-10; their number is rounded. @defaultValue 0.3 */
  readonly duplicateRatio?: number;
  /** Unit: messages. Range: 0-100000. @defaultValue 0 */
  readonly conflicts?: number;
  /** Unit: messages. Range: 0-100000. @defaultValue 0 */
  readonly malformed?: number;
  /** The longest delay of a delayed duplicate; each gets one from 1 s up. Unit: s. Range: 1-900. @defaultValue 5 */
  readonly maxDelaySeconds?: number;
  /**
   * How long conflicts are held back. A standard queue keeps no order, and of two messages with one key the first to
   * be worked on wins: without a delay a conflict could win over its original. Unit: s. Range: 0-900. @defaultValue 2
   */
  readonly conflictDelaySeconds?: number;
  /** Gives a payload another meaning under the same key. @defaultValue adds or takes 1 at `amountMinor` */
  readonly contradict?: (payload: Json) => Json;
}

const DUPLICATE_DEFAULTS = {
  duplicateRatio: 0.3,
  conflicts: 0,
  malformed: 0,
  maxDelaySeconds: 5,
  conflictDelaySeconds: 2,
} as const;

const DUPLICATE_KINDS = ['duplicate', 'delayed-duplicate', 'reordered-duplicate'] as const;

type Policy = Required<DuplicatePolicy>;
interface Placed {
  readonly send: PlannedSend;
  readonly place: number;
}

/**
 * Plans the sends. Every original is there once and originals keep their order; each duplicate and each conflict comes
 * after its original.
 * @throws {ConfigurationError} listing every wrong option.
 * @throws {InvalidMessageError} when a message's body is not an envelope, or cannot be contradicted.
 */
export function planSends(messages: readonly EncodedMessage[], policy: DuplicatePolicy): readonly PlannedSend[] {
  const resolved = resolvePolicy(policy, messages.length);
  const random = seededRandom(resolved.seed);
  const originals = messages.map((message, of): Placed => {
    const { body, key } = message;
    return { place: of, send: { kind: 'original', body, key, delaySeconds: 0, of } };
  });
  const placed = [
    ...originals,
    ...planDuplicates(messages, resolved, random),
    ...planConflicts(messages, resolved, random),
    ...planMalformed(messages, resolved, random),
  ];
  // Sorting is stable and originals stand first, so what was placed at an original's own place still follows it.
  return placed.sort((left, right) => left.place - right.place).map(({ send }) => send);
}

function planDuplicates(messages: readonly EncodedMessage[], policy: Policy, random: Random): Placed[] {
  const count = Math.round(messages.length * policy.duplicateRatio);
  const kinds = drawEvenly(DUPLICATE_KINDS, count, random);
  return drawEvenly([...messages.entries()], count, random).map(([of, message], at) => {
    const kind = kinds[at] ?? 'duplicate';
    const { key } = message;
    const delaySeconds = kind === 'delayed-duplicate' ? 1 + Math.floor(random() * policy.maxDelaySeconds) : 0;
    const body = kind === 'reordered-duplicate' ? reorderedBody(message.body, random) : message.body;
    return { place: placeAfter(of, messages.length, random), send: { kind, body, key, delaySeconds, of } };
  });
}

function planConflicts(messages: readonly EncodedMessage[], policy: Policy, random: Random): Placed[] {
  return drawEvenly([...messages.entries()], policy.conflicts, random).map(([of, { body, key }]) => {
    const envelope = envelopeOf(body);
    const payload = policy.contradict(envelope['payload'] ?? null);
    if (canonicalJson(payload) === canonicalJson(envelope['payload'] ?? null)) {
      throw new InvalidMessageError('contradict gave back an equal payload: that would be a duplicate, not a conflict');
    }
    const send: PlannedSend = {
      kind: 'conflict',
      body: toBody(JSON.stringify({ ...envelope, payload })),
      key,
      delaySeconds: policy.conflictDelaySeconds,
      of,
    };
    return { place: placeAfter(of, messages.length, random), send };
  });
}

function planMalformed(messages: readonly EncodedMessage[], policy: Policy, random: Random): Placed[] {
  const kinds = drawEvenly(MALFORMED_KINDS, policy.malformed, random);
  return drawEvenly([...messages.entries()], policy.malformed, random).map(([of, { body }], at) => {
    const fault = kinds[at] ?? 'not-json';
    const key = `malformed-${String(policy.seed)}-${String(at)}-${fault}`;
    const spoiled = toBody(malformedBody(fault, envelopeOf(body)));
    return { place: random() * messages.length, send: { kind: 'malformed', body: spoiled, key, delaySeconds: 0, of } };
  });
}

/** Mostly soon after the original, while that is being worked on; now and then much later. */
function placeAfter(of: number, count: number, random: Random): number {
  return of + random() ** 3 * (count - of);
}

function reorderedBody(body: string, random: Random): string {
  const envelope = envelopeOf(body);
  const shuffled = toBody(JSON.stringify(reordered(envelope, random)));
  if (shuffled !== body) return shuffled;
  return toBody(JSON.stringify(Object.fromEntries(Object.entries(envelope).reverse())));
}

function envelopeOf(body: string): JsonObject {
  const json = parseJson(body);
  if (json.kind === 'parsed' && isJsonObject(json.value)) return json.value;
  throw new InvalidMessageError(`the plan needs envelopes: ${json.kind === 'refused' ? json.reason : 'not an object'}`);
}

function contradictAmount(payload: Json): Json {
  const amountMinor = isJsonObject(payload) ? payload['amountMinor'] : undefined;
  if (!isJsonObject(payload) || typeof amountMinor !== 'number') {
    throw new InvalidMessageError('a conflict needs a payload with amountMinor, or the option contradict');
  }
  return { ...payload, amountMinor: amountMinor > 1 ? amountMinor - 1 : amountMinor + 1 };
}

/** `count` draws in which each item comes as often as any other, give or take one, in random order. */
function drawEvenly<Item>(items: readonly Item[], count: number, random: Random): Item[] {
  const drawn: Item[] = [];
  while (items.length > 0 && drawn.length < count) {
    const round = items.map((item) => ({ item, rank: random() })).sort((left, right) => left.rank - right.rank);
    drawn.push(...round.slice(0, count - drawn.length).map(({ item }) => item));
  }
  return drawn;
}

function resolvePolicy(policy: DuplicatePolicy, messages: number): Policy {
  const resolved: Policy = {
    seed: policy.seed,
    duplicateRatio: policy.duplicateRatio ?? DUPLICATE_DEFAULTS.duplicateRatio,
    conflicts: policy.conflicts ?? DUPLICATE_DEFAULTS.conflicts,
    malformed: policy.malformed ?? DUPLICATE_DEFAULTS.malformed,
    maxDelaySeconds: policy.maxDelaySeconds ?? DUPLICATE_DEFAULTS.maxDelaySeconds,
    conflictDelaySeconds: policy.conflictDelaySeconds ?? DUPLICATE_DEFAULTS.conflictDelaySeconds,
    contradict: policy.contradict ?? contradictAmount,
  };
  const { duplicateRatio, conflicts, malformed } = resolved;
  const faults = [
    ...faultOfWhole('seed', resolved.seed, [0, 4_294_967_295]),
    ...(duplicateRatio >= 0 && duplicateRatio <= 10
      ? []
      : [{ name: 'duplicateRatio', rule: 'from 0 to 10', value: duplicateRatio }]),
    ...faultOfWhole('conflicts', conflicts, [0, 100_000]),
    ...faultOfWhole('malformed', malformed, [0, 100_000]),
    ...faultOfWhole('maxDelaySeconds', resolved.maxDelaySeconds, [1, MAX_DELAY_SECONDS]),
    ...faultOfWhole('conflictDelaySeconds', resolved.conflictDelaySeconds, [0, MAX_DELAY_SECONDS]),
  ];
  if (messages === 0 && conflicts + malformed > 0) {
    faults.push({
      name: 'messages',
      rule: 'at least one, to make conflicts and malformed bodies from',
      value: messages,
    });
  }
  if (faults.length > 0) throw new ConfigurationError('duplicates', faults);
  return resolved;
}

function faultOfWhole(name: string, value: number, [min, max]: readonly [number, number]): OptionFault[] {
  if (Number.isInteger(value) && value >= min && value <= max) return [];
  return [{ name, rule: `a whole number from ${String(min)} to ${String(max)}`, value }];
}
