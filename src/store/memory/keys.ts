/** Primary keys: read from requests and items, with the rules that DynamoDB has for them. */
import { invalid } from './service-error.ts';
import { keyAttributes, type KeyAttribute, type KeySchema, type TableDefinition } from './table-definition.ts';
import { isScalar, parseMap, scalarText, valueBytes, type ScalarValue, type ValueMap } from './values.ts';

/** @see AWS: DynamoDB quotas, partition keys and sort keys */
const MAX_KEY_BYTES = { partition: 2_048, sort: 1_024 } as const;

/** The key of an item, as a request gives it: these attributes and no others. */
export function parseKey(definition: TableDefinition, wire: unknown): ValueMap {
  const key = parseMap(wire);
  const attributes = keyAttributes(definition.key);
  const fits = key.size === attributes.length && attributes.every(({ name, type }) => key.get(name)?.type === type);
  if (!fits) throw invalid('The provided key element does not match the schema');
  checkLengths(definition.key, key);
  return key;
}

/** A whole item, as a request gives it. */
export function parseItem(definition: TableDefinition, wire: unknown): ValueMap {
  const item = parseMap(wire);
  for (const { name, type } of keyAttributes(definition.key)) {
    const value = item.get(name);
    if (value === undefined)
      throw invalid(`One or more parameter values were invalid: Missing the key ${name} in the item`);
    if (value.type !== type) throw wrongType(`Type mismatch for key ${name}`, type, value.type);
  }
  checkLengths(definition.key, item);
  checkIndexLengths(definition, item);
  return item;
}

/** An attribute that is an index key may be absent, but not of another type ... */
export function checkIndexTypes(definition: TableDefinition, item: ValueMap): void {
  for (const { name, type } of definition.indexes.flatMap(({ key }) => keyAttributes(key))) {
    const value = item.get(name);
    if (value !== undefined && value.type !== type) {
      throw wrongType(`Type mismatch for Index Key ${name}`, type, value.type);
    }
  }
}

/** ... and neither empty nor too long. */
export function checkIndexLengths(definition: TableDefinition, item: ValueMap): void {
  for (const index of definition.indexes) checkLengths(index.key, item);
}

function checkLengths(schema: KeySchema, item: ValueMap): void {
  for (const attribute of keyAttributes(schema)) {
    const value = item.get(attribute.name);
    if (value === undefined || !isScalar(value)) continue;
    checkLength(attribute, value, attribute === schema.partition ? 'partition' : 'sort');
  }
}

function checkLength(attribute: KeyAttribute, value: ScalarValue, place: keyof typeof MAX_KEY_BYTES): void {
  const bytes = valueBytes(value);
  if (bytes === 0) {
    throw invalid(
      `One or more parameter values are not valid. The AttributeValue for a key attribute cannot contain an empty value. Key: ${attribute.name}`,
    );
  }
  if (bytes > MAX_KEY_BYTES[place]) {
    throw invalid(
      `Size of the ${place} key has exceeded the maximum size limit of ${String(MAX_KEY_BYTES[place])} bytes`,
    );
  }
}

function wrongType(what: string, expected: string, actual: string): Error {
  return invalid(`One or more parameter values were invalid: ${what} Expected: ${expected} Actual: ${actual}`);
}

/** The key attributes of an item, and nothing else. */
export function keyOf(schema: KeySchema, item: ValueMap): ValueMap {
  return new Map([...item].filter(([name]) => keyAttributes(schema).some((attribute) => attribute.name === name)));
}

/** One text per key. The length in front keeps `a` + `bc` apart from `ab` + `c`. */
export function keyText(schema: KeySchema, item: ValueMap): string {
  return keyAttributes(schema)
    .map(({ name }) => {
      const value = item.get(name);
      const text = value !== undefined && isScalar(value) ? scalarText(value) : '';
      return `${String(text.length)}:${text}`;
    })
    .join('');
}
