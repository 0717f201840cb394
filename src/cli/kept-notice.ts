/** A dead letter that had no room for its reason left it in the table: whoever tells reasons must look there too. */
import { bodyDigest, type DeadLetterNotice } from '../queues/dead-letter-notice.ts';
import type { DeadLetter } from '../queues/dead-letters.ts';
import type { Store } from '../store/store.ts';
import { deadLetterKey } from '../store/table.ts';

export function withKeptNotices(letters: readonly DeadLetter[], queue: string, store: Store): Promise<DeadLetter[]> {
  return Promise.all(
    letters.map(async (letter) => {
      if (letter.notice !== undefined) return letter;
      const item = await store.get(deadLetterKey(queue, bodyDigest(letter.body)));
      return item === undefined ? letter : { ...letter, notice: item['notice'] as DeadLetterNotice };
    }),
  );
}
