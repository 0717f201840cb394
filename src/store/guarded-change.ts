/** Changes that carry the rule which makes them safe: what is changed and when it may be changed, in one value. */
import { ConfigurationError, type OptionFault } from '../errors.ts';
import { any, atLeast, atMost, attributeAbsent, oneOf } from './conditions.ts';
import { minus, plus, type Change, type Condition } from './expressions.ts';

/** A change and the condition under which it may be made; spread both into an action or hand them to `items.update`. */
export interface GuardedChange {
  readonly change: Change;
  readonly condition: Condition;
}

/**
 * Takes `amount` while at least that much is there. Of several at once, only as many succeed as there is enough for.
 * An absent attribute holds nothing: refused. Never with `whenUnanswered: 'repeat'`: sent again, it spends again.
 * @param amount above 0, at most 2^53 - 1.
 * @throws {ConfigurationError}
 */
export function spend(attribute: string, amount: number): GuardedChange {
  check('spend', faultOfAmount(amount, amount > 0 && amount <= Number.MAX_SAFE_INTEGER, 'a number above 0'));
  return { change: { set: { [attribute]: minus(amount) } }, condition: atLeast(attribute, amount) };
}

/**
 * Adds `amount` while the result stays at or below `ceiling`; an absent attribute counts as 0.
 * @param amount whole, from 1. DynamoDB compares but does not calculate in conditions, so what may be there before is
 * calculated here, and fractions would be rounded.
 * @param ceiling whole.
 * @throws {ConfigurationError}
 */
export function fill(attribute: string, amount: number, ceiling: number): GuardedChange {
  const isWhole = Number.isSafeInteger(ceiling);
  check(
    'fill',
    faultOfAmount(amount, Number.isSafeInteger(amount) && amount > 0, 'a whole number from 1'),
    isWhole ? undefined : { name: 'ceiling', rule: 'a whole number', value: ceiling },
  );
  const fits = atMost(attribute, ceiling - amount);
  return {
    change: { set: { [attribute]: plus(amount, 0) } },
    condition: amount <= ceiling ? any(attributeAbsent(attribute), fits) : fits,
  };
}

/**
 * Moves a state machine from one of `from` to `to`; `set` is written together with it. Of several that try, one
 * succeeds: the others find the state changed.
 * @param step `from`: 1-100 states, `to` not among them, or a second try could not be told from the first.
 * @throws {ConfigurationError}
 */
export function transition(
  attribute: string,
  step: { readonly from: string | readonly string[]; readonly to: string; readonly set?: Change['set'] },
): GuardedChange {
  const from = typeof step.from === 'string' ? [step.from] : step.from;
  const others = step.set ?? {};
  check(
    'transition',
    from.includes(step.to) ? { name: 'to', rule: 'a state that is not among `from`', value: step.to } : undefined,
    Object.hasOwn(others, attribute)
      ? { name: 'set', rule: 'not the state itself: `to` says it', value: attribute }
      : undefined,
  );
  return { change: { set: { ...others, [attribute]: step.to } }, condition: oneOf(attribute, from) };
}

function faultOfAmount(value: number, isGood: boolean, rule: string): OptionFault | undefined {
  return isGood ? undefined : { name: 'amount', rule, value };
}

function check(subject: string, ...found: readonly (OptionFault | undefined)[]): void {
  const faults = found.filter((fault) => fault !== undefined);
  if (faults.length > 0) throw new ConfigurationError(subject, faults);
}
