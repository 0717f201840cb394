/**
 * Attribute values inside this DynamoDB: checked once where they come in, immutable from there on, so that an item that
 * was read cannot be changed by a later write.
 */
import { compareDecimals, decimalBytes, decimalText, parseDecimal, type Decimal } from './decimal.ts';
import { invalid } from './service-error.ts';

export type Value =
  | { readonly type: 'S'; readonly text: string }
  | { readonly type: 'N'; readonly number: Decimal }
  | { readonly type: 'B'; readonly bytes: Buffer }
  | { readonly type: 'BOOL'; readonly flag: boolean }
  | { readonly type: 'NULL' }
  | { readonly type: 'L'; readonly members: readonly Value[] }
  | { readonly type: 'M'; readonly entries: ValueMap }
  | { readonly type: SetType; readonly members: readonly ScalarValue[] };

export type SetType = 'SS' | 'NS' | 'BS';
export type ScalarValue = Extract<Value, { type: 'S' | 'N' | 'B' }>;
export type SetValue = Extract<Value, { type: SetType }>;
/** A Map, not an object: an attribute may be called `__proto__`. */
export type ValueMap = ReadonlyMap<string, Value>;

/** @see AWS: DynamoDB quotas, nested attribute depth */
const MAX_DEPTH = 32;

const SCALAR_OF_SET = { SS: 'S', NS: 'N', BS: 'B' } as const;

/** Reads a value off the wire, where it is an object with one field named by its type. */
export function parseValue(wire: unknown, depth = 0): Value {
  if (!isRecord(wire)) throw invalid('Supplied AttributeValue is not an object');
  const [field, ...others] = Object.entries(wire);
  if (field === undefined || others.length > 0) {
    throw invalid('Supplied AttributeValue must contain exactly one of the supported datatypes');
  }
  if (depth > MAX_DEPTH) throw invalid('Nesting Levels have exceeded supported limits');
  const [type, content] = field;
  switch (type) {
    case 'S':
    case 'N':
    case 'B':
      return parseScalar(type, content);
    case 'BOOL':
      if (typeof content !== 'boolean') throw wrongContent(type);
      return { type, flag: content };
    case 'NULL':
      if (content !== true) throw invalid('Null attribute value types must have the value of true');
      return { type };
    case 'L':
      if (!Array.isArray(content)) throw wrongContent(type);
      return { type, members: content.map((member) => parseValue(member, depth + 1)) };
    case 'M':
      return { type, entries: parseMap(content, depth + 1) };
    case 'SS':
    case 'NS':
    case 'BS':
      return parseSet(type, content);
    default:
      throw invalid('Supplied AttributeValue is empty, must contain exactly one of the supported datatypes');
  }
}

export function parseMap(wire: unknown, depth = 0): ValueMap {
  if (!isRecord(wire)) throw invalid('Supplied attribute map is not an object');
  return new Map(Object.entries(wire).map(([name, value]) => [name, parseValue(value, depth)]));
}

function parseScalar(type: ScalarValue['type'], content: unknown): ScalarValue {
  if (typeof content !== 'string') throw wrongContent(type);
  if (type === 'S') return { type, text: content };
  if (type === 'N') return { type, number: parseDecimal(content) };
  return { type, bytes: Buffer.from(content, 'base64') };
}

function parseSet(type: SetType, content: unknown): SetValue {
  if (!Array.isArray(content)) throw wrongContent(type);
  if (content.length === 0) throw invalid('One or more parameter values were invalid: An set may not be empty');
  const members = content.map((member: unknown) => parseScalar(SCALAR_OF_SET[type], member));
  if (new Set(members.map(scalarText)).size < members.length) {
    throw invalid('One or more parameter values were invalid: Input collection contains duplicates.');
  }
  return { type, members };
}

function wrongContent(type: string): Error {
  return invalid(`Unexpected content of an attribute value of type ${type}`);
}

export function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

