/** How large DynamoDB counts an item, to refuse it before it is sent. @see AWS: DynamoDB item sizes and formats */

/** The largest item. @see AWS: DynamoDB quotas */
export const MAX_ITEM_BYTES: number = 400 * 1024;

/** A lower bound close to what DynamoDB counts: names and texts in UTF-8, numbers at two digits a byte. */
export function itemBytes(item: Readonly<Record<string, unknown>>): number {
  return Object.entries(item).reduce((sum, [name, value]) => sum + Buffer.byteLength(name) + valueBytes(value), 0);
}

function valueBytes(value: unknown): number {
  if (typeof value === 'string') return Buffer.byteLength(value);
  if (typeof value === 'number' || typeof value === 'bigint') return Math.ceil(String(value).length / 2) + 1;
  if (value instanceof Uint8Array) return value.byteLength;
  if (value instanceof Set) return [...value].reduce<number>((sum, member) => sum + valueBytes(member), 0);
  if (Array.isArray(value)) return value.reduce<number>((sum, member) => sum + valueBytes(member) + 1, 3);
  if (typeof value === 'object' && value !== null) {
    return 3 + itemBytes({ ...value }) + Object.keys(value).length;
  }
  return 1;
}
