/**
 * A process that holds a lock, or that takes it round after round. What it is to do comes as JSON in its first argument;
 * what it did goes to stdout, one line of JSON each.
 */
import { appendFileSync } from 'node:fs';
import { seededRandom, sleep, systemClock } from '../../src/clock.ts';
import { absent } from '../../src/store/conditions.ts';
import { messageOf } from '../../src/errors.ts';
import { plus } from '../../src/store/expressions.ts';
import { LeaseLostError } from '../../src/store/leases/lease-loss.ts';
import type { Lock } from '../../src/store/locks/lock.ts';
import { createStore, type Store } from '../../src/store/store.ts';
import { lockKey, type ItemKey } from '../../src/store/table.ts';
import { TransactionCancelledError } from '../../src/store/transactions/transaction-writer.ts';
import { LOCAL_ACCESS } from './store-bench.ts';

export type LockProcessInput = { readonly endpoint: string; readonly name: string } & (
  | { readonly mode: 'hold'; readonly leaseMs: number }
  /** Each grant is one line of the journal, written under the lock. */
  | { readonly mode: 'rounds'; readonly rounds: number; readonly seed: number; readonly journal: string }
);

/** It commits when this item is there. */
export function signalKey(name: string): ItemKey {
  return { PK: `SIGNAL#${name}`, SK: 'S' };
}

/** It counts its effects there. */
export function effectKey(name: string): ItemKey {
  return { PK: `EFFECT#${name}`, SK: 'S' };
}

const LOOK_EVERY_MS = 50;
const CRASHES = 0.01;
const DELETIONS = 0.05;
/** Longer than a request is on its way: the seed of a token is as old as the request that carries it. */
const AGE_MS = 50;

function tell(what: object): void {
  process.stdout.write(`${JSON.stringify(what)}\n`);
}

/** Holds the lock until it is told to commit, and says what became of that. */
async function hold(store: Store, name: string, leaseMs: number): Promise<void> {
  const locks = store.locks({ leaseMs, holder: 'child' });
  const events: string[] = [];
  locks.on((event) => events.push(event.kind));
  const lock = await locks.acquire(name);
  tell({ held: lock.fencingToken });
  while ((await store.get(signalKey(name))) === undefined) await sleep(systemClock, LOOK_EVERY_MS);
  const effect = {
    kind: 'update',
    label: 'effect',
    key: effectKey(name),
    change: { set: { count: plus(1, 0) } },
  } as const;
  const failure = await lock.finish([effect]).then(
    () => undefined,
    (error: unknown) => plainLoss(error),
  );
  tell({ failure, aborted: plainLoss(lock.signal.reason), events });
}

function plainLoss(error: unknown): object | undefined {
  if (!(error instanceof LeaseLostError)) return error === undefined ? undefined : { reason: messageOf(error) };
  const { code, reason, fencingToken, observedToken } = error;
  return { code, reason, fencingToken, observedToken };
}

/** As an operator would, but never the item of another holder: grants would overlap, and the journal know no order. */
async function deleteItem(store: Store, lock: Lock): Promise<void> {
  await sleep(systemClock, AGE_MS);
  const condition = lock.fence().condition ?? absent();
  const action = { kind: 'delete', label: 'lock', key: lockKey(lock.name), condition } as const;
  await store.transactions.write([action]).catch((error: unknown) => {
    if (!(error instanceof TransactionCancelledError)) throw error;
  });
}

async function rounds(store: Store, input: Extract<LockProcessInput, { mode: 'rounds' }>): Promise<void> {
  const { name, seed } = input;
  const random = seededRandom(seed);
  const open = () => store.locks({ leaseMs: 500, pollMinMs: 10, pollMaxMs: 20 });
  let locks = open();
  for (let round = 0; round < input.rounds;) {
    const lock = await locks.acquire(name);
    // While it is held by our own clocks, nobody else can have been granted it: the journal is in the order of grants.
    if (lock.isHeld()) {
      appendFileSync(input.journal, `${String(lock.fencingToken)}\n`);
      round += 1;
    }
    const chance = random();
    if (chance < CRASHES) {
      // Leaves the lock to expire, as a process does that crashes.
      await locks.close({ graceMs: 0 });
      locks = open();
      continue;
    }
    if (chance < DELETIONS) await deleteItem(store, lock);
    await lock.release();
  }
}

const input = JSON.parse(process.argv[2] ?? '{}') as LockProcessInput;
const random = input.mode === 'rounds' ? () => 0 : seededRandom(1);
const store = createStore({ ...LOCAL_ACCESS, endpoint: input.endpoint, random });
if (input.mode === 'hold') await hold(store, input.name, input.leaseMs);
else await rounds(store, input);
store.close();
