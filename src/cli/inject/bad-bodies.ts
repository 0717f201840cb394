/** Bodies that every worker must refuse, each in another way. */
import { classifyFault, faultName, isRetryable } from '../../aws-fault.ts';
import { toBody, type EncodedMessage } from '../../messages/envelope.ts';
import { parseJson, type Json } from '../../messages/json.ts';
import { MAX_MESSAGE_BYTES } from '../../messages/limits.ts';
import { malformedBody } from '../../producers/malformed-bodies.ts';
import { isJsonObject, type JsonObject } from '../../producers/reordered-json.ts';
import { sendAndTell, type InjectScope } from './scope.ts';

export async function injectCorrupt(scope: InjectScope): Promise<void> {
  for (const [index, message] of scope.samples(scope.count ?? 1).entries()) {
    if (scope.signal.aborted) return;
    const damage = DAMAGES[index % DAMAGES.length] ?? cutOff;
    const { body, detail } = damage(message);
    await sendAndTell(scope, { body, detail, key: message.key });
  }
}

interface Damage {
  readonly body: string;
  readonly detail: string;
}

/** Each of them is sure to be noticed: a byte in the amount would make another valid message. */
const DAMAGES: readonly ((message: EncodedMessage) => Damage)[] = [cutOff, otherKey, otherQuote];

function cutOff({ body }: EncodedMessage): Damage {
  const bytes = Math.floor(body.length / 2);
  return { body: body.slice(0, bytes), detail: `cut off after ${String(bytes)} characters` };
}

/** The envelope's key is changed, that of the payload is not. */
function otherKey({ body, key }: EncodedMessage): Damage {
  const last = key.endsWith('0') ? '1' : '0';
  const at = body.indexOf(JSON.stringify(key)) + key.length;
  return { body: `${body.slice(0, at)}${last}${body.slice(at + 1)}`, detail: 'one byte of the key changed' };
}

function otherQuote({ body }: EncodedMessage): Damage {
  return { body: body.replace('"', "'"), detail: 'one byte changed: a quote' };
}

export function injectUnknownVersion(scope: InjectScope): Promise<void> {
  return injectMalformed(scope, 'unknown-version', 'a version that no contract has');
}

export function injectUnknownType(scope: InjectScope): Promise<void> {
  return injectMalformed(scope, 'unknown-type', 'a type that no contract has');
}

async function injectMalformed(
  scope: InjectScope,
  kind: 'unknown-version' | 'unknown-type',
  detail: string,
): Promise<void> {
  for (const { body, key } of scope.samples(scope.count ?? 1)) {
    if (scope.signal.aborted) return;
    await sendAndTell(scope, { body: toBody(malformedBody(kind, envelopeOf(body))), detail, key });
  }
}

/** As large as SQS takes, and one byte more. */
export async function injectOversized(scope: InjectScope): Promise<void> {
  const [message] = scope.samples(1);
  if (message === undefined) return;
  const body = padded(message.body, MAX_MESSAGE_BYTES);
  const detail = `${String(MAX_MESSAGE_BYTES)} bytes, as large as SQS takes, and over what the contract takes`;
  await sendAndTell(scope, { body, detail, key: message.key, bodyBytes: MAX_MESSAGE_BYTES });
  await sendTooLarge(scope, message);
}

async function sendTooLarge(scope: InjectScope, { body, key }: EncodedMessage): Promise<void> {
  const bodyBytes = MAX_MESSAGE_BYTES + 1;
  try {
    const detail = `${String(bodyBytes)} bytes: this backend takes more than SQS does`;
    await sendAndTell(scope, { body: padded(body, bodyBytes), detail, key, bodyBytes });
  } catch (error) {
    const fault = classifyFault(error);
    // Anything but a refusal of this message is a fault of its own.
    if (isRetryable(fault) || fault === 'denied' || fault === 'notFound') throw error;
    const detail = `${String(bodyBytes)} bytes are one too many: ${faultName(error)}`;
    scope.tell({ action: 'refused', detail, key, bodyBytes });
  }
}

/** The envelope with a field of that many bytes in its payload. */
function padded(body: string, bytes: number): string {
  const envelope = envelopeOf(body);
  const withPadding = (padding: string): string =>
    toBody(JSON.stringify({ ...envelope, payload: { ...objectOf(envelope['payload']), padding } }));
  return withPadding('x'.repeat(bytes - Buffer.byteLength(withPadding(''))));
}

function envelopeOf(body: string): JsonObject {
  const json = parseJson(body);
  return objectOf(json.kind === 'parsed' ? json.value : undefined);
}

function objectOf(value: Json | undefined): JsonObject {
  if (value !== undefined && isJsonObject(value)) return value;
  throw new TypeError('invariant: a valid message and its payload are JSON objects');
}
