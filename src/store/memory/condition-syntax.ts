/**
 * Reads condition, filter and key condition expressions into a tree. What can be judged without an item is refused
 * here, as DynamoDB does it before it looks at one.
 * @see AWS: Condition and filter expressions, operators, and functions
 */
import type { Tokens } from './expression-tokens.ts';
import type { Path, PlaceholderValues } from './placeholder-values.ts';
import { compareValues, isScalar, type Value } from './values.ts';

export type Comparator = '=' | '<>' | '<' | '<=' | '>' | '>=';

export type Operand =
  | { readonly kind: 'path'; readonly path: Path }
  | { readonly kind: 'value'; readonly value: Value }
  | { readonly kind: 'size'; readonly of: Operand };

export type ConditionTree =
  | { readonly kind: 'and' | 'or'; readonly parts: readonly ConditionTree[] }
  | { readonly kind: 'not'; readonly part: ConditionTree }
  | { readonly kind: 'compare'; readonly by: Comparator; readonly left: Operand; readonly right: Operand }
  | { readonly kind: 'between'; readonly operand: Operand; readonly low: Operand; readonly high: Operand }
  | { readonly kind: 'in'; readonly operand: Operand; readonly list: readonly Operand[] }
  | { readonly kind: 'exists' | 'not exists'; readonly path: Path }
  | { readonly kind: 'type'; readonly path: Path; readonly type: string }
  | { readonly kind: 'begins with' | 'contains'; readonly operand: Operand; readonly part: Operand };

const COMPARATORS: readonly Comparator[] = ['=', '<>', '<', '<=', '>', '>='];
const TYPES = new Set(['S', 'N', 'B', 'BOOL', 'NULL', 'L', 'M', 'SS', 'NS', 'BS']);
const MAX_LIST = 100;

/** @throws {ServiceError} ValidationException when it is no valid expression. */
export function parseCondition(tokens: Tokens, placeholders: PlaceholderValues): ConditionTree {
  const tree = new ConditionParser(tokens, placeholders).either();
  tokens.expectEnd();
  return tree;
}

class ConditionParser {
  readonly #tokens: Tokens;
  readonly #placeholders: PlaceholderValues;
  /** The brackets that were closed last: nothing but brackets within brackets is refused. */
  #bracket = { from: 0, to: 0 };

  constructor(tokens: Tokens, placeholders: PlaceholderValues) {
    this.#tokens = tokens;
    this.#placeholders = placeholders;
  }

  // OR binds weaker than AND, AND weaker than NOT.
  either(): ConditionTree {
    return this.#joined('or', () => this.#joined('and', () => this.#negatable()));
  }

  #joined(kind: 'and' | 'or', part: () => ConditionTree): ConditionTree {
    const first = part();
    const parts = [first];
    while (this.#tokens.takeWord(kind.toUpperCase())) parts.push(part());
    return parts.length === 1 ? first : { kind, parts };
  }

  #negatable(): ConditionTree {
    if (this.#tokens.takeWord('NOT')) return { kind: 'not', part: this.#negatable() };
    return this.#tokens.takeSign('(') ? this.#bracketed() : this.#single();
  }

