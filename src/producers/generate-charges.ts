/** Charges that look like a working day's: for demonstrations, load and tests. The same seed gives the same charges. */
import { seededRandom, type Random } from '../clock.ts';
import { ConfigurationError, type OptionFault } from '../errors.ts';
import type { Charge } from '../messages/charge.ts';
import { CURRENCY_PROFILES, PURPOSES, type CurrencyProfile } from './merchants.ts';

export interface GenerateOptions {
  /** Unit: charges. Range: 0-1000000. */
  readonly count: number;
  /** Two seeds give different request ids, but the same accounts. Range: 0-4294967295. */
  readonly seed: number;
  /** How many accounts are charged; the first ones far more often. Range: 1-10000. @defaultValue 60 */
  readonly accounts?: number;
}

const GENERATE_DEFAULTS = { accounts: 60 } as const;

/** Crockford's alphabet: no letter that is taken for a digit. */
const ID_CHARACTERS = '0123456789ABCDEFGHJKMNPQRSTVWXYZ';
/** Request ids start with a time, as ULIDs do. It is made up: a generator that asked the clock could not be repeated. */
const FIRST_REQUEST_AT_MS = 1_780_300_800_000;

interface Account {
  readonly id: string;
  readonly profile: CurrencyProfile;
}

/**
 * @remarks Request ids are unique within one call. An account's id and currency depend on its number alone, so runs with
 * different seeds charge the same accounts in the same currency.
 * @throws {ConfigurationError} listing every wrong option.
 */
export function generateCharges(options: GenerateOptions): readonly Charge[] {
  const accountCount = options.accounts ?? GENERATE_DEFAULTS.accounts;
  checkOptions(options, accountCount);
  const random = seededRandom(options.seed);
  const accounts = Array.from({ length: accountCount }, (_, number) => accountOf(number));
  let atMs = FIRST_REQUEST_AT_MS;
  return Array.from({ length: options.count }, () => {
    // Never two in one millisecond: this is what makes the ids unique.
    atMs += 1 + Math.floor(random() * 900);
    return chargeAt(atMs, skewedPick(accounts, random), random);
  });
}

function chargeAt(atMs: number, account: Account, random: Random): Charge {
  const { profile } = account;
  return {
    requestId: `req_${timeCharacters(atMs)}${randomCharacters(16, random)}`,
    accountId: account.id,
    amountMinor: amountOf(profile, random),
    currency: profile.currency,
    description: `${pick(profile.merchants, random)}, ${purposeOf(random)}`,
  };
}

/** The number keeps ids unique, the letters keep them from looking like a row. */
function accountOf(number: number): Account {
  const random = seededRandom(number);
  const profiles = CURRENCY_PROFILES.flatMap((profile) => Array.from({ length: profile.weight }, () => profile));
  return {
    id: `acct_${randomCharacters(6, random)}${String(number).padStart(4, '0')}`,
    profile: pick(profiles, random),
  };
}

/** Many small amounts, few large ones, most of them just below a round price. */
function amountOf(profile: CurrencyProfile, random: Random): number {
  // Only multiplications: what Math.exp and Math.pow give may differ in the last digit from one machine to another.
  const draw = random();
  const euros = 2 + 380 * draw * draw * draw * draw;
  const units = Math.max(1, Math.round(euros * profile.perEuro));
  if (profile.minorDigits === 0) return units;
  const cents = pick([99, 95, 90, 50, 0, Math.floor(random() * 100)], random);
  return units * 10 ** profile.minorDigits + cents;
}

function purposeOf(random: Random): string {
  const orderNumber = 10_000 + Math.floor(random() * 90_000);
  return pick(PURPOSES, random).replace('#', String(orderNumber));
}

/** The square of a uniform draw: of 60 accounts the first six get about a third of all charges. */
function skewedPick(accounts: readonly Account[], random: Random): Account {
  const draw = random();
  return itemAt(accounts, Math.floor(draw * draw * accounts.length));
}

function pick<Item>(items: readonly Item[], random: Random): Item {
  return itemAt(items, Math.floor(random() * items.length));
}

function itemAt<Item>(items: readonly Item[], index: number): Item {
  const item = items[index];
  if (item === undefined) throw new Error(`invariant: no item ${String(index)} of ${String(items.length)}`);
  return item;
}

function randomCharacters(length: number, random: Random): string {
  return Array.from({ length }, () => ID_CHARACTERS.charAt(Math.floor(random() * 32))).join('');
}

function timeCharacters(atMs: number): string {
  let rest = atMs;
  let text = '';
  while (text.length < 10) {
    text = ID_CHARACTERS.charAt(rest % 32) + text;
    rest = Math.floor(rest / 32);
  }
  return text;
}

function checkOptions({ count, seed }: GenerateOptions, accounts: number): void {
  const ranges = [
    { name: 'count', value: count, min: 0, max: 1_000_000 },
    { name: 'seed', value: seed, min: 0, max: 4_294_967_295 },
    { name: 'accounts', value: accounts, min: 1, max: 10_000 },
  ];
  const faults = ranges.flatMap(({ name, value, min, max }): OptionFault[] => {
    if (Number.isInteger(value) && value >= min && value <= max) return [];
    return [{ name, rule: `a whole number from ${String(min)} to ${String(max)}`, value }];
  });
  if (faults.length > 0) throw new ConfigurationError('generateCharges', faults);
}
