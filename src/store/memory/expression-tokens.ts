/** Cuts an expression into tokens and walks over them. */
import { invalid } from './service-error.ts';

export type TokenKind = 'name' | '#name' | ':value' | 'number' | 'sign' | 'end';

export interface Token {
  readonly kind: TokenKind;
  readonly text: string;
}

/** @see AWS: DynamoDB quotas, expression parameters */
const MAX_EXPRESSION_BYTES = 4_096;

const TOKEN = /\s*(?:([A-Za-z]\w*)|(#\w+)|(:\w+)|(\d+)|(<>|<=|>=|[=<>(),.[\]+-]))/y;
const KINDS: readonly TokenKind[] = ['name', '#name', ':value', 'number', 'sign'];
const END: Token = { kind: 'end', text: '<EOF>' };

export class Tokens {
  /** The kind of expression, for messages: `ConditionExpression`. */
  readonly label: string;
  readonly #tokens: readonly Token[];
  #position = 0;

  constructor(label: string, expression: string) {
    this.label = label;
    if (expression === '') throw this.fault('The expression can not be empty;');
    if (Buffer.byteLength(expression) > MAX_EXPRESSION_BYTES) {
      throw this.fault('Expression size has exceeded the maximum allowed size;');
    }
    this.#tokens = [...this.#cut(expression)];
  }

  get position(): number {
    return this.#position;
  }

  get next(): Token {
    return this.#tokens[this.#position] ?? END;
  }

  take(): Token {
    const token = this.next;
    this.#position += 1;
    return token;
  }

  /** Takes this sign when it is next. */
  takeSign(sign: string): boolean {
    if (this.next.kind !== 'sign' || this.next.text !== sign) return false;
    this.#position += 1;
    return true;
  }

  /** Takes this keyword, in any case, when it is next. */
  takeWord(word: string): boolean {
    if (!this.isWord(word)) return false;
    this.#position += 1;
    return true;
  }

  isWord(word: string): boolean {
    return this.next.kind === 'name' && this.next.text.toUpperCase() === word;
  }

  /** Takes the name of a function and its opening bracket, when both are next. */
  takeFunction(): string | undefined {
    const bracket = this.#tokens[this.#position + 1];
    if (this.next.kind !== 'name' || bracket?.text !== '(') return undefined;
    this.#position += 2;
    return this.#tokens[this.#position - 2]?.text;
  }

  expectSign(sign: string): void {
    if (!this.takeSign(sign)) throw this.unexpected();
  }

  expectWord(word: string): void {
    if (!this.takeWord(word)) throw this.unexpected();
  }

  expectEnd(): void {
    if (this.next.kind !== 'end') throw this.unexpected();
  }

  unexpected(): Error {
    return this.fault(`Syntax error; token: "${this.next.text}"`);
  }

  fault(message: string): Error {
    return invalid(`Invalid ${this.label}: ${message}`);
  }

  *#cut(expression: string): Generator<Token> {
    const text = expression.trimEnd();
    const cutter = new RegExp(TOKEN);
    while (cutter.lastIndex < text.length) {
      const from = cutter.lastIndex;
      const match = cutter.exec(text);
      if (match === null) throw this.fault(`Syntax error; token: "${text.slice(from, from + 20)}"`);
      const kind = KINDS[match.slice(1).findIndex((part) => part !== undefined)] ?? 'sign';
      yield { kind, text: match[0].trimStart() };
    }
  }
}
