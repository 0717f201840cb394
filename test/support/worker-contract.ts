import { z } from 'zod';
import type { MessageContract } from '../../src/messages/contract.ts';
import { plus } from '../../src/store/expressions.ts';
import type { TransactionAction } from '../../src/store/transactions/transaction.ts';
import type { Handler } from '../../src/workers/handler.ts';

/** The smallest message there is: for tests that are not about charges. */
export interface Note {
  readonly id: string;
  readonly text: string;
}

function noteContract(type = 'note.written'): MessageContract<Note> {
  return {
    type,
    version: 1,
    schema: z.strictObject({ id: z.string(), text: z.string() }),
    keyOf: (note) => note.id,
  };
}

export function noteBody(note: Note, type = 'note.written'): string {
  return JSON.stringify({ type, version: 1, key: note.id, payload: note });
}

/** A handler of notes that does what the test says. */
export function noteHandler(handle: Handler<Note>['handle'], type?: string): Handler<Note> {
  return { contract: noteContract(type), handle };
}

/** An effect that would be seen if it happened twice: a counter without a condition. */
export function countEffect(name: string): TransactionAction {
  return { kind: 'update', label: 'count', key: counterKey(name), change: { set: { value: plus(1, 0) } } };
}

export function counterKey(name: string): { PK: string; SK: string } {
  return { PK: `COUNTER#${name}`, SK: 'COUNTER' };
}
