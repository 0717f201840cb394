/** Worker processes on the queues of a bench, a workload that shows doubled and lost effects, and what is left of it. */
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { SendMessageBatchCommand } from '@aws-sdk/client-sqs';
import { afterAll, onTestFinished } from 'vitest';
import { sleep, systemClock, type Random } from '../../src/clock.ts';
import { startChild, type Child } from '../../src/local/child-process.ts';
import { firstOfCopies, readDeadLetters, type DeadLetter } from '../../src/queues/dead-letters.ts';
import { counterKey, noteBody } from './worker-contract.ts';
import type { Bench, Lab } from './worker-fixture.ts';
import { Journal } from './worker-journal.ts';
import { POISON, type StormInput, type StormLine } from './worker-storm-process.ts';

const ENTRY = fileURLToPath(new URL('./worker-storm-process.ts', import.meta.url));

/**
 * With the memory of a whole machine V8 collects late, and a process grows for its first 8,000 messages before it stays
 * where it is. A small heap is there at once, and a leak ends the process. Unit: MiB.
 */
const SMALL_HEAP = ['--max-old-space-size=80', '--max-semi-space-size=2'];

/** Many processes load the same sources: compiled once, each start takes a fraction of the time. */
const compileCache: string = mkdtempSync(path.join(tmpdir(), 'onlyonce-storm-'));
afterAll(() => {
  rmSync(compileCache, { recursive: true, force: true });
});

export interface StormWorker {
  readonly name: string;
  readonly child: Child;
  readonly lines: Journal<StormLine>;
}

export type StormSettings = Omit<
  StormInput,
  'sqsEndpoint' | 'dynamodbEndpoint' | 'queue' | 'queueUrl' | 'deadLetterQueueUrl'
>;

/** Starts a process; it is killed when the test ends. */
export function startStormWorker(bench: Bench, lab: Lab, settings: StormSettings): StormWorker {
  const { sqsEndpoint, dynamodbEndpoint } = lab;
  const { queue, queueUrl, deadLetterQueueUrl } = bench;
  const input: StormInput = { sqsEndpoint, dynamodbEndpoint, queue, queueUrl, deadLetterQueueUrl, ...settings };
  const lines = new Journal<StormLine>();
  const child = startChild({
    name: settings.name,
    command: process.execPath,
    args: [...SMALL_HEAP, '--expose-gc', ENTRY, JSON.stringify(input)],
    env: { ...process.env, NODE_COMPILE_CACHE: compileCache },
    stdin: 'none',
    onStdoutLine: (line) => {
      lines.add(JSON.parse(line) as StormLine);
    },
  });
  onTestFinished(() => child.stop({ graceMs: 0 }));
  return { name: settings.name, child, lines };
}

/** What the process holds after a collection of garbage. Unit: bytes. */
export async function usedMemory({ child, lines }: StormWorker): Promise<number> {
  const isMemory = (line: StormLine): boolean => line.event === 'memory';
  const before = lines.entries.filter(isMemory).length;
  child.signal('SIGUSR2');
  const told = (await lines.when(before + 1, isMemory)).at(-1);
  return told?.event === 'memory' ? told.usedBytes : Number.NaN;
}

