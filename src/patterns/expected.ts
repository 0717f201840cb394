/** What a walk-through must come to, and how what it came to differs from it. */
import { isDeepStrictEqual } from 'node:util';

export type Json = string | number | boolean | null | readonly Json[] | { readonly [name: string]: Json };

/** Results by name, in the order in which they came about. */
export type Results = Readonly<Record<string, Json>>;

/** Stands for all values that will do where more than one does. */
export class Rule {
  /** Completes "expected ...". */
  readonly says: string;
  readonly #holds: (value: Json) => boolean;

  constructor(says: string, holds: (value: Json) => boolean) {
    this.says = says;
    this.#holds = holds;
  }

  holds(value: Json): boolean {
    return this.#holds(value);
  }
}

export type Expected = Readonly<Record<string, Json | Rule>>;

/** One sentence per result that is missing, wrong, or not expected at all; none when everything is as it must be. */
export function differencesOf(expected: Expected, results: Results): string[] {
  const wrong = Object.entries(expected).flatMap(([name, wanted]) => {
    const found = results[name];
    if (found === undefined) return [`${name}: expected ${describe(wanted)}, but it never came about`];
    const fits = wanted instanceof Rule ? wanted.holds(found) : isDeepStrictEqual(found, wanted);
    return fits ? [] : [`${name}: expected ${describe(wanted)}, found ${describe(found)}`];
  });
  const surplus = Object.keys(results).filter((name) => !Object.hasOwn(expected, name));
  return [
    ...wrong,
    ...surplus.map((name) => `${name}: nothing was expected, found ${describe(results[name] ?? null)}`),
  ];
}

/** As it will be printed: what JSON cannot say (undefined) becomes null, or is left out of objects. */
export function toJson(value: unknown): Json {
  return JSON.parse(JSON.stringify(value ?? null)) as Json;
}

function describe(value: Json | Rule): string {
  return value instanceof Rule ? value.says : JSON.stringify(value);
}
