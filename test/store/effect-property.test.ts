/**
 * Three workers, two keys, any order of claims, commits, releases, pauses and clock skews, and answers that get lost:
 * whatever happens, a key is charged at most once and has one answer.
 */
import fc from 'fast-check';
import { expect, test } from 'vitest';
import type { Claim, ClaimedEffect } from '../../src/store/effects/effect-record.ts';
import { LeaseLostError } from '../../src/store/leases/held-lease.ts';
import { TransactionCancelledError } from '../../src/store/transactions/transaction-writer.ts';
import { useStoreBench } from '../support/store-bench.ts';
import { effectScene, type EffectScene, type EffectWorker } from '../support/store-effects.ts';
import type { Fault, Rule } from '../support/store-transport.ts';

const bench = useStoreBench();

const WORKERS = 3;
const OPERATION_OF = {
  claim: 'UpdateItem',
  renew: 'UpdateItem',
  release: 'UpdateItem',
  commit: 'TransactWriteItems',
} as const;

type Act =
  | {
      readonly do: keyof typeof OPERATION_OF;
      readonly worker: number;
      readonly key: number;
      readonly fault: Trouble | undefined;
    }
  /** Time passes for all; the timers of the paused worker do not run. */
  | { readonly do: 'pass'; readonly ms: number; readonly paused: number }
  /** What the network kept back arrives now. */
  | { readonly do: 'arrive' };

interface Trouble {
  readonly fault: Fault;
  readonly times: number;
}

const trouble: fc.Arbitrary<Trouble> = fc.record({
  fault: fc.constantFrom<Fault>(
    { kind: 'lose the answer' },
    { kind: 'lose the request' },
    { kind: 'deliver late' },
    { kind: 'send twice' },
    { kind: 'under another token' },
    { kind: 'refuse', name: 'TransactionCanceledException', reasons: ['TransactionConflict'] },
    { kind: 'refuse', name: 'InternalServerError', status: 500 },
  ),
  times: fc.integer({ min: 1, max: 5 }),
});

const act: fc.Arbitrary<Act> = fc.oneof(
  {
    weight: 8,
    arbitrary: fc.record({
      do: fc.constantFrom('claim', 'claim', 'claim', 'commit', 'commit', 'release', 'renew'),
      worker: fc.nat({ max: WORKERS - 1 }),
      key: fc.constantFrom(0, 0, 0, 1),
      fault: fc.option(trouble, { nil: undefined, freq: 2 }),
    }),
  },
  {
    weight: 2,
    arbitrary: fc.record({
      do: fc.constant('pass' as const),
      ms: fc.constantFrom(1, 2_500, 9_500, 15_000),
      paused: fc.nat({ max: WORKERS }),
    }),
  },
  { weight: 1, arbitrary: fc.constant({ do: 'arrive' as const }) },
);

const turn = fc.array(act, { minLength: 1, maxLength: 3 });

/** Runs acts and remembers what the workers were told. */
class Run {
  readonly scenes: readonly EffectScene[] = [effectScene(bench), effectScene(bench)];
  readonly workers: readonly EffectWorker[];
  /** By key: the tokens in the order in which they were granted. */
  readonly tokens: readonly number[][] = [[], []];
  /** By key: the answers of the commits that were confirmed, and every answer that a duplicate got. */
  readonly confirmed: readonly unknown[][] = [[], []];
  readonly replies: readonly Set<unknown>[] = [new Set(), new Set()];
  readonly unexpected: unknown[] = [];
  readonly #held = new Map<string, ClaimedEffect>();
  readonly #rules: Rule[] = [];
  #commits = 0;

  constructor(skewsMs: readonly number[]) {
    this.workers = skewsMs.map((skewMs) => given(this.scenes[0]).worker(skewMs, { maxAttempts: 1 }));
  }

