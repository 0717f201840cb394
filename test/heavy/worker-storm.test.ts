import { expect, test } from 'vitest';
import { seededRandom, sleep, systemClock, type Random } from '../../src/clock.ts';
import {
  aftermathOf,
  expectedOf,
  makeWorkload,
  pick,
  residentBytes,
  sendWorkload,
  startStormWorker,
  usedMemory,
  whenEmpty,
  type Aftermath,
  type StormSettings,
  type StormWorker,
  type Workload,
} from '../support/worker-storm.ts';
import { workerLab } from '../support/worker-fixture.ts';

const lab = workerLab();

/** `ONLYONCE_STORM_MESSAGES=10000` for the full storm. */
const MESSAGES = Number(process.env['ONLYONCE_STORM_MESSAGES'] ?? 2_000);
const SEED = Number(process.env['ONLYONCE_STORM_SEED'] ?? 5);
const WORKERS = 8;
/** They live as long as the storm, so that their memory tells something. */
const SPARED = 2;
const KILL_EVERY_MS = 1_000;
const VISIBILITY_SECONDS = 3;
/** By then everything has been loaded and compiled that a message needs. */
const WARM_AFTER_MS = 4_000;
const MEBIBYTE = 1_048_576;
/**
 * Of a worker that has settled hundreds of messages since it was warm. What is in use is measured after a collection of
 * garbage and hardly moves; what is resident depends on when Node collects. Unit: MiB.
 */
const MOST_GROWTH = { used: 4, resident: 32 };

const SETTINGS = {
  concurrency: 16,
  visibilityTimeoutSeconds: VISIBILITY_SECONDS,
  lease: { leaseMs: 2_000, heartbeatMs: 500 },
} satisfies Partial<StormSettings>;

interface Storm {
  readonly aftermath: Aftermath;
  readonly workload: Workload;
  readonly kills: number;
  readonly memory: readonly MemoryFigures[];
  readonly durationMs: number;
}

/** Of one process: when it was warm, and at the end. Unit: MiB. */
interface MemoryFigures {
  readonly name: string;
  readonly used: readonly [warm: number, end: number];
  readonly resident: readonly [warm: number, most: number, end: number];
}

/** Sends a workload to eight workers, one of which is killed and replaced every second, until the queue is empty. */
async function storm(commit: StormSettings['commit'], messages: number): Promise<Storm> {
  const bench = await lab.open({ visibilityTimeoutSeconds: VISIBILITY_SECONDS });
  const random = seededRandom(SEED);
  const workload = makeWorkload(messages, random);
  const start = (name: string): StormWorker => startStormWorker(bench, lab, { ...SETTINGS, name, commit });
  const spared = Array.from({ length: SPARED }, (_, index) => start(`spared-${String(index)}`));
  const victims = Array.from({ length: WORKERS - SPARED }, (_, index) => start(`victim-${String(index)}`));
  await Promise.all([...spared, ...victims].map(({ lines }) => lines.when(1)));
  const drained = new AbortController();
  const startMonoMs = systemClock.monotonicMs();

  const [, kills, memory] = await Promise.all([
    sendWorkload(bench, workload.bodies)
      .then(() => whenEmpty(bench))
      .finally(() => {
        drained.abort();
      }),
    killOneByOne({ victims, start, random, ended: drained.signal }),
    Promise.all(spared.map((worker) => watchMemory(worker, drained.signal))),
  ]);
  const durationMs = Math.round(systemClock.monotonicMs() - startMonoMs);
  return { aftermath: await aftermathOf(bench, workload), workload, kills, memory, durationMs };
}

async function killOneByOne(options: {
  readonly victims: StormWorker[];
  readonly start: (name: string) => StormWorker;
  readonly random: Random;
  readonly ended: AbortSignal;
}): Promise<number> {
  const { victims, start, random, ended } = options;
  let kills = 0;
  while (await hasPassed(KILL_EVERY_MS, ended)) {
    const victim = pick(victims, random);
    victim.child.signal('SIGKILL');
    kills += 1;
    victims[victims.indexOf(victim)] = start(`replacement-${String(kills)}`);
    const { signal } = await victim.child.exited;
    if (signal !== 'SIGKILL') throw new Error(`${victim.name} was to be killed, and ended with ${String(signal)}`);
  }
  return kills;
}

async function watchMemory(worker: StormWorker, ended: AbortSignal): Promise<MemoryFigures> {
  await hasPassed(WARM_AFTER_MS, ended);
  const warm = { used: await usedMemory(worker), resident: residentBytes(worker) };
  let most = warm.resident;
  while (await hasPassed(KILL_EVERY_MS, ended)) most = Math.max(most, residentBytes(worker));
  const end = { used: await usedMemory(worker), resident: residentBytes(worker) };
  return {
    name: worker.name,
    used: [toMebibytes(warm.used), toMebibytes(end.used)],
    resident: [toMebibytes(warm.resident), toMebibytes(most), toMebibytes(end.resident)],
  };
}

/** @returns false when `ended` came first. */
function hasPassed(ms: number, ended: AbortSignal): Promise<boolean> {
  return sleep(systemClock, ms, ended).then(
    () => true,
    () => false,
  );
}

function toMebibytes(bytes: number): number {
  return Math.round((bytes / MEBIBYTE) * 10) / 10;
}

function figuresOf({ workload, kills, memory, durationMs, aftermath }: Storm): string {
  const perSecond = Math.round(workload.bodies.length / (durationMs / 1_000));
  const lines = memory.map(
    ({ name, used, resident }) =>
      `${name}: in use ${used.join(' -> ')} MiB, resident ${resident.join(' / ')} MiB (warm / most / end)`,
  );
  const work = `${String(workload.bodies.length)} messages in ${String(durationMs)} ms (${String(perSecond)}/s)`;
  return [`${work}, ${String(kills)} kills, ${String(aftermath.copies)} letters twice`, ...lines].join('\n');
}

test.each([
  ['direct', MESSAGES],
  ['claimed', Math.round(MESSAGES / 4)],
] as const)(
  'eight workers with %s commit, one of them killed every second, apply each effect of a storm once',
  async (commit, messages) => {
    // Act
    const result = await storm(commit, messages);

    // Assert
    process.stdout.write(`${commit}: ${figuresOf(result)}\n`);
    const { copies: _copies, ...left } = result.aftermath;
    expect(left).toEqual(expectedOf(result.workload));
    expect(result.kills).toBeGreaterThan(0);
    for (const { used, resident } of result.memory) {
      expect(used[1] - used[0]).toBeLessThan(MOST_GROWTH.used);
      expect(resident[2] - resident[0]).toBeLessThan(MOST_GROWTH.resident);
    }
  },
);
