import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { ConfigurationError } from '../../src/errors.ts';
import { normaliseEmail, normaliseText, normaliseUserName } from '../../src/store/unique/normalise.ts';

type Normalise = (value: string) => string;

/** What it refuses is no matter for these properties. */
function attempt(normalise: Normalise, value: string): string | undefined {
  try {
    return normalise(value);
  } catch (error) {
    if (error instanceof ConfigurationError) return undefined;
    throw error;
  }
}

const RULES: readonly [string, Normalise][] = [
  ['normaliseText', normaliseText],
  ['normaliseEmail', normaliseEmail],
  ['normaliseUserName', normaliseUserName],
];
const LONE_SURROGATE = '\ud83d';

test.each(RULES)('%s changes nothing about its own result, whatever it is given', (_name, normalise) => {
  const odd = fc.constantFrom(
    'İ',
    'ı',
    'ß',
    'ẞ',
    'ﬀ',
    'ſ',
    'Σ',
    'ς',
    '\u0345',
    'ǰ',
    'ΐ',
    '¨',
    'K',
    'Å',
    '㎏',
    '\u200d',
    '＠',
    '@',
    '.',
    ' ',
    'xn--',
  );
  const text = fc.array(fc.oneof(odd, fc.string({ unit: 'binary', maxLength: 3 }), fc.string({ maxLength: 3 })));
  fc.assert(
    fc.property(text, (parts) => {
      const once = attempt(normalise, parts.join(''));
      expect(once === undefined ? undefined : normalise(once)).toBe(once);
    }),
    { numRuns: 2_000 },
  );
});

test.each(['a@1', 'a@0', 'a@256', 'a@4294967295', 'a@0x7f.1', 'a@1.2', 'a@01.2.3.4', 'a@１'])(
  'normaliseEmail makes no address of a host of %j',
  (value) => {
    expect(() => normaliseEmail(value)).toThrow(ConfigurationError);
  },
);

test('normaliseEmail leaves a number of a host that is written out as it is', () => {
  expect(normaliseEmail('a@127.0.0.1')).toBe('a@127.0.0.1');
});

test('normaliseText makes the two cases of every letter of Unicode equal, and settles on each', () => {
  const isLetter = /[\p{L}\p{M}\p{N}\p{S}]/u;
  const wrong: string[] = [];
  for (let code = 0; code <= 0x3_ff_ff; code += 1) {
    const letter = String.fromCodePoint(code);
    if (!isLetter.test(letter)) continue;
    const once = normaliseText(letter);
    // The upper case of the dotless i is the I of another letter.
    const cases = letter === 'ı' ? [] : [letter.toUpperCase(), letter.toLowerCase()];
    const others = new Set([once, ...cases].filter((other) => other !== letter));
    if ([...others].some((other) => normaliseText(other) !== once)) wrong.push(code.toString(16));
  }
  expect(wrong).toEqual([]);
});

describe('texts', () => {
  test.each([
    ['case', 'Ada', 'aDA'],
    ['space around', ' \t\n ada \u00a0\u3000', 'ada'],
    ['full-width letters', 'ＡＤＡ', 'ada'],
    ['ligatures', 'ﬁnn', 'FINN'],
    ['sharp s', 'Straße', 'STRASSE'],
    ['capital sharp s', 'STRAẞE', 'strasse'],
    ['final sigma', 'ΟΔΟΣ', 'οδος'],
    ['composed and decomposed letters', '\u00e9', 'e\u0301'],
    ['the Kelvin sign and the letter', '\u212a', 'k'],
    ['a space that only appears by NFKC', '\u00a8', '\u0308'],
    ['the dotted capital I and its parts', 'İ', 'i\u0307'],
  ])('of texts that differ by %s are equal', (_difference, left, right) => {
    expect(normaliseText(left)).toBe(normaliseText(right));
  });

  test.each([
    ['another letter that looks alike', 'ada', '\u0430da'],
    ['dotless i', 'ılgaz', 'ilgaz'],
    ['dotted capital I', 'İlgaz', 'ilgaz'],
    ['a space within', 'a da', 'ada'],
    ['an accent', 'adá', 'ada'],
  ])('of texts that differ by %s are different', (_difference, left, right) => {
    expect(normaliseText(left)).not.toBe(normaliseText(right));
  });
});

