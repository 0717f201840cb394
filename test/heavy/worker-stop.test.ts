import { expect, test } from 'vitest';
import { seededRandom, sleep, systemClock } from '../../src/clock.ts';
import {
  aftermathOf,
  expectedOf,
  makeWorkload,
  sendWorkload,
  startStormWorker,
  whenEmpty,
  type StormSettings,
  type StormWorker,
} from '../support/worker-storm.ts';
import type { StormLine } from '../support/worker-storm-process.ts';
import { workerLab, type Bench } from '../support/worker-fixture.ts';

const lab = workerLab();

/** `ONLYONCE_STOPPED_WORKERS=100` for all of them. */
const WORKERS = Number(process.env['ONLYONCE_STOPPED_WORKERS'] ?? 40);
const SEED = Number(process.env['ONLYONCE_STORM_SEED'] ?? 5);
/** As many as two cores can start at once. */
const WAVE = 10;
const MESSAGES_PER_WAVE = 200;
/** The stop comes within this time after a worker can be told to, its start included. Unit: ms. */
const LATEST_STOP_MS = 1_500;
const DEADLINE_MS = 10_000;

const SETTINGS = {
  concurrency: 16,
  commit: 'claimed',
  visibilityTimeoutSeconds: 10,
  lease: { leaseMs: 5_000, heartbeatMs: 1_000 },
  handleMs: 400,
  stopDeadlineMs: DEADLINE_MS,
  isTelling: true,
} satisfies Partial<StormSettings>;

/** What must be the same for each worker, and what differs. */
interface Stopped {
  readonly exit: unknown;
  readonly leftovers: number;
  /** Receives that were sent, and deliveries that were started, after it knew that it was to stop. */
  readonly lateReceives: number;
  readonly lateDeliveries: number;
  readonly isInTime: boolean;
}

const CLEAN: Stopped = {
  exit: { code: 0, signal: null },
  leftovers: 0,
  lateReceives: 0,
  lateDeliveries: 0,
  isInTime: true,
};

/** Stopped at a random moment; `deliveries` that it had started by then. */
async function stopAtRandom(worker: StormWorker, delayMs: number): Promise<StormWorker> {
  await worker.lines.when(1, ({ event }) => event === 'booted');
  await sleep(systemClock, delayMs);
  worker.child.signal('SIGTERM');
  await worker.child.exited;
  return worker;
}

async function judge({ child, lines }: StormWorker): Promise<Stopped> {
  const journal = lines.entries;
  const late = journal.slice(journal.findIndex(({ event }) => event === 'stop') + 1);
  const end = journal.find((line) => line.event === 'stopped');
  return {
    exit: await child.exited,
    leftovers: end?.leftovers ?? Number.NaN,
    lateReceives: countOf(late, 'receive'),
    lateDeliveries: countOf(late, 'delivery'),
    isInTime: end !== undefined && end.durationMs <= DEADLINE_MS,
  };
}

function countOf(lines: readonly StormLine[], event: StormLine['event']): number {
  return lines.filter((line) => line.event === event).length;
}

/** One more worker does what they have left. */
async function finish(bench: Bench): Promise<void> {
  const last = startStormWorker(bench, lab, { ...SETTINGS, name: 'last', isTelling: false });
  await whenEmpty(bench);
  await last.child.stop({ graceMs: DEADLINE_MS });
}

function figuresOf(workers: readonly StormWorker[]): string {
  const deliveries = workers.map(({ lines }) => countOf(lines.entries, 'delivery'));
  const durations = workers.flatMap(({ lines }) =>
    lines.entries.flatMap((line) => (line.event === 'stopped' ? [line.durationMs] : [])),
  );
  const unstarted = deliveries.filter((count) => count === 0).length;
  const work = `${String(deliveries.reduce((sum, count) => sum + count))} deliveries`;
  return `${String(workers.length)} workers stopped, ${String(unstarted)} before their first message, ${work}, longest stop ${String(Math.max(...durations))} ms`;
}

test('M17 workers that are told to stop at random moments end well in time, and receive nothing after that', async () => {
  // Arrange
  const bench = await lab.open({ visibilityTimeoutSeconds: SETTINGS.visibilityTimeoutSeconds });
  const random = seededRandom(SEED);
  const waves = Math.ceil(WORKERS / WAVE);
  const workload = makeWorkload(waves * MESSAGES_PER_WAVE, random);
  const perWave = Math.ceil(workload.bodies.length / waves);
  const stopped: StormWorker[] = [];

  // Act
  for (let wave = 0; wave < waves; wave += 1) {
    await sendWorkload(bench, workload.bodies.slice(wave * perWave, (wave + 1) * perWave));
    const started = Array.from({ length: WAVE }, (_, index) =>
      startStormWorker(bench, lab, { ...SETTINGS, name: `worker-${String(wave * WAVE + index)}` }),
    );
    stopped.push(...(await Promise.all(started.map((worker) => stopAtRandom(worker, random() * LATEST_STOP_MS)))));
  }
  await finish(bench);

  // Assert
  process.stdout.write(`${figuresOf(stopped)}\n`);
  expect(await Promise.all(stopped.map(judge))).toEqual(stopped.map(() => CLEAN));
  const { copies, ...left } = await aftermathOf(bench, workload);
  expect([left, copies]).toEqual([expectedOf(workload), 0]);
});
