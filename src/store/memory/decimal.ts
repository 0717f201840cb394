/** DynamoDB's numbers: exact decimals of up to 38 significant digits. @see AWS: Naming rules and data types, Number */
import { invalid } from './service-error.ts';

/** `digits * 10 ** exponent`; `digits` does not end in 0, and zero is `0 * 10 ** 0`: one form for each number. */
export interface Decimal {
  readonly digits: bigint;
  readonly exponent: number;
}

const MAX_SIGNIFICANT_DIGITS = 38;
/** The largest is 9.99...E+125, the smallest 1E-130. */
const MAX_MAGNITUDE = 125;
const MIN_MAGNITUDE = -130;

const FORM = /^([+-]?)(\d*)(?:\.(\d*))?(?:[eE]([+-]?\d+))?$/;

export function parseDecimal(text: string): Decimal {
  const [matched, sign = '', whole = '', fraction = '', power = '0'] = FORM.exec(text) ?? [];
  const figures = `${whole}${fraction}`;
  if (matched === undefined || figures === '') {
    throw invalid(`The parameter cannot be converted to a numeric value: ${text.slice(0, 80)}`);
  }
  const significant = figures.replace(/^0+/, '').replace(/0+$/, '');
  if (significant === '') return { digits: 0n, exponent: 0 };
  const trailingZeros = figures.length - figures.replace(/0+$/, '').length;
  const exponent = Number(power) - fraction.length + trailingZeros;
  return checked({ digits: BigInt(`${sign === '-' ? '-' : ''}${significant}`), exponent }, significant.length);
}

export function addDecimals(left: Decimal, right: Decimal): Decimal {
  const exponent = Math.min(left.exponent, right.exponent);
  return normalised(scaled(left, exponent) + scaled(right, exponent), exponent);
}

export function negated(decimal: Decimal): Decimal {
  return { digits: -decimal.digits, exponent: decimal.exponent };
}

/** Below 0, 0 or above 0, as the left one is smaller, equal or larger. */
export function compareDecimals(left: Decimal, right: Decimal): number {
  const exponent = Math.min(left.exponent, right.exponent);
  const difference = scaled(left, exponent) - scaled(right, exponent);
  return difference < 0n ? -1 : Number(difference > 0n);
}

/** In plain digits, without an exponent, as DynamoDB returns numbers. */
export function decimalText({ digits, exponent }: Decimal): string {
  const sign = digits < 0n ? '-' : '';
  const figures = significantDigits(digits);
  if (exponent >= 0) return `${sign}${figures}${'0'.repeat(digits === 0n ? 0 : exponent)}`;
  const padded = figures.padStart(1 - exponent, '0');
  return `${sign}${padded.slice(0, exponent)}.${padded.slice(exponent)}`;
}

/** What a number adds to the size of its item: about one byte for two digits, and one more. */
export function decimalBytes({ digits }: Decimal): number {
  return Math.ceil(significantDigits(digits).length / 2) + 1;
}

function significantDigits(digits: bigint): string {
  return String(digits < 0n ? -digits : digits);
}

// The exponents lie within a few hundred of each other, so the scaled numbers stay small.
function scaled(decimal: Decimal, exponent: number): bigint {
  return decimal.digits * 10n ** BigInt(decimal.exponent - exponent);
}

function normalised(digits: bigint, exponent: number): Decimal {
  if (digits === 0n) return { digits: 0n, exponent: 0 };
  const figures = String(digits);
  const significant = figures.replace(/0+$/, '');
  const shorter = { digits: BigInt(significant), exponent: exponent + figures.length - significant.length };
  return checked(shorter, significant.replace('-', '').length);
}

function checked(decimal: Decimal, significant: number): Decimal {
  const magnitude = decimal.exponent + significant - 1;
  if (magnitude > MAX_MAGNITUDE) {
    throw invalid('Number overflow. Attempting to store a number with magnitude larger than supported range');
  }
  if (magnitude < MIN_MAGNITUDE) {
    throw invalid('Number underflow. Attempting to store a number with magnitude smaller than supported range');
  }
  if (significant > MAX_SIGNIFICANT_DIGITS) {
    throw invalid('Attempting to store more than 38 significant digits in a Number');
  }
  return decimal;
}
