/**
 * The rules by which the local provider misbehaves. Pure: it only counts and picks; what an effect does is done by
 * whoever answers the request.
 */
import { randomUUID } from 'node:crypto';
import { z } from 'zod';

/**
 * - `fail-before`: 500, nothing charged, the key stays free.
 * - `fail-after`: charges, then cuts the connection.
 * - `late`: charges, answers after `delayMs`.
 * - `hold`: charges, then keeps the answer until it is released or the caller goes.
 * - `decline`: charges nothing and answers declined, for good for that key.
 */
export type FaultEffect = 'fail-before' | 'fail-after' | 'late' | 'hold' | 'decline';

/** What `POST /_faults` takes. */
export interface FaultRuleInput {
  /** Names the rule. 1 to 100 characters. @defaultValue a random UUID */
  readonly id?: string | undefined;
  /** Which requests; all given conditions must hold. @defaultValue every request */
  readonly match: {
    readonly reference?: string | undefined;
    readonly caller?: string | undefined;
    /** Takes effect from the nth request on that fits `reference` and `caller`. Minimum: 1. @defaultValue 1 */
    readonly nth?: number | undefined;
  };
  readonly effect: FaultEffect;
  /** Only for `late`, and needed there. Unit: ms. Range: 0-600000. */
  readonly delayMs?: number | undefined;
  /** For how many requests. Minimum: 1. @defaultValue 1 */
  readonly times: number;
}

/** A rule and what became of it. */
export interface FaultRule extends FaultRuleInput {
  readonly id: string;
  /** Requests that fitted `reference` and `caller`. */
  readonly seen: number;
  /** Requests the rule took effect on; never above `times`. */
  readonly effective: number;
}

/** What a rule can look at. `fresh` means that the key has no answer yet. */
export interface FaultSubject {
  readonly reference: string;
  readonly caller: string | null;
  readonly fresh: boolean;
}

const count = z.int().min(1).max(1_000_000);

export const faultRuleSchema: z.ZodType<FaultRuleInput> = z
  .strictObject({
    id: z.string().min(1).max(100).optional(),
    match: z
      .strictObject({ reference: z.string().optional(), caller: z.string().optional(), nth: count.optional() })
      .default({}),
    effect: z.enum(['fail-before', 'fail-after', 'late', 'hold', 'decline']),
    delayMs: z.int().min(0).max(600_000).optional(),
    times: count.default(1),
  })
  .refine((rule) => (rule.effect === 'late') === (rule.delayMs !== undefined), {
    path: ['delayMs'],
    error: 'is needed for the effect "late" and for no other',
  });

const MAX_RULES = 100;

type Counted = { -readonly [K in keyof FaultRule]: FaultRule[K] };

/** An ordered, bounded list of rules. The first rule that may act on a request does; at most one acts. */
export class ProviderFaults {
  readonly #rules = new Map<string, Counted>();

  /** @returns the rule, or why it was not added: its id is taken, or all places are held by rules not yet spent. */
  add(input: FaultRuleInput): FaultRule | 'id-taken' | 'full' {
    const id = input.id ?? randomUUID();
    if (this.#rules.has(id)) return 'id-taken';
    if (this.#rules.size >= MAX_RULES && !this.#dropOldestSpent()) return 'full';
    const rule = { ...input, id, seen: 0, effective: 0 };
    this.#rules.set(id, rule);
    return { ...rule };
  }

  /** Counts the request at every rule that fits it, and takes the first rule that acts on it. */
  take(subject: FaultSubject): FaultRule | undefined {
    let taken: Counted | undefined;
    for (const rule of this.#rules.values()) {
      if (!fits(rule, subject)) continue;
      rule.seen += 1;
      if (taken === undefined && mayAct(rule, subject)) taken = rule;
    }
    if (taken === undefined) return undefined;
    taken.effective += 1;
    return { ...taken };
  }

  has(id: string): boolean {
    return this.#rules.has(id);
  }

  list(): FaultRule[] {
    return [...this.#rules.values()].map((rule) => ({ ...rule }));
  }

  clear(): void {
    this.#rules.clear();
  }

  #dropOldestSpent(): boolean {
    for (const [id, rule] of this.#rules) {
      if (rule.effective >= rule.times) return this.#rules.delete(id);
    }
    return false;
  }
}

function fits({ match }: FaultRule, subject: FaultSubject): boolean {
  return (
    (match.reference === undefined || match.reference === subject.reference) &&
    (match.caller === undefined || match.caller === subject.caller)
  );
}

function mayAct(rule: FaultRule, { fresh }: FaultSubject): boolean {
  if (rule.effective >= rule.times || rule.seen < (rule.match.nth ?? 1)) return false;
  // An answer once given is not taken back, so a decline has nothing to act on here.
  return rule.effect !== 'decline' || fresh;
}
