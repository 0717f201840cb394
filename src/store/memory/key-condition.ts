/** What a Query asks of the key: one partition, and perhaps a range of the sort key. */
import type { Comparator, ConditionTree, Operand } from './condition-syntax.ts';
import { invalid } from './service-error.ts';
import { keyAttributes, type KeyAttribute, type KeySchema } from './table-definition.ts';
import { isScalar, valueBytes, type ScalarValue, type Value } from './values.ts';

export interface KeyRange {
  readonly partition: ScalarValue;
  readonly sort: ConditionTree | undefined;
}

const SORT_COMPARATORS = new Set<Comparator>(['=', '<', '<=', '>', '>=']);

/** @throws {ServiceError} ValidationException for everything but `partition = value` and one condition on the sort key. */
export function readKeyCondition(tree: ConditionTree | undefined, schema: KeySchema): KeyRange {
  const parts = tree === undefined ? [] : tree.kind === 'and' ? tree.parts : [tree];
  const conditions = parts.map((part) => ({ part, ...operandsOf(part) }));
  const partition = conditions.find(({ name }) => name === schema.partition.name);
  const sort = conditions.find((each) => each !== partition);
  if (partition === undefined) throw missed(schema.partition);
  const [value] = partition.values;
  if (partition.part.kind !== 'compare' || partition.part.by !== '=' || value === undefined || !isScalar(value)) {
    throw invalid('Query key condition not supported');
  }
  checkValues(schema.partition, partition.values);
  if (sort === undefined) return { partition: value, sort: undefined };
  if (conditions.length > 2) throw invalid('Conditions can be of length 1 or 2 only');
  if (schema.sort === undefined || sort.name !== schema.sort.name) throw missed(schema.sort ?? schema.partition);
  if (sort.part.kind === 'compare' && !SORT_COMPARATORS.has(sort.part.by)) {
    throw invalid('Query key condition not supported');
  }
  checkValues(schema.sort, sort.values);
  return { partition: value, sort: sort.part };
}

/** What the key condition decides on may not be asked again in the filter. */
export function checkFilter(filter: ConditionTree, schema: KeySchema): void {
  const used = new Set(attributesOf(filter));
  const key = keyAttributes(schema).find(({ name }) => used.has(name));
  if (key === undefined) return;
  throw invalid(`Filter Expression can only contain non-primary key attributes: Primary key attribute: ${key.name}`);
}

/** The attribute on the left, and the values that it is compared with. */
function operandsOf(part: ConditionTree): { readonly name: string; readonly values: readonly Value[] } {
  switch (part.kind) {
    case 'compare':
      return { name: attributeOf(part.left), values: [valueOf(part.right)] };
    case 'between':
      return { name: attributeOf(part.operand), values: [valueOf(part.low), valueOf(part.high)] };
    case 'begins with':
      return { name: attributeOf(part.operand), values: [valueOf(part.part)] };
    case 'and':
    case 'or':
    case 'not':
    case 'in':
    case 'exists':
    case 'not exists':
    case 'type':
    case 'contains':
      throw invalid('Invalid operator used in KeyConditionExpression');
  }
}

function attributeOf(operand: Operand): string {
  const name = operand.kind === 'path' && operand.path.length === 1 ? operand.path[0] : undefined;
  if (typeof name !== 'string') throw invalid('KeyConditionExpressions must have an attribute name first');
  return name;
}

function valueOf(operand: Operand): Value {
  if (operand.kind === 'value') return operand.value;
  throw invalid('KeyConditionExpressions must compare with values');
}

function checkValues({ name, type }: KeyAttribute, values: readonly Value[]): void {
  for (const value of values) {
    if (value.type !== type) {
      throw invalid('One or more parameter values were invalid: Condition parameter type does not match schema type');
    }
    if (valueBytes(value) === 0) {
      throw invalid(
        `One or more parameter values are not valid. The AttributeValue for a key attribute cannot contain an empty value. Key: ${name}`,
      );
    }
  }
}

function missed({ name }: KeyAttribute): Error {
  return invalid(`Query condition missed key schema element: ${name}`);
}

function* attributesOf(tree: ConditionTree): Generator<string> {
  switch (tree.kind) {
    case 'and':
    case 'or':
      for (const part of tree.parts) yield* attributesOf(part);
      return;
    case 'not':
      yield* attributesOf(tree.part);
      return;
    case 'exists':
    case 'not exists':
    case 'type':
      yield String(tree.path[0]);
      return;
    case 'compare':
      yield* namesOf([tree.left, tree.right]);
      return;
    case 'between':
      yield* namesOf([tree.operand, tree.low, tree.high]);
      return;
    case 'in':
      yield* namesOf([tree.operand, ...tree.list]);
      return;
    case 'begins with':
    case 'contains':
      yield* namesOf([tree.operand, tree.part]);
  }
}

function* namesOf(operands: readonly Operand[]): Generator<string> {
  for (const operand of operands) {
    if (operand.kind === 'path') yield String(operand.path[0]);
    if (operand.kind === 'size') yield* namesOf([operand.of]);
  }
}
