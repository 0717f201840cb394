/** The keys that outside systems are given: the same for every attempt at what they name. */
import { createHash } from 'node:crypto';

/**
 * A digest: keys may hold anything and be long, and providers take about 255 plain characters.
 * @param parts what it names: the queue or scope, the key, and for a message the step, empty for the effect as a whole.
 */
export function idempotencyKeyOf(...parts: readonly string[]): string {
  // Lengths in front, so that no two different lists are written alike.
  const text = parts.map((part) => `${String(part.length)}:${part}`).join('|');
  return `onlyonce-${createHash('sha256').update(text).digest('hex')}`;
}