/** What the process has in memory. Linux only, like the local DynamoDB. Unit: bytes. */
export function residentBytes({ child }: StormWorker): number {
  const [, kibibytes] = /^VmRSS:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${String(child.pid)}/status`, 'utf8')) ?? [];
  return Number(kibibytes) * 1_024;
}

export interface Workload {
  readonly bodies: readonly string[];
  /** Keys whose effect must be there once. */
  readonly keys: readonly string[];
  /** Keys that fail each time. */
  readonly poison: readonly string[];
  /** Among `keys`: each has one more message with another text, and one of the two is dead-lettered. */
  readonly contradicted: readonly string[];
  readonly unreadable: readonly string[];
}

const DUPLICATES = 0.3;
const ODD_ONES = 10;

/** @param count of messages in all, 30 % of them duplicates; 30 more belong on the dead-letter queue. */
export function makeWorkload(count: number, random: Random): Workload {
  const names = (kind: string, size: number): string[] =>
    Array.from({ length: size }, (_, index) => `${kind}-${String(index)}`);
  const plain = names('note', Math.round(count * (1 - DUPLICATES)) - ODD_ONES);
  const contradicted = names('twice', ODD_ONES);
  const poison = names('poison', ODD_ONES);
  const unreadable = names('unreadable', ODD_ONES);
  const duplicates = Array.from({ length: Math.round(count * DUPLICATES) }, () => pick(plain, random));
  const bodies = [
    ...[...plain, ...duplicates].map((id) => noteBody({ id, text: 'plain' })),
    ...contradicted.flatMap((id) => ['one', 'other'].map((text) => noteBody({ id, text }))),
    ...poison.map((id) => noteBody({ id, text: POISON })),
    ...unreadable,
  ];
  return { bodies: shuffled(bodies, random), keys: [...plain, ...contradicted], poison, contradicted, unreadable };
}

export function pick<Value>(values: readonly Value[], random: Random): Value {
  const value = values[Math.floor(random() * values.length)];
  if (value === undefined) throw new RangeError('nothing to pick from');
  return value;
}

function shuffled<Value>(values: readonly Value[], random: Random): Value[] {
  return values
    .map((value) => ({ value, order: random() }))
    .toSorted((left, right) => left.order - right.order)
    .map(({ value }) => value);
}

/** Sends as fast as the queue takes it, four requests at a time. */
export async function sendWorkload(bench: Bench, bodies: readonly string[]): Promise<void> {
  let next = 0;
  const lane = async (): Promise<void> => {
    for (let from = next; from < bodies.length; from = next) {
      next = from + 10;
      const Entries = bodies.slice(from, next).map((MessageBody, index) => ({ Id: String(index), MessageBody }));
      const { Failed = [] } = await bench.client.send(
        new SendMessageBatchCommand({ QueueUrl: bench.queueUrl, Entries }),
      );
      if (Failed.length > 0) throw new Error(`${String(Failed.length)} messages were not taken`);
    }
  };
  await Promise.all(Array.from({ length: 4 }, lane));
}

const LOOK_EVERY_MS = 250;

/** Hidden messages count: what a killed worker had comes back after its visibility. */
export async function whenEmpty(bench: Bench): Promise<void> {
  while ((await bench.depth()) > 0) await sleep(systemClock, LOOK_EVERY_MS);
}

/** What the table says of the effects, and the dead-letter queue of the rest. */
export interface Aftermath {
  /** Keys whose effect is not there. */
  readonly lost: readonly string[];
  /** Keys whose effect is there more than once. */
  readonly doubled: readonly string[];
  /** Effects that nobody asked for. */
  readonly unknown: readonly string[];
  /** What was dead-lettered for which reason, each message once however many copies there are. */
  readonly letters: Readonly<Record<string, readonly string[]>>;
  readonly copies: number;
  readonly queued: number;
}

export async function aftermathOf(bench: Bench, { keys }: Workload): Promise<Aftermath> {
  const prefix = counterKey(`${bench.queue}/`).PK;
  const counts = new Map<string, number>();
  for await (const item of bench.store.scan()) {
    const name = String(item['PK']);
    if (name.startsWith(prefix)) counts.set(name.slice(prefix.length), Number(item['value']));
  }
  const wanted = new Set(keys);
  const letters = await readDeadLetters(bench.client, bench.deadLetterQueueUrl, { limit: 10_000 });
  const originals = letters.filter(firstOfCopies());
  return {
    lost: keys.filter((key) => !counts.has(key)),
    doubled: [...counts].filter(([, count]) => count !== 1).map(([key]) => key),
    unknown: [...counts.keys()].filter((key) => !wanted.has(key)),
    letters: Object.fromEntries(
      ['conflict', 'exhausted', 'invalid'].map((reason) => [
        reason,
        originals
          .filter(({ notice }) => notice?.reason === reason)
          .map(nameOf)
          .toSorted(),
      ]),
    ),
    copies: letters.length - originals.length,
    queued: await bench.depth(),
  };
}

/** What must be left of a workload, whoever was killed. */
export function expectedOf({ poison, contradicted, unreadable }: Workload): Omit<Aftermath, 'copies'> {
  const letters = {
    conflict: contradicted.toSorted(),
    exhausted: poison.toSorted(),
    invalid: unreadable.toSorted(),
  };
  return { lost: [], doubled: [], unknown: [], letters, queued: 0 };
}

function nameOf({ body }: DeadLetter): string {
  return body.startsWith('{') ? (JSON.parse(body) as { key: string }).key : body;
}