export function isSet(value: Value): value is SetValue {
  return value.type === 'SS' || value.type === 'NS' || value.type === 'BS';
}

export function isScalar(value: Value): value is ScalarValue {
  return value.type === 'S' || value.type === 'N' || value.type === 'B';
}

/** One text per scalar, for maps and sets; the same for `1` and `1.0`. */
export function scalarText(value: ScalarValue): string {
  if (value.type === 'S') return `S${value.text}`;
  return value.type === 'N' ? `N${decimalText(value.number)}` : `B${value.bytes.toString('base64')}`;
}

function wireValue(value: Value): Record<string, unknown> {
  switch (value.type) {
    case 'S':
      return { S: value.text };
    case 'N':
      return { N: decimalText(value.number) };
    case 'B':
      return { B: value.bytes.toString('base64') };
    case 'BOOL':
      return { BOOL: value.flag };
    case 'NULL':
      return { NULL: true };
    case 'L':
      return { L: value.members.map(wireValue) };
    case 'M':
      return { M: wireMap(value.entries) };
    case 'SS':
    case 'NS':
    case 'BS':
      return { [value.type]: value.members.map((member) => scalarText(member).slice(1)) };
  }
}

export function wireMap(entries: ValueMap): Record<string, unknown> {
  return Object.fromEntries([...entries].map(([name, value]) => [name, wireValue(value)]));
}

export function areEqual(left: Value, right: Value): boolean {
  if (isScalar(left) && isScalar(right)) return scalarText(left) === scalarText(right);
  if (isSet(left) && isSet(right)) {
    const members = new Set(left.members.map(scalarText));
    return (
      left.type === right.type &&
      members.size === right.members.length &&
      right.members.every((member) => members.has(scalarText(member)))
    );
  }
  if (left.type === 'BOOL' && right.type === 'BOOL') return left.flag === right.flag;
  if (left.type === 'L' && right.type === 'L') {
    return (
      left.members.length === right.members.length &&
      left.members.every((member, index) => isSame(member, right.members[index]))
    );
  }
  if (left.type === 'M' && right.type === 'M') {
    return (
      left.entries.size === right.entries.size &&
      [...left.entries].every(([name, member]) => isSame(member, right.entries.get(name)))
    );
  }
  return left.type === 'NULL' && right.type === 'NULL';
}

function isSame(left: Value, right: Value | undefined): boolean {
  return right !== undefined && areEqual(left, right);
}

/** Undefined where the two have no order: texts go by their UTF-8 bytes, numbers by value. */
export function compareValues(left: Value, right: Value): number | undefined {
  // UTF-16, in which JavaScript compares texts, puts emoji before some letters; UTF-8 does not.
  if (left.type === 'S' && right.type === 'S') return Buffer.compare(Buffer.from(left.text), Buffer.from(right.text));
  if (left.type === 'N' && right.type === 'N') return compareDecimals(left.number, right.number);
  return left.type === 'B' && right.type === 'B' ? Buffer.compare(left.bytes, right.bytes) : undefined;
}

/** @see AWS: DynamoDB item sizes and formats */
export function mapBytes(entries: ValueMap): number {
  let sum = 0;
  for (const [name, value] of entries) sum += Buffer.byteLength(name) + valueBytes(value);
  return sum;
}

export function valueBytes(value: Value): number {
  switch (value.type) {
    case 'S':
      return Buffer.byteLength(value.text);
    case 'N':
      return decimalBytes(value.number);
    case 'B':
      return value.bytes.length;
    case 'BOOL':
    case 'NULL':
      return 1;
    case 'L':
      return value.members.reduce((sum, member) => sum + valueBytes(member) + 1, 3);
    case 'M':
      return 3 + mapBytes(value.entries) + value.entries.size;
    case 'SS':
    case 'NS':
    case 'BS':
      return value.members.reduce((sum, member) => sum + valueBytes(member), 0);
  }
}
