/** A contract says what one kind of message looks like and which business key names its effect. */
import { ConfigurationError, type OptionFault } from '../errors.ts';
import { isStandardSchema, type StandardSchema } from './schema.ts';

/** Makes a payload of the next version out of one of an older version. */
export interface Upcaster {
  /** The version that it takes; it gives the one above. */
  readonly fromVersion: number;
  /**
   * Pure, and the same answer each time: it runs on every delivery of an old message. What it gives is taken by the next
   * upcaster, or checked by the contract's schema.
   * @param payload as it was sent, not checked by any schema.
   */
  up(payload: unknown): unknown;
}

/** One type of message at its newest version. */
export interface MessageContract<Payload> {
  /** Dotted name in the past tense or as a request, for example `charge.requested`. */
  readonly type: string;
  /** Counts up with each change that old readers cannot take. */
  readonly version: number;
  /**
   * Checks a payload of `version`. It must answer without waiting, and leave what it returned unchanged when it checks
   * that again: sender and receiver both run it. Defaults are fine, transforms of values are not.
   */
  readonly schema: StandardSchema<Payload>;
  /** The business key: what the effect is once per. Never a message id. */
  keyOf(payload: Payload): string;
  /** From older versions that may still be on the queue. @defaultValue none: only `version` is read */
  readonly upcasters?: readonly Upcaster[];
}

/** A message whose envelope and payload were checked. */
export interface Message<Payload = unknown> {
  readonly type: string;
  /** The version that `payload` has now. */
  readonly version: number;
  readonly key: string;
  readonly payload: Payload;
  /**
   * SHA-256 over type, version and payload as they were sent, in canonical form: tells a duplicate from another message
   * of that key. A new upcaster does not change it, so a message that was recorded before is still known after.
   */
  readonly payloadHash: string;
}

const TYPE = /^[a-z][a-z0-9-]*(\.[a-z][a-z0-9-]*)*$/i;
const MAX_TYPE_CHARACTERS = 128;

/**
 * Defines one type of message. The payload's type comes from the schema: any library that follows Standard Schema.
 * @throws {ConfigurationError} listing every wrong option.
 * @example
 * const orderPlaced = defineMessage({
 *   type: 'order.placed',
 *   version: 2,
 *   schema: z.object({ orderId: z.string(), lines: z.array(line) }),
 *   keyOf: (order) => order.orderId,
 *   upcasters: [{ fromVersion: 1, up: (old) => ({ ...old, lines: [old.line] }) }],
 * });
 */
export function defineMessage<Payload>(definition: MessageContract<Payload>): MessageContract<Payload> {
  const faults = [...findFaults(definition), ...findUpcasterFaults(definition)];
  if (faults.length > 0) throw new ConfigurationError('message', faults);
  return Object.freeze({ ...definition });
}

function findFaults(definition: MessageContract<unknown>): OptionFault[] {
  const { type, version, schema } = definition;
  const faults: OptionFault[] = [];
  if (!TYPE.test(type) || type.length > MAX_TYPE_CHARACTERS) {
    const rule = `words of letters, digits and - joined by dots, at most ${String(MAX_TYPE_CHARACTERS)} characters`;
    faults.push({ name: 'type', rule, value: type });
  }
  if (!Number.isSafeInteger(version) || version < 1) {
    faults.push({ name: 'version', rule: 'a whole number, 1 or more', value: version });
  }
  if (!isStandardSchema(schema)) {
    faults.push({
      name: 'schema',
      rule: 'a schema that follows Standard Schema (zod, valibot, arktype)',
      value: schema,
    });
  }
  // Plain JavaScript has no types to see to it.
  if (typeof definition.keyOf !== 'function') {
    faults.push({ name: 'keyOf', rule: 'a function of the payload', value: typeof definition.keyOf });
  }
  return faults;
}

/** Versions must follow each other up to the newest one, or an old message would get stuck on its way. */
function findUpcasterFaults({ version, upcasters = [] }: MessageContract<unknown>): OptionFault[] {
  const from = upcasters.map((upcaster) => upcaster.fromVersion).toSorted((left, right) => left - right);
  const oldest = version - from.length;
  const isChain = oldest >= 1 && from.every((each, index) => each === oldest + index);
  if (isChain || from.length === 0) return [];
  const rule = `one from each version up to ${String(version - 1)}, without a gap`;
  return [{ name: 'upcasters', rule, value: from }];
}
