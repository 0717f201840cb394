/**
 * The decision of the local payment provider: charge, decline, replay or refuse. It knows nothing of HTTP.
 *
 * Invariant: within the window, a key leads to at most one entry in the journal, and everybody who asks with that key
 * and content gets that entry's result. From the first request until its entry is durable the key is in use; a second
 * request is then told so at once and should come again, which is what Stripe does (409 `idempotency_key_in_use`) and
 * what the IETF draft on the Idempotency-Key header asks for. Without a key every request charges.
 */
import { createHash, randomUUID } from 'node:crypto';
import type { Clock } from '../clock.ts';
import type { ChargeBody } from './charge-contract.ts';
import type { ChargeLog, JournalEntry } from './charge-journal.ts';
import type { KeyMemory } from './key-memory.ts';
import type { ChargeResult } from './payment-provider.ts';
import type { FaultRule, ProviderFaults } from './provider-faults.ts';

/** One request to charge, already validated. */
export interface ChargeAttempt {
  readonly idempotencyKey: string | null;
  readonly caller: string | null;
  readonly body: ChargeBody;
}

/** What became of an attempt. `fault` is the rule to follow when the answer goes out. */
export type ChargeOutcome =
  | {
      readonly kind: 'answered';
      readonly entry: JournalEntry;
      readonly replayed: boolean;
      readonly fault: FaultRule | undefined;
    }
  | { readonly kind: 'failed-before' }
  | { readonly kind: 'key-reused' }
  | { readonly kind: 'key-in-use' }
  | { readonly kind: 'memory-full' };

/** Parts of a `LocalProvider`. */
export interface LocalProviderOptions {
  readonly clock: Clock;
  readonly log: ChargeLog;
  readonly memory: KeyMemory;
  readonly faults: ProviderFaults;
}

/** Decides charges. */
export class LocalProvider {
  readonly #options: LocalProviderOptions;

  constructor(options: LocalProviderOptions) {
    this.#options = options;
  }

  /**
   * Decides one attempt. When it resolves with an answer, that answer is durable.
   * @throws {EnvironmentError} when the journal failed; whether the charge is in it shows only after a restart.
   */
  async charge(attempt: ChargeAttempt): Promise<ChargeOutcome> {
    const { memory, faults } = this.#options;
    const { idempotencyKey, caller, body } = attempt;
    const requestHash = hashOf(body);
    const known = idempotencyKey === null ? undefined : memory.lookUp(idempotencyKey);
    if (known !== undefined && known.requestHash !== requestHash) return { kind: 'key-reused' };
    if (known !== undefined && known.entry === undefined) return { kind: 'key-in-use' };
    // Enough to purge when a key comes: the memory grows at no other time.
    if (known === undefined && idempotencyKey !== null && !memory.hasRoom()) return { kind: 'memory-full' };
    const fault = faults.take({ reference: body.reference, caller, fresh: known === undefined });
    if (fault?.effect === 'fail-before') return { kind: 'failed-before' };
    if (known?.entry !== undefined) return { kind: 'answered', entry: known.entry, replayed: true, fault };
    // Nothing was awaited since the look-up, so no other request can have come between.
    const entry = this.#decide(attempt, requestHash, fault);
    await this.#record(entry);
    return { kind: 'answered', entry, replayed: false, fault };
  }

  #decide({ idempotencyKey, caller, body }: ChargeAttempt, requestHash: string, fault?: FaultRule): JournalEntry {
    const result: ChargeResult =
      fault?.effect === 'decline'
        ? { kind: 'declined', reason: 'declined by a fault rule' }
        : { kind: 'charged', providerChargeId: `ch_${randomUUID()}` };
    const { reference, accountId, amountMinor, currency } = body;
    const decidedAtMs = this.#options.clock.nowMs();
    return { idempotencyKey, requestHash, reference, accountId, amountMinor, currency, caller, decidedAtMs, result };
  }

  async #record(entry: JournalEntry): Promise<void> {
    const { log, memory } = this.#options;
    if (entry.idempotencyKey === null) {
      // A declined request without a key leaves nothing to remember.
      if (entry.result.kind === 'charged') await log.append(entry);
      return;
    }
    await memory.whileInUse({ key: entry.idempotencyKey, requestHash: entry.requestHash }, async () => {
      await log.append(entry);
      memory.remember(entry);
    });
  }
}

/** The same for the same content, whatever the order of fields or the caller. */
function hashOf({ accountId, amountMinor, currency, description, reference }: ChargeBody): string {
  return createHash('sha256')
    .update(JSON.stringify([accountId, amountMinor, currency, description, reference]))
    .digest('hex');
}
