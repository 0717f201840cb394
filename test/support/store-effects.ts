/** Charges on effect records, as the tests of the store write them. */
import type {
  Claim,
  ClaimedEffect,
  ClaimRequest,
  EffectRecords,
  Verdict,
} from '../../src/store/effects/effect-record.ts';
import { plus } from '../../src/store/expressions.ts';
import type { LeaseOptions } from '../../src/store/leases/lease-options.ts';
import { accountKey, effectRecordKey, ledgerEntryKey, type Item } from '../../src/store/table.ts';
import type { StoreOptions } from '../../src/store/store.ts';
import type { StoreBench } from './store-bench.ts';
import { StoreClock } from './store-clock.ts';

const EFFECT_LEASE = {
  leaseMs: 10_000,
  heartbeatMs: 2_500,
  safetyMarginMs: 1_000,
  maxClockSkewMs: 500,
} as const;

export interface EffectWorker {
  readonly clock: StoreClock;
  readonly effects: EffectRecords;
}

/** One business key with its worker, its request and its ledger. */
export interface EffectScene {
  readonly request: ClaimRequest;
  /** Another worker on a machine of its own, `aheadMs` in front of the first one's time. */
  worker(aheadMs?: number, options?: StoreOptions & { readonly lease?: LeaseOptions }): EffectWorker;
  record(): Promise<Item | undefined>;
  /** What was charged: the balance counts each application. */
  charged(): Promise<{ balance: unknown; entry: boolean }>;
  verdict(response?: unknown): Verdict;
}

/** Beyond the end of any lease of these tests. */
export const AFTER_THE_LEASE_MS = 60_000;

export function effectScene(bench: StoreBench): EffectScene {
  const key = bench.unique('charge');
  const request = { queue: 'charges', key, payloadHash: 'hash-1', holder: 'host:1' };
  return {
    request,
    worker(aheadMs = 0, options = {}) {
      const clock = new StoreClock({ startMs: 1_800_000_000_000 + aheadMs });
      return { clock, effects: bench.store({ clock, ...options }).effectRecords(options.lease ?? EFFECT_LEASE) };
    },
    record: () => bench.truth.get(effectRecordKey(request.queue, key)),
    async charged() {
      const account = await bench.truth.get(accountKey(key));
      const entry = await bench.truth.get(ledgerEntryKey(key, 'r1'));
      return { balance: account?.['balance'], entry: entry !== undefined };
    },
    verdict: (response = { chargeId: 'c1' }) => ({
      status: 'COMPLETED',
      response,
      effects: [
        // Without a condition of their own: only the record keeps them from being applied twice.
        { kind: 'update', label: 'balance', key: accountKey(key), change: { set: { balance: plus(5, 0) } } },
        { kind: 'put', label: 'ledger entry', item: { ...ledgerEntryKey(key, 'r1'), amount: 5 } },
      ],
    }),
  };
}

export function claimedOf(claim: Claim): ClaimedEffect {
  if (claim.kind !== 'claimed') throw new Error(`the claim is ${claim.kind}`);
  return claim.effect;
}

export async function failureOf(promise: Promise<unknown>): Promise<unknown> {
  return promise.then(
    () => undefined,
    (error: unknown) => error,
  );
}
