/** Reads update expressions. @see AWS: Using update expressions in DynamoDB */
import type { Tokens } from './expression-tokens.ts';
import type { Path, PlaceholderValues } from './placeholder-values.ts';
import { isSet, type Value } from './values.ts';

/** A right-hand side. Everything in it is read from the item as it was before the update. */
export type Term =
  | { readonly kind: 'path'; readonly path: Path }
  | { readonly kind: 'value'; readonly value: Value }
  | { readonly kind: 'if not exists'; readonly path: Path; readonly otherwise: Term }
  | { readonly kind: 'append'; readonly left: Term; readonly right: Term }
  | { readonly kind: 'plus' | 'minus'; readonly left: Term; readonly right: Term };

export type UpdateAction =
  | { readonly kind: 'SET'; readonly path: Path; readonly term: Term }
  | { readonly kind: 'REMOVE'; readonly path: Path }
  | { readonly kind: 'ADD' | 'DELETE'; readonly path: Path; readonly value: Value };

const CLAUSES = ['SET', 'REMOVE', 'ADD', 'DELETE'] as const;

/** @throws {ServiceError} ValidationException when it is no valid expression, or two of its paths meet. */
export function parseUpdate(tokens: Tokens, placeholders: PlaceholderValues): readonly UpdateAction[] {
  const parser = new UpdateParser(tokens, placeholders);
  const actions: UpdateAction[] = [];
  const seen = new Set<string>();
  while (tokens.next.kind !== 'end') {
    const clause = CLAUSES.find((word) => tokens.takeWord(word));
    if (clause === undefined) throw tokens.unexpected();
    if (seen.has(clause)) throw tokens.fault(`The "${clause}" section can only be used once in an update expression;`);
    seen.add(clause);
    do actions.push(parser.action(clause));
    while (tokens.takeSign(','));
  }
  checkPaths(tokens, actions);
  return actions;
}

class UpdateParser {
  readonly #tokens: Tokens;
  readonly #placeholders: PlaceholderValues;

  constructor(tokens: Tokens, placeholders: PlaceholderValues) {
    this.#tokens = tokens;
    this.#placeholders = placeholders;
  }

  action(clause: (typeof CLAUSES)[number]): UpdateAction {
    const path = this.#placeholders.takePath(this.#tokens);
    switch (clause) {
      case 'SET':
        this.#tokens.expectSign('=');
        return { kind: 'SET', path, term: this.#sum() };
      case 'REMOVE':
        return { kind: 'REMOVE', path };
      case 'ADD':
      case 'DELETE': {
        if (this.#tokens.next.kind !== ':value') throw this.#tokens.unexpected();
        const value = this.#placeholders.takeValue(this.#tokens);
        const isFit = isSet(value) || (clause === 'ADD' && value.type === 'N');
        if (!isFit) throw this.#wrongType(clause, value);
        return { kind: clause, path, value };
      }
    }
  }

  /** One term, or two with `+` or `-` between them; never three. */
  #sum(): Term {
    const left = this.#term();
    const sign = ['+', '-'].find((each) => this.#tokens.takeSign(each));
    if (sign === undefined) return left;
    const right = this.#term();
    for (const each of [left, right]) {
      if (each.kind === 'value' && each.value.type !== 'N') throw this.#wrongType(sign, each.value);
      if (each.kind === 'append') throw this.#tokens.fault(`Incorrect operand type for operator or function: ${sign}`);
    }
    return { kind: sign === '+' ? 'plus' : 'minus', left, right };
  }

  #term(): Term {
    const name = this.#tokens.takeFunction();
    if (name !== undefined) return this.#function(name);
    if (this.#tokens.next.kind === ':value') {
      return { kind: 'value', value: this.#placeholders.takeValue(this.#tokens) };
    }
    return { kind: 'path', path: this.#placeholders.takePath(this.#tokens) };
  }

  #function(name: string): Term {
    if (name !== 'if_not_exists' && name !== 'list_append') {
      throw this.#tokens.fault(`Invalid function name; function: ${name}`);
    }
    const left = this.#term();
    this.#tokens.expectSign(',');
    const right = this.#term();
    this.#tokens.expectSign(')');
    if (name === 'if_not_exists') {
      if (left.kind !== 'path') {
        throw this.#tokens.fault(`Operator or function requires a document path; operator or function: ${name}`);
      }
      return { kind: 'if not exists', path: left.path, otherwise: right };
    }
    for (const each of [left, right]) {
      if (each.kind === 'value' && each.value.type !== 'L') throw this.#wrongType(name, each.value);
      if (each.kind === 'append') {
        throw this.#tokens.fault(
          'The function is not allowed to be used this way in an expression; function: list_append',
        );
      }
    }
    return { kind: 'append', left, right };
  }

  #wrongType(by: string, value: Value): Error {
    return this.#tokens.fault(
      `Incorrect operand type for operator or function; operator: ${by}, operand type: ${value.type}`,
    );
  }
}

function checkPaths(tokens: Tokens, actions: readonly UpdateAction[]): void {
  for (const [index, { path }] of actions.entries()) {
    for (const other of actions.slice(0, index)) {
      const fault = clashOf(path, other.path);
      if (fault !== undefined)
        throw tokens.fault(`Two document paths ${fault} with each other; must remove or rewrite`);
    }
  }
}

/** Paths overlap when one leads into the other, and conflict when they take the same thing for a map and for a list. */
export function clashOf(left: Path, right: Path): 'overlap' | 'conflict' | undefined {
  const length = Math.min(left.length, right.length);
  for (let index = 0; index < length; index += 1) {
    if (left[index] === right[index]) continue;
    return typeof left[index] === typeof right[index] ? undefined : 'conflict';
  }
  return 'overlap';
}
