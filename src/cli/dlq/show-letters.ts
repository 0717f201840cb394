/** `onlyonce dlq show`: each dead letter, why it is there, and what became of its effect. */
import { isoTime } from '../../clock.ts';
import type { DeadLetterNotice } from '../../queues/dead-letter-notice.ts';
import type { DeadLetter } from '../../queues/dead-letters.ts';
import type { Flow } from '../../queues/topology.ts';
import { CommandError, EXIT } from '../exit-codes.ts';
import { createOutput, textFields } from '../output.ts';
import { openLetters, reasonOf, type DlqFlags } from './letters.ts';
import type { JudgedLetter } from './verdict.ts';

export interface ShowFlags extends DlqFlags {
  readonly body?: boolean;
}

export async function showLetters(flow: Flow, messageId: string | undefined, flags: ShowFlags): Promise<void> {
  const output = createOutput(flags.json === true);
  await using scope = await openLetters(flow, flags);
  const isMeant = (letter: DeadLetter): boolean =>
    messageId === undefined || letter.messageId === messageId || letter.notice?.messageId === messageId;
  let shown = 0;
  for await (const part of scope.parts(flags.limit)) {
    for (const letter of part.filter(isMeant)) {
      const value = fieldsOf(letter, await scope.judge(letter), flags);
      output.data(value, `${textFields(value)}\n`);
      shown += 1;
    }
  }
  if (scope.interrupted.signal.aborted) process.exitCode = EXIT.interrupted;
  else if (shown === 0) {
    throw new CommandError(EXIT.notFound, messageId === undefined ? 'no dead letters' : `no dead letter ${messageId}`);
  }
}

function fieldsOf(letter: DeadLetter, judged: JudgedLetter, flags: ShowFlags): Record<string, unknown> {
  const { notice } = letter;
  return {
    messageId: letter.messageId,
    reason: reasonOf(letter),
    ...judged,
    ...(notice !== undefined && noticeFields(notice)),
    bodyBytes: Buffer.byteLength(letter.body),
    ...(flags.body === true && { body: letter.body }),
  };
}

/** What the notice tells; older ones tell less. */
function noticeFields(notice: DeadLetterNotice) {
  const { attempts, payloadHash, recordedHash, sentAtMs, firstReceivedAtMs, worker, traceId } = notice;
  return {
    detail: notice.detail,
    originalMessageId: notice.messageId,
    ...(attempts !== undefined && { attempts }),
    receiveCount: notice.receiveCount,
    ...(sentAtMs !== undefined && { sentAt: isoTime(sentAtMs) }),
    ...(firstReceivedAtMs !== undefined && { firstReceivedAt: isoTime(firstReceivedAtMs) }),
    deadLetteredAt: isoTime(notice.deadLetteredAtMs),
    ...(worker !== undefined && { worker }),
    ...(payloadHash !== undefined && { payloadHash }),
    ...(recordedHash !== undefined && { recordedHash }),
    ...(traceId !== undefined && { traceId }),
  };
}
