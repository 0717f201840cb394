/** Effect calls as the tests of the store make them: each scene is one key in a scope of its own. */
import { createOnlyonceEffect, type EffectCall } from '../../src/store/effects/effect-call.ts';
import type { EffectCallOptions } from '../../src/store/effects/effect-call-options.ts';
import { plus } from '../../src/store/expressions.ts';
import type { StoreOptions } from '../../src/store/store.ts';
import { accountKey, effectRecordKey, type Item } from '../../src/store/table.ts';
import type { TransactionAction } from '../../src/store/transactions/transaction.ts';
import type { StoreBench } from './store-bench.ts';
import { StoreClock } from './store-clock.ts';

const CALL_LEASE = { leaseMs: 10_000, heartbeatMs: 2_500, safetyMarginMs: 1_000, maxClockSkewMs: 500 } as const;

export interface CallScene {
  readonly scope: string;
  readonly key: string;
  /** A caller on a machine of its own, `aheadMs` in front of the first one's time. */
  caller(
    aheadMs?: number,
    options?: Partial<EffectCallOptions> & { readonly store?: StoreOptions },
  ): { readonly clock: StoreClock; readonly once: EffectCall };
  record(key?: string): Promise<Item | undefined>;
  /** Counts each application: nothing but the record keeps it from being applied twice. */
  readonly addFive: TransactionAction;
  balance(): Promise<unknown>;
}

export function callScene(bench: StoreBench): CallScene {
  const scope = bench.unique('scope');
  const account = accountKey(scope);
  return {
    scope,
    key: 'req-123',
    caller(aheadMs = 0, { store = {}, ...options } = {}) {
      const clock = new StoreClock({ startMs: 1_800_000_000_000 + aheadMs });
      return {
        clock,
        once: createOnlyonceEffect(bench.store({ clock, ...store }), { scope, lease: CALL_LEASE, ...options }),
      };
    },
    record: (key = 'req-123') => bench.truth.get(effectRecordKey(`scope:${scope}`, key)),
    addFive: { kind: 'update', label: 'balance', key: account, change: { set: { balance: plus(5, 0) } } },
    balance: async () => (await bench.truth.get(account))?.['balance'],
  };
}