  /** What is in one turn happens at the same time. */
  async turn(acts: readonly Act[]): Promise<void> {
    const granted = this.tokens.map((tokens) => tokens.length);
    await Promise.all(acts.map((step) => this.#perform(step)));
    bench.transport.heal();
    // Within one turn nobody can tell which grant was first.
    for (const [key, tokens] of this.tokens.entries()) {
      tokens.push(...tokens.splice(given(granted[key])).toSorted((left, right) => left - right));
    }
  }

  async #perform(step: Act): Promise<void> {
    if (step.do === 'pass') {
      this.#pass(step.ms, step.paused);
      return;
    }
    if (step.do === 'arrive') {
      await this.arrive();
      return;
    }
    if (step.fault !== undefined) {
      this.#rules.push(bench.transport.fault(OPERATION_OF[step.do], step.fault.fault, { times: step.fault.times }));
    }
    await this.#act(step.do, step.worker, step.key).catch((error: unknown) => {
      // A store that cannot be reached and a lease that was lost are answers; anything else is a bug.
      // A commit that still met a conflict when its share of the lease was over was not applied, and says so.
      const isConflict = error instanceof TransactionCancelledError && error.retryable;
      const isBackendFault = error instanceof Error && error.name === 'BackendError';
      const isAnswer = error instanceof LeaseLostError || isConflict || isBackendFault;
      if (!isAnswer) this.unexpected.push(error);
    });
  }

  async arrive(): Promise<void> {
    await Promise.all(this.#rules.map((rule) => rule.release()));
  }

  async #act(what: keyof typeof OPERATION_OF, worker: number, key: number): Promise<void> {
    const scene = given(this.scenes[key]);
    const { effects } = given(this.workers[worker]);
    const place = `${String(worker)}/${String(key)}`;
    const held = this.#held.get(place);
    if (what === 'claim') {
      this.#note(key, place, await effects.claim(scene.request));
    } else if (held === undefined) {
      return;
    } else if (what === 'renew') {
      await held.lease.renew();
    } else if (what === 'release') {
      await effects.release(held, { error: 'any', inDoubt: false, startAfresh: false });
    } else {
      this.#commits += 1;
      const response = this.#commits;
      await effects.commit(held, scene.verdict(response));
      this.confirmed[key]?.push(response);
    }
  }

  #note(key: number, place: string, claim: Claim): void {
    if (claim.kind === 'completed') this.replies[key]?.add(claim.response);
    if (claim.kind !== 'claimed') return;
    this.tokens[key]?.push(claim.effect.lease.grant.fencingToken);
    this.#held.set(place, claim.effect);
  }

  #pass(ms: number, paused: number): void {
    for (const [index, { clock }] of this.workers.entries()) {
      if (index === paused) clock.stallBeforeTimers(ms);
      else clock.advance(ms);
    }
  }
}

test('a key is charged at most once and has one answer, whatever is lost, late or repeated', async () => {
  // A worker far ahead takes over from one that still believes in its lease: only the fence stands between them.
  const skewMs = fc.constantFrom(-20_000, -400, 0, 300, 20_000);
  const skewsMs = fc.tuple(skewMs, skewMs, skewMs);
  let charged = 0;
  let regranted = 0;
  await fc.assert(
    fc.asyncProperty(skewsMs, fc.array(turn, { minLength: 8, maxLength: 30 }), async (skews, turns) => {
      // Arrange
      const run = new Run(skews);

      // Act
      for (const acts of turns) await run.turn(acts);
      await run.arrive();

      // Assert
      expect(run.unexpected).toEqual([]);
      for (const [key, scene] of run.scenes.entries()) {
        const [record, ledger] = [await scene.record(), await scene.charged()];
        const isCompleted = record?.['status'] === 'COMPLETED';
        expect(ledger).toEqual({ balance: isCompleted ? 5 : undefined, entry: isCompleted });
        // Who was told that it committed did, and every duplicate got that answer.
        expect(given(run.confirmed[key]).length).toBeLessThanOrEqual(isCompleted ? 1 : 0);
        const answers = new Set([...given(run.confirmed[key]), ...given(run.replies[key])]);
        expect(answers.size).toBeLessThanOrEqual(1);
        const tokens = given(run.tokens[key]);
        expect(tokens).toEqual([...new Set(tokens)].toSorted((left, right) => left - right));
        charged += isCompleted ? 1 : 0;
        regranted += tokens.length > 1 ? 1 : 0;
      }
    }),
    { numRuns: 40 },
  );
  // A run in which nothing was charged or granted again would prove nothing.
  expect([charged > 0, regranted > 0]).toEqual([true, true]);
});

function given<Value>(value: Value | undefined): Value {
  if (value === undefined) throw new Error('no such worker or key');
  return value;
}
