/** Reads from outside what the charge flow has done: table, provider, queues. */
import { readFile } from 'node:fs/promises';
import { z } from 'zod';
import { messageOf } from '../errors.ts';
import { readDeadLetters } from '../queues/dead-letters.ts';
import { readDepth, totalOf } from '../queues/depth.ts';
import { identify, type Item } from '../store/table.ts';
import type {
  Account,
  AnsweredDelivery,
  ChargesSnapshot,
  EffectRecordState,
  LedgerEntry,
  ProviderCharge,
  SentMessage,
} from '../verify/charges.ts';
import type { Connection, FlowQueues } from './connection.ts';
import { CommandError, EXIT } from './exit-codes.ts';
import { withKeptNotices } from './kept-notice.ts';

/** More dead letters than this are not read; the check then only knows about those. */
const MAX_DEAD_LETTERS = 10_000;

export interface SnapshotSources {
  readonly connection: Connection;
  readonly queues: FlowQueues;
  readonly providerUrl?: string | undefined;
  readonly sent?: readonly SentMessage[] | undefined;
  readonly answers?: readonly AnsweredDelivery[] | undefined;
}

export async function takeSnapshot(sources: SnapshotSources): Promise<ChargesSnapshot> {
  const { connection, queues, providerUrl, sent, answers } = sources;
  const read = await readDeadLetters(connection.queues, queues.deadLetterQueue.url, { limit: MAX_DEAD_LETTERS });
  const letters = await withKeptNotices(read, queues.queue.name, connection.store);
  const queued = totalOf(await readDepth(connection.queues, queues.queue.url));
  const table = await readTable(connection, queues.queue.name);
  return {
    ...table,
    queued,
    deadLetters: letters.map(({ notice }) => ({ messageId: notice?.messageId, reason: notice?.reason })),
    ...(providerUrl !== undefined && { providerCharges: await readProvider(providerUrl) }),
    ...(sent !== undefined && { sent }),
    ...(answers !== undefined && { answers }),
  };
}

async function readTable(
  connection: Connection,
  queue: string,
): Promise<{ accounts: Account[]; ledger: LedgerEntry[]; records: EffectRecordState[] }> {
  const accounts: Account[] = [];
  const ledger: LedgerEntry[] = [];
  const records: EffectRecordState[] = [];
  for await (const item of connection.store.scan()) {
    const identity = identify(item);
    if (identity.kind === 'account') accounts.push(toAccount(identity.accountId, item));
    else if (identity.kind === 'ledgerEntry') ledger.push(toLedgerEntry(identity.accountId, item));
    else if (identity.kind === 'effectRecord' && identity.queue === queue) {
      records.push({ key: identity.key, status: String(item['status']) });
    }
  }
  return { accounts, ledger, records };
}

function toAccount(accountId: string, item: Item): Account {
  return { accountId, openingBalance: Number(item['openingBalance'] ?? 0), balance: Number(item['balance']) };
}

function toLedgerEntry(accountId: string, item: Item): LedgerEntry {
  return {
    accountId,
    requestId: String(item['requestId']),
    amountMinor: Number(item['amountMinor']),
    providerChargeId: String(item['providerChargeId']),
  };
}

const providerChargeSchema: z.ZodType<ProviderCharge> = z.object({
  chargeId: z.string(),
  reference: z.string(),
  accountId: z.string(),
  amountMinor: z.number(),
});

async function readProvider(url: string): Promise<ProviderCharge[]> {
  let response: Response;
  try {
    response = await fetch(new URL('/v1/charges', url));
  } catch (error) {
    throw new CommandError(EXIT.failure, `the payment provider at ${url} cannot be reached: ${messageOf(error)}`);
  }
  return parseLines(await response.text(), providerChargeSchema, `the journal of ${url}`);
}

const sentSchema = z.object({ messageId: z.string(), key: z.string().optional(), kind: z.string().optional() });

/** What `produce charges --json` printed. Lines about messages that were not sent are passed over. */
export async function readSent(file: string): Promise<SentMessage[]> {
  const lines = (await readFile(file, 'utf8')).split('\n').filter((line) => line.includes('"messageId"'));
  return parseLines(lines.join('\n'), sentSchema, file).map(({ messageId, key, kind }) => ({
    messageId,
    key,
    isConflict: kind === 'conflict',
  }));
}

function parseLines<Value>(text: string, schema: z.ZodType<Value>, source: string): Value[] {
  return text
    .split('\n')
    .filter((line) => line.trim() !== '')
    .map((line, index) => {
      try {
        return schema.parse(JSON.parse(line));
      } catch (error) {
        throw new CommandError(EXIT.failure, `${source}, line ${String(index + 1)}: ${messageOf(error)}`);
      }
    });
}