describe('e-mail addresses', () => {
  test.each([
    ['case', 'Ada@X.com', 'aDA@x.COM'],
    ['a domain in Unicode or ASCII', 'ada@MÜNCHEN.de', 'ada@xn--mnchen-3ya.de'],
    ['the dot at the end of a domain', 'ada@x.com.', 'ada@x.com'],
    ['full-width signs', 'ada＠x．com', 'ada@x.com'],
    ['ideographic full stops', 'ada@x。com', 'ada@x.com'],
  ])('of e-mail addresses that differ by %s are equal', (_difference, left, right) => {
    expect(normaliseEmail(left)).toBe(normaliseEmail(right));
  });

  test.each([
    ['dots before the @', 'a.da@x.com', 'ada@x.com'],
    ['a tag', 'ada+shop@x.com', 'ada@x.com'],
    ['a sharp s in the domain, which DNS keeps apart', 'ada@faß.de', 'ada@fass.de'],
    ['the domain', 'ada@x.com', 'ada@x.org'],
  ])('of e-mail addresses that differ by %s are different', (_difference, left, right) => {
    expect(normaliseEmail(left)).not.toBe(normaliseEmail(right));
  });

  test.each([
    ['no @', 'ada.x.com'],
    ['two @', 'ada@b@x.com'],
    ['nothing before the @', '@x.com'],
    ['nothing after the @', 'ada@'],
    ['a space within', 'ada lovelace@x.com'],
    ['an invisible character', 'a\u200bda@x.com'],
    ['a domain with a port', 'ada@x.com:80'],
    ['a domain with a path', 'ada@x.com/y'],
    ['a domain with escapes', 'ada@ex%61mple.com'],
    ['a domain with an empty label', 'ada@x..com'],
    ['a domain of dots', 'ada@.'],
    ['a domain in brackets', 'ada@[::1]'],
    ['a domain that no host can have', 'ada@999.999.999.999'],
  ])('with %s are refused', (_fault, value) => {
    expect(() => normaliseEmail(value)).toThrow(ConfigurationError);
  });
});

describe('user names', () => {
  test.each([
    ['spaces', 'ada lovelace'],
    ['zero-width characters', 'ad\u200ba'],
    ['soft hyphens', 'ad\u00ada'],
    ['letters that show nothing', 'ada\u3164'],
    ['variation selectors', 'ada\ufe0f'],
    ['directions', '\u202eada'],
  ])('with %s within are refused', (_fault, value) => {
    expect(() => normaliseUserName(value)).toThrow(ConfigurationError);
  });

  test('are equal by case, and keep signs and digits', () => {
    expect(normaliseUserName(' Ada_99-x ')).toBe('ada_99-x');
  });
});

test.each(
  RULES.flatMap(([name, normalise]) => [
    { name, normalise, what: 'nothing', value: '' },
    { name, normalise, what: 'spaces alone', value: ' \n\u3000' },
    { name, normalise, what: 'a control character within', value: 'a\u0000b@x.com' },
    { name, normalise, what: 'a line break within', value: 'a\nb@x.com' },
    { name, normalise, what: 'half a surrogate pair', value: `a${LONE_SURROGATE}@x.com` },
    { name, normalise, what: 'more than any key can hold', value: `${'a'.repeat(8_192)}@x.com` },
    { name, normalise, what: 'no text', value: 5 as unknown as string },
  ]),
)('$name refuses $what', ({ normalise, value }) => {
  expect(() => normalise(value)).toThrow(ConfigurationError);
});

test('a refusal does not repeat what a person typed', () => {
  const typed = 'ada.lovelace\u0000@secret.example';

  const refusals = RULES.map(([, normalise]) => {
    try {
      return normalise(typed);
    } catch (error) {
      return String(error) + JSON.stringify(error);
    }
  });

  for (const refusal of refusals) expect(refusal).not.toMatch(/lovelace|secret/);
});
