/** What TTL would have deleted. @see AWS: How TTL works: items that ended more than five years ago are left alone */
import { decimalText } from './decimal.ts';
import { keyOf } from './keys.ts';
import type { MemoryTable } from './memory-table.ts';

const FIVE_YEARS_SECONDS: number = 5 * 365 * 24 * 3_600;

/** @returns how many items went. */
export function expireItems(table: MemoryTable, nowMs: number): number {
  const { ttlAttribute, definition, rows } = table;
  if (ttlAttribute === undefined) return 0;
  const nowSeconds = Math.floor(nowMs / 1_000);
  const over = [...rows.all()].filter((item) => {
    const value = item.get(ttlAttribute);
    const seconds = value?.type === 'N' ? Number(decimalText(value.number)) : Number.POSITIVE_INFINITY;
    return seconds < nowSeconds && seconds >= nowSeconds - FIVE_YEARS_SECONDS;
  });
  for (const item of over) table.write(keyOf(definition.key, item), undefined);
  return over.length;
}
