/** POST and GET /v1/charges, and GET /health. Also carries out what a fault rule wants done to an answer. */
import type { ServerResponse } from 'node:http';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import {
  CALLER_HEADER,
  KEY_IN_USE,
  KEY_REUSED,
  callerSchema,
  chargeBodySchema,
  idempotencyKeySchema,
} from './charge-contract.ts';
import type { ChargeJournal, JournalEntry } from './charge-journal.ts';
import { readHeader, readJson, sendError, sendJson } from './http-json.ts';
import type { ChargeOutcome } from './local-provider.ts';
import type { Exchange, ProviderParts } from './provider-route.ts';

/** One line of `GET /v1/charges`. */
export interface ListedCharge {
  readonly chargeId: string;
  readonly idempotencyKey: string | null;
  readonly reference: string;
  readonly accountId: string;
  readonly amountMinor: number;
  readonly currency: string;
  readonly caller: string | null;
  readonly chargedAtMs: number;
}

export async function postCharge(parts: ProviderParts, exchange: Exchange): Promise<void> {
  const { request } = exchange;
  const idempotencyKey = readHeader(request, 'idempotency-key', idempotencyKeySchema);
  const caller = readHeader(request, CALLER_HEADER, callerSchema);
  const body = await readJson(request, chargeBodySchema);
  const outcome = await parts.provider.charge({ idempotencyKey, caller, body });
  if (outcome.kind === 'answered') await deliver(parts, exchange, outcome);
  else refuse(exchange.response, outcome.kind);
}

function refuse(response: ServerResponse, kind: Exclude<ChargeOutcome['kind'], 'answered'>): void {
  switch (kind) {
    case 'failed-before':
      sendError(response, 500, { code: 'internal_error', message: 'failed by a fault rule; nothing was charged' });
      return;
    case 'key-reused':
      sendError(response, 409, { code: KEY_REUSED, message: 'this key was used before with another body' });
      return;
    case 'key-in-use':
      sendError(response, 409, { code: KEY_IN_USE, message: 'a request with this key is in progress, try again' });
      return;
    case 'memory-full':
      sendError(response, 503, { code: 'memory_full', message: 'too many keys are remembered, try again later' });
  }
}

/** Sends an answer that is durable already, after doing to it what the fault rule wants. */
async function deliver(
  { waiting }: ProviderParts,
  { request, response, gone }: Exchange,
  { entry, replayed, fault }: ChargeOutcome & { kind: 'answered' },
): Promise<void> {
  const { reference, decidedAtMs } = entry;
  if (fault?.effect === 'fail-after') {
    request.socket.destroy();
    return;
  }
  if (fault?.effect === 'late' || fault?.effect === 'hold') {
    // The one who waits is the caller of this request, which for a replay is not the one who was charged for.
    const caller = readHeader(request, CALLER_HEADER, callerSchema);
    const end =
      fault.effect === 'late'
        ? await waiting.delay(fault.delayMs ?? 0, gone)
        : await waiting.hold({ ruleId: fault.id, reference, caller, chargedAtMs: decidedAtMs }, gone);
    // With no place left to wait the answer is lost, which the caller sees as it would see the end of a wait.
    if (end === 'full') request.socket.destroy();
    if (end !== 'released') return;
  }
  if (replayed) response.setHeader('idempotent-replayed', 'true');
  sendJson(response, entry.result.kind === 'charged' ? 201 : 402, entry.result);
}

export async function listCharges({ journal }: ProviderParts, { response }: Exchange): Promise<void> {
  response.writeHead(200, { 'content-type': 'application/x-ndjson; charset=utf-8', 'cache-control': 'no-store' });
  try {
    await pipeline(Readable.from(chargeLines(journal)), response);
  } catch {
    // The caller hung up, or the file broke under us: the missing end of the body says so.
    response.destroy();
  }
}

async function* chargeLines(journal: ChargeJournal): AsyncGenerator<string> {
  for await (const entry of journal.entries()) {
    const listed = toListedCharge(entry);
    if (listed !== undefined) yield `${JSON.stringify(listed)}\n`;
  }
}

function toListedCharge({ result, decidedAtMs, ...entry }: JournalEntry): ListedCharge | undefined {
  if (result.kind !== 'charged') return undefined;
  const { idempotencyKey, reference, accountId, amountMinor, currency, caller } = entry;
  const chargeId = result.providerChargeId;
  return { chargeId, idempotencyKey, reference, accountId, amountMinor, currency, caller, chargedAtMs: decidedAtMs };
}

export function showHealth({ memory, journal }: ProviderParts, { response }: Exchange): void {
  const { failure, tornBytes } = journal;
  const keys = memory.size;
  if (failure === undefined) sendJson(response, 200, { status: 'ok', keys, tornBytes });
  else sendJson(response, 503, { status: 'failed', reason: failure.message, keys, tornBytes });
}
