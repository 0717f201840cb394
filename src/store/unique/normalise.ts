/**
 * Makes values equal that people take for equal, so that `A@x.com` and `a@x.com` are one address.
 *
 * Each rule is stable: applied to its own result it changes nothing. What it cannot make comparable it refuses with a
 * ConfigurationError, which never repeats the value: values are addresses and names of people. Rules do not depend on a
 * language, and letters that merely look alike (Latin and Cyrillic a) stay different.
 */
import { isIPv4 } from 'node:net';
import { domainToASCII } from 'node:url';
import { ConfigurationError } from '../../errors.ts';

/**
 * The form of a value in which it is compared and must exist once. Stable: its own result stays as it is. To refuse a
 * value it throws; what it makes must be a well-formed text, not empty, that fits into a key.
 */
export type Normalise = (value: string) => string;

/** More than any key can hold, however much shorter the normal form is. Unit: UTF-16 code units. */
const MAX_LENGTH = 8_192;

/** Unicode's own forms settle after two or three rounds; the bound is for what nobody thought of. */
const MAX_ROUNDS = 10;

/**
 * For texts in general: Unicode NFKC (full-width letters, ligatures and the like become plain ones), case folding, and
 * no space around it. Spaces within and invisible characters count.
 * @throws {ConfigurationError} for what is empty, too long, no well-formed Unicode, or holds control characters.
 * @see Unicode Standard Annex 15 (NFKC), and the standard's section 3.13 (default caseless matching)
 */
export function normaliseText(value: string): string {
  return settled('text', value, foldText);
}

/**
 * For e-mail addresses: the part before the @ as a text, and the domain as DNS compares it (IDNA, ASCII form, without a
 * dot at its end). Providers' own habits, such as dots and `+tags` that one of them ignores, are not followed: to others
 * these are different people. Quoted parts with spaces and addresses of numbers in brackets are refused.
 * @throws {ConfigurationError} for what is no address, and as `normaliseText` does.
 * @see RFC 5321 section 2.3.11, Unicode Technical Standard 46 (as `domainToASCII` follows it)
 */
export function normaliseEmail(value: string): string {
  return settled('e-mail address', value, foldEmail);
}

/**
 * For names that people log in with: as a text, and without any space or invisible character within, because nobody
 * could tell such names apart.
 * @throws {ConfigurationError} for these, and as `normaliseText` does.
 */
export function normaliseUserName(value: string): string {
  return settled('user name', value, (text) => {
    const folded = foldText(text);
    if (UNSEEN.test(folded)) refuse('user name', 'no spaces and no invisible characters within', folded);
    return folded;
  });
}

/** The rules of this module by the names under which sentinels remember them. */
export const NORMALISERS: Readonly<Record<string, Normalise>> = {
  text: normaliseText,
  email: normaliseEmail,
  userName: normaliseUserName,
};

const CONTROL = /\p{Cc}/u;
const UNSEEN = /[\p{Z}\p{Cf}\p{Co}\p{Default_Ignorable_Code_Point}]/u;
/** What a URL would read something into: `domainToASCII` parses a host, and must be given nothing else. */
const NO_DOMAIN = /[\s%/\\?#:@<>^|[\]]|^\.|\.\.|\.$|^$/u;

function settled(name: string, value: unknown, fold: Normalise): string {
  if (typeof value !== 'string') throw fault(name, 'a text', typeof value);
  if (value.length > MAX_LENGTH) refuse(name, `at most ${String(MAX_LENGTH)} characters`, value);
  if (!value.isWellFormed()) refuse(name, 'well-formed Unicode, without half a surrogate pair', value);
  let text = value.trim();
  for (let round = 1; round <= MAX_ROUNDS; round += 1) {
    if (text === '') refuse(name, 'not empty', text);
    if (CONTROL.test(text)) refuse(name, 'no control characters', text);
    const folded = fold(text);
    if (folded === text) return text;
    text = folded;
  }
  return refuse(name, 'a text with a normal form', text);
}

function foldText(text: string): string {
  return foldCase(text.normalize('NFKC')).normalize('NFKC').trim();
}

/** Upper case first: it takes ß, ς and ligatures apart, which lower case alone leaves as they are. */
function foldCase(text: string): string {
  // Letter by letter: the lower case of a whole word would make its last sigma another letter than the others.
  return Array.from(text, foldLetter).join('');
}

function foldLetter(letter: string): string {
  // The upper case of the dotless i is I, but Unicode does not fold the two together.
  if (letter === 'ı') return letter;
  return Array.from(letter.toUpperCase(), (upper) => upper.toLowerCase()).join('');
}

function foldEmail(text: string): string {
  const plain = text.normalize('NFKC').trim();
  const [local = '', domain = '', ...more] = plain.split('@');
  if (local === '' || domain === '' || more.length > 0)
    refuse('e-mail address', 'one @ between name and domain', plain);
  if (UNSEEN.test(plain)) refuse('e-mail address', 'no spaces and no invisible characters', plain);
  return `${foldText(local)}@${asciiDomain(domain)}`;
}

/** IDNA folds case itself, and by its own rules: ß and ss are two domains. */
function asciiDomain(domain: string): string {
  const relative = domain.replace(/\.$/, '');
  const ascii = NO_DOMAIN.test(relative) ? '' : domainToASCII(relative);
  // To a URL, 1 and 0x7f.1 are addresses of hosts. To mail they are no domains, and not the same as the host's.
  const isHostNumber = isIPv4(ascii) && ascii !== relative;
  if (ascii === '' || isHostNumber) refuse('e-mail address', 'a domain after the @', domain);
  return ascii;
}

function refuse(name: string, rule: string, text: string): never {
  throw fault(name, rule, text === '' ? text : `${String(text.length)} characters`);
}

function fault(name: string, rule: string, value: unknown): ConfigurationError {
  return new ConfigurationError('unique value', [{ name, rule, value }]);
}
