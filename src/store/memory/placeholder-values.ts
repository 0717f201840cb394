/** What the placeholders of one request stand for. All its expressions share them, and each must be used. */
import { invalid, type ServiceError } from './service-error.ts';
import type { Tokens } from './expression-tokens.ts';
import { isRecord, parseValue, type Value } from './values.ts';

/** Where in an item: names lead into maps, numbers into lists. The first is always a name. */
export type Path = readonly (string | number)[];

export class PlaceholderValues {
  readonly #names: ReadonlyMap<string, string>;
  readonly #values: ReadonlyMap<string, Value>;
  readonly #used = new Set<string>();

  /** @param request holds ExpressionAttributeNames and ExpressionAttributeValues, or neither. */
  constructor(request: Readonly<Record<string, unknown>>) {
    this.#names = new Map(fieldsOf(request, 'ExpressionAttributeNames', '#').map(([key, name]) => [key, nameOf(name)]));
    this.#values = new Map(
      fieldsOf(request, 'ExpressionAttributeValues', ':').map(([key, value]) => [key, parseValue(value)]),
    );
  }

  /** Takes a document path. Bare names are taken as they are: which words are reserved is not known here. */
  takePath(tokens: Tokens): Path {
    const path: (string | number)[] = [this.#takeName(tokens)];
    for (;;) {
      if (tokens.takeSign('.')) path.push(this.#takeName(tokens));
      else if (tokens.takeSign('[')) path.push(takeIndex(tokens));
      else return path;
    }
  }

  takeValue(tokens: Tokens): Value {
    const { text } = tokens.take();
    const value = this.#values.get(text);
    if (value === undefined) {
      throw tokens.fault(`An expression attribute value used in expression is not defined; attribute value: ${text}`);
    }
    this.#used.add(text);
    return value;
  }

  /** @throws {ServiceError} when a placeholder was given and not used. */
  checkAllUsed(): void {
    for (const [what, given] of [
      ['Names', this.#names],
      ['Values', this.#values],
    ] as const) {
      const unused = [...given.keys()].filter((key) => !this.#used.has(key));
      if (unused.length > 0) {
        throw invalid(
          `Value provided in ExpressionAttribute${what} unused in expressions: keys: {${unused.join(', ')}}`,
        );
      }
    }
  }

  #takeName(tokens: Tokens): string {
    const token = tokens.next;
    if (token.kind === 'name') return tokens.take().text;
    if (token.kind !== '#name') throw tokens.unexpected();
    const name = this.#names.get(tokens.take().text);
    if (name === undefined) {
      throw tokens.fault(
        `An expression attribute name used in the document path is not defined; attribute name: ${token.text}`,
      );
    }
    this.#used.add(token.text);
    return name;
  }
}

function takeIndex(tokens: Tokens): number {
  if (tokens.next.kind !== 'number') throw tokens.unexpected();
  const index = Number(tokens.take().text);
  tokens.expectSign(']');
  return index;
}

function fieldsOf(request: Readonly<Record<string, unknown>>, field: string, mark: string): [string, unknown][] {
  const given = request[field];
  if (given === undefined) return [];
  if (!isRecord(given)) throw invalid(`${field} must be a map`);
  const entries = Object.entries(given);
  if (entries.length === 0) throw invalid(`${field} must not be empty`);
  const wrong = entries.find(([key]) => !key.startsWith(mark) || !/^\w+$/.test(key.slice(1)));
  if (wrong !== undefined) throw wrongKey(field, wrong[0]);
  return entries;
}

function wrongKey(field: string, key: string): ServiceError {
  return invalid(`${field} contains invalid key: Syntax error; key: "${key}"`);
}

function nameOf(name: unknown): string {
  if (typeof name !== 'string' || name === '')
    throw invalid('ExpressionAttributeNames must hold names that are not empty');
  return name;
}
