/**
 * The two faults of the demo, set off by what happens and never by the clock: the payment provider is told to hold an
 * answer, so that a worker can be hit exactly between the provider's charge and its own commit.
 */
import { z } from 'zod';
import type { Random } from '../../clock.ts';
import type { Crew } from './crew.ts';

export interface Fault {
  readonly kind: 'killed' | 'frozen';
  readonly worker: string;
  /** The charge that the provider had made when the fault struck. */
  readonly key: string;
  /** What the frozen worker made of it when it went on. */
  readonly wokeUpTo?: string;
}

export interface FaultScope {
  readonly crew: Crew;
  readonly providerUrl: string;
  readonly random: Random;
  readonly signal: AbortSignal;
  onFault(fault: Fault): void;
}

export async function injectFaults(scope: FaultScope): Promise<Fault[]> {
  const killed = await killBetweenChargeAndCommit(scope);
  scope.onFault(killed);
  await scope.crew.hire();
  const frozen = await freezeBeyondItsLease(scope);
  scope.onFault(frozen);
  return [killed, frozen];
}

async function killBetweenChargeAndCommit(scope: FaultScope): Promise<Fault> {
  const held = await holdAnswer('kill', scope);
  await scope.crew.kill(held.caller);
  return { kind: 'killed', worker: held.caller, key: held.reference };
}

async function freezeBeyondItsLease(scope: FaultScope): Promise<Fault> {
  const { crew } = scope;
  const held = await holdAnswer('freeze', scope);
  const isItsKey = (event: { event: string; key?: string | undefined }): boolean =>
    event.event === 'outcome' && event.key === held.reference;
  crew.freeze(held.caller);
  // Another worker finishing the same charge is the proof that the frozen one's lease is over.
  await crew.until((event) => isItsKey(event) && event.worker !== held.caller && isApplied(event));
  await call(scope, '/_faults/release', { id: 'freeze' });
  crew.thaw(held.caller);
  const wokeUp = await crew.until((event) => isItsKey(event) && event.worker === held.caller);
  return {
    kind: 'frozen',
    worker: held.caller,
    key: held.reference,
    wokeUpTo: wokeUp.event === 'outcome' ? wokeUp.outcome : 'nothing',
  };
}

function isApplied(event: { event: string; outcome?: string }): boolean {
  return event.event === 'outcome' && (event.outcome === 'completed' || event.outcome === 'rejected');
}

const heldSchema = z.object({
  held: z.array(z.object({ ruleId: z.string(), reference: z.string(), caller: z.string() })),
});

/** Waits until the provider has charged and holds back the answer. */
async function holdAnswer(id: string, scope: FaultScope): Promise<{ reference: string; caller: string }> {
  const nth = 10 + Math.floor(scope.random() * 90);
  await call(scope, '/_faults', { id, match: { nth }, effect: 'hold' });
  for (;;) {
    scope.signal.throwIfAborted();
    const answer = await call(scope, '/_faults/held?wait=1000');
    const held = heldSchema.parse(answer).held.find(({ ruleId }) => ruleId === id);
    if (held !== undefined) return held;
  }
}

async function call(scope: FaultScope, path: string, body?: unknown): Promise<unknown> {
  const response = await fetch(new URL(path, scope.providerUrl), {
    signal: scope.signal,
    ...(body !== undefined && {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(body),
    }),
  });
  if (!response.ok) throw new Error(`the payment provider answered ${String(response.status)} to ${path}`);
  const text = await response.text();
  return text === '' ? undefined : JSON.parse(text);
}
