/** One charge, one or more workers that are killed at named points of it, and one that is left to finish. */
import { systemClock } from '../../src/clock.ts';
import type { Charge } from '../../src/messages/charge.ts';
import type { ProcessLab, Scene } from './process-bench.ts';
import { startProxies, type Phase } from './process-proxy.ts';
import { until } from './until.ts';

export interface CrashPoint {
  readonly point: string;
  readonly phase: Phase;
}

/** What was found after the last worker had finished. */
export interface Aftermath {
  readonly crashes: readonly CrashPoint[];
  readonly providerCharges: number;
  readonly ledgerEntries: number;
  readonly balance: unknown;
  readonly status: unknown;
  /** Messages on the queue, hidden ones included. */
  readonly queued: number;
  readonly deadLetters: number;
  /** From the last kill until the message was gone for good. Unit: ms. */
  readonly recoveryMs: number;
}

export const VISIBILITY_SECONDS = 3;
export const AMOUNT_MINOR = 1_250;

/** The requests of one charge that nothing disturbs, in their order. */
export async function recordTrail(lab: ProcessLab, flags: readonly string[] = []): Promise<readonly string[]> {
  const scene = await lab.open({ visibilityTimeoutSeconds: VISIBILITY_SECONDS });
  await using proxies = await startProxies(scene.endpoints);
  await scene.sendCharge(scene.charge());
  const worker = scene.work(flags, proxies.endpoints);
  await proxies.answered('delete');
  await worker.kill();
  return [...proxies.trail];
}

/** Kills one worker after the other at the given points, then lets one more finish. */
export async function crashAt(
  crashes: readonly CrashPoint[],
  lab: ProcessLab,
  flags: readonly string[] = [],
): Promise<Aftermath> {
  const scene = await lab.open({ visibilityTimeoutSeconds: VISIBILITY_SECONDS });
  const charge = scene.charge({ amountMinor: AMOUNT_MINOR });
  await scene.sendCharge(charge);
  let killedAtMs = 0;
  for (const crash of crashes) killedAtMs = await workUntilKilled(scene, crash, flags);

  const survivor = scene.work(flags);
  await until(async () => (await scene.depth()) === 0, { withinMs: 15_000 });
  const recoveryMs = Math.round(systemClock.monotonicMs() - killedAtMs);
  const found = await lookAt(scene, charge);
  await survivor.kill();
  return { crashes, ...found, recoveryMs };
}

/**
 * Runs a worker until it is killed at the given point.
 * @returns when it was killed, on the monotonic clock. Unit: ms.
 */
export async function workUntilKilled(scene: Scene, crash: CrashPoint, flags: readonly string[] = []): Promise<number> {
  let killedAtMs = 0;
  await using proxies = await startProxies(scene.endpoints, {
    ...crash,
    kill() {
      killedAtMs = systemClock.monotonicMs();
      worker.signal('SIGKILL');
    },
  });
  const worker = scene.work(flags, proxies.endpoints);
  const end = await worker.ended;
  if (end.signal !== 'SIGKILL') throw new Error(`the worker was not killed ${nameOf(crash)}: ${end.stderr}`);
  return killedAtMs;
}

async function lookAt(scene: Scene, charge: Charge): Promise<Omit<Aftermath, 'crashes' | 'recoveryMs'>> {
  const { requestId, accountId } = charge;
  return {
    providerCharges: (await scene.providerCharges(requestId)).length,
    ledgerEntries: (await scene.ledger(requestId)).length,
    balance: await scene.balance(accountId),
    status: (await scene.record(requestId))?.['status'],
    queued: await scene.depth(),
    deadLetters: await scene.deadLetterDepth(),
  };
}

/** At most `atOnce` at a time: most of each is waiting, but each also starts processes. */
export async function inParallel<Job, Result>(
  jobs: readonly Job[],
  atOnce: number,
  run: (job: Job) => Promise<Result>,
): Promise<Result[]> {
  const results: Result[] = [];
  const open = [...jobs.entries()];
  const lane = async (): Promise<void> => {
    for (let next = open.shift(); next !== undefined; next = open.shift()) results[next[0]] = await run(next[1]);
  };
  await Promise.all(Array.from({ length: atOnce }, lane));
  return results;
}

export function nameOf({ point, phase }: CrashPoint): string {
  return `${phase} ${point}`;
}

/** One line per case, for people who read the output of a run. */
export function crashTable(aftermaths: readonly Aftermath[]): string {
  const lines = aftermaths.map((aftermath) => {
    const { crashes, providerCharges, ledgerEntries, recoveryMs } = aftermath;
    const counts = `provider charges ${String(providerCharges)}, ledger entries ${String(ledgerEntries)}`;
    return `${crashes.map(nameOf).join(', then ').padEnd(60)} ${counts}, recovered after ${String(recoveryMs)} ms`;
  });
  return lines.join('\n');
}
