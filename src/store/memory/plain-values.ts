/** Attribute values as a test wants to compare them: what the document client would have returned. */
import { decimalText, type Decimal } from './decimal.ts';
import type { Value, ValueMap } from './values.ts';

export function plainMap(entries: ValueMap): Record<string, unknown> {
  return Object.fromEntries([...entries].map(([name, value]) => [name, plainValue(value)]));
}

function plainValue(value: Value): unknown {
  switch (value.type) {
    case 'S':
      return value.text;
    case 'N':
      return plainNumber(value.number);
    case 'B':
      return new Uint8Array(value.bytes);
    case 'BOOL':
      return value.flag;
    case 'NULL':
      return null;
    case 'L':
      return value.members.map(plainValue);
    case 'M':
      return plainMap(value.entries);
    case 'SS':
    case 'NS':
    case 'BS':
      return new Set(value.members.map(plainValue));
  }
}

function plainNumber(number: Decimal): number | bigint {
  const text = decimalText(number);
  const isUnsafe = number.exponent >= 0 && !Number.isSafeInteger(Number(text));
  return isUnsafe ? BigInt(text) : Number(text);
}
