/** Asks before something that cannot be taken back. */
import { createInterface } from 'node:readline/promises';
import { CommandError, EXIT } from './exit-codes.ts';

/** @throws {CommandError} when nobody can be asked, or the answer is no. */
export async function confirm(question: string, isYes: boolean): Promise<void> {
  if (isYes) return;
  if (!process.stdin.isTTY) throw new CommandError(EXIT.usage, `${question} Nobody can be asked here: add --yes.`);
  const terminal = createInterface({ input: process.stdin, output: process.stderr });
  try {
    const answer = await terminal.question(`${question} [y/N] `);
    if (!/^y(es)?$/i.test(answer.trim())) throw new CommandError(EXIT.failure, 'nothing was done');
  } finally {
    terminal.close();
  }
}