  #bracketed(): ConditionTree {
    const from = this.#tokens.position;
    const tree = this.either();
    const isDoubled = this.#bracket.from === from && this.#bracket.to === this.#tokens.position;
    if (isDoubled) throw this.#tokens.fault('The expression has redundant parentheses;');
    this.#tokens.expectSign(')');
    this.#bracket = { from: from - 1, to: this.#tokens.position };
    return tree;
  }

  #single(): ConditionTree {
    const name = this.#tokens.takeFunction();
    if (name !== undefined && name !== 'size') return this.#function(name);
    const operand = name === 'size' ? this.#size() : this.#operand();
    if (this.#tokens.takeWord('BETWEEN')) return this.#between(operand);
    if (this.#tokens.takeWord('IN')) return this.#in(operand);
    const by = COMPARATORS.find((sign) => this.#tokens.takeSign(sign));
    if (by === undefined) throw this.#tokens.unexpected();
    const right = this.#operand();
    if (by !== '=' && by !== '<>') this.#checkOrdered(by, [operand, right]);
    if (isSamePath(operand, right)) {
      throw this.#tokens.fault('The first operand must be distinct from the remaining operands for this operator');
    }
    return { kind: 'compare', by, left: operand, right };
  }

  #between(operand: Operand): ConditionTree {
    const low = this.#operand();
    this.#tokens.expectWord('AND');
    const high = this.#operand();
    this.#checkOrdered('BETWEEN', [operand, low, high]);
    if (low.kind === 'value' && high.kind === 'value') this.#checkBounds(low.value, high.value);
    return { kind: 'between', operand, low, high };
  }

  #in(operand: Operand): ConditionTree {
    this.#tokens.expectSign('(');
    const list = this.#list();
    if (list.length > MAX_LIST) throw this.#tokens.fault('Invalid number of operands for operator IN');
    return { kind: 'in', operand, list };
  }

  #list(): Operand[] {
    const list = [this.#operand()];
    while (this.#tokens.takeSign(',')) list.push(this.#operand());
    this.#tokens.expectSign(')');
    return list;
  }

  #operand(): Operand {
    const name = this.#tokens.takeFunction();
    if (name === 'size') return this.#size();
    if (name !== undefined) {
      throw this.#tokens.fault(`The function is not allowed to be used this way; function: ${name}`);
    }
    if (this.#tokens.next.kind === ':value') {
      return { kind: 'value', value: this.#placeholders.takeValue(this.#tokens) };
    }
    return { kind: 'path', path: this.#placeholders.takePath(this.#tokens) };
  }

  #size(): Operand {
    const [of] = this.#arguments('size', 1);
    if (of.kind === 'size') throw this.#tokens.fault('The function is not allowed to be used this way; function: size');
    if (of.kind === 'value' && !['S', 'B', 'SS', 'NS', 'BS', 'L', 'M'].includes(of.value.type)) {
      throw this.#wrongType('size', of.value);
    }
    return { kind: 'size', of };
  }

  #function(name: string): ConditionTree {
    switch (name) {
      case 'attribute_exists':
        return { kind: 'exists', path: this.#path(name, this.#arguments(name, 1)[0]) };
      case 'attribute_not_exists':
        return { kind: 'not exists', path: this.#path(name, this.#arguments(name, 1)[0]) };
      case 'attribute_type':
        return this.#attributeType();
      case 'begins_with':
        return this.#beginsWith();
      case 'contains': {
        const [operand, part] = this.#arguments(name, 2);
        if (isSamePath(operand, part)) throw this.#tokens.fault('The first operand must be distinct from the others');
        return { kind: 'contains', operand, part };
      }
      default:
        throw this.#tokens.fault(`Invalid function name; function: ${name}`);
    }
  }

  #attributeType(): ConditionTree {
    const [operand, type] = this.#arguments('attribute_type', 2);
    const path = this.#path('attribute_type', operand);
    if (type.kind !== 'value' || type.value.type !== 'S') {
      throw this.#tokens.fault('Incorrect operand type for operator or function; operator or function: attribute_type');
    }
    if (!TYPES.has(type.value.text))
      throw this.#tokens.fault(`Invalid attribute type name found; type: ${type.value.text}`);
    return { kind: 'type', path, type: type.value.text };
  }

  #beginsWith(): ConditionTree {
    const [operand, part] = this.#arguments('begins_with', 2);
    for (const each of [operand, part]) {
      if (each.kind === 'value' && each.value.type !== 'S' && each.value.type !== 'B') {
        throw this.#wrongType('begins_with', each.value);
      }
    }
    return { kind: 'begins with', operand, part };
  }

  #arguments<Count extends 1 | 2>(name: string, count: Count): Count extends 1 ? [Operand] : [Operand, Operand];
  #arguments(name: string, count: 1 | 2): Operand[] {
    const list = this.#list();
    if (list.length !== count) {
      throw this.#tokens.fault(`Incorrect number of operands for operator or function; operator or function: ${name}`);
    }
    return list;
  }

  #path(name: string, operand: Operand): Path {
    if (operand.kind === 'path') return operand.path;
    throw this.#tokens.fault(`Operator or function requires a document path; operator or function: ${name}`);
  }

  #checkOrdered(by: string, operands: readonly Operand[]): void {
    for (const operand of operands) {
      if (operand.kind === 'value' && !isScalar(operand.value)) throw this.#wrongType(by, operand.value);
    }
  }

  #checkBounds(low: Value, high: Value): void {
    if (low.type !== high.type) {
      throw this.#tokens.fault('The BETWEEN operator requires same data type for lower and upper bounds;');
    }
    if ((compareValues(low, high) ?? 0) > 0) {
      throw this.#tokens.fault('The BETWEEN operator requires upper bound to be greater than or equal to lower bound;');
    }
  }

  #wrongType(by: string, value: Value): Error {
    return this.#tokens.fault(
      `Incorrect operand type for operator or function; operator or function: ${by}, operand type: ${value.type}`,
    );
  }
}

function isSamePath(left: Operand, right: Operand): boolean {
  if (left.kind !== 'path' || right.kind !== 'path') return false;
  return left.path.length === right.path.length && left.path.every((step, index) => step === right.path[index]);
}
