/** The demo as one story: start, send, hit two workers, wait until the queue is drained, verify. */
import { createReadStream } from 'node:fs';
import { seededRandom, sleep, systemClock } from '../../clock.ts';
import { CHARGE_REQUESTED } from '../../messages/charge.ts';
import { encodeMessage, type EncodedMessage } from '../../messages/envelope.ts';
import { planSends, type PlannedSend } from '../../producers/duplicates.ts';
import { createProducer } from '../../producers/producer.ts';
import { readCharges } from '../../producers/read-charges.ts';
import { readDepth, totalOf } from '../../queues/depth.ts';
import { checkCharges, type SentMessage } from '../../verify/charges.ts';
import type { Connection, FlowQueues } from '../connection.ts';
import { CommandError, EXIT } from '../exit-codes.ts';
import type { Output } from '../output.ts';
import { takeSnapshot } from '../snapshot.ts';
import type { Crew } from './crew.ts';
import { injectFaults, type Fault } from './faults.ts';
import { faultsStruck, faultText, tallyCharges, type DemoResult } from './report.ts';

export interface DemoScope {
  readonly connection: Connection;
  readonly queues: FlowQueues;
  readonly crew: Crew;
  readonly providerUrl: string;
  readonly seed: number;
  readonly protection: 'full' | 'none';
  readonly workers: number;
  readonly output: Output;
  readonly signal: AbortSignal;
}

export interface DemoEnd {
  readonly result: DemoResult;
  readonly sends: readonly PlannedSend[];
}

/** Duplicates per charge, and how many messages are wrong on purpose. */
const PLAN = { duplicateRatio: 0.4, conflicts: 5, malformed: 5, maxDelaySeconds: 5, conflictDelaySeconds: 8 };
const DRAIN_CHECK_MS = 250;
const DRAIN_DEADLINE_MS = 120_000;
const FAULT_DEADLINE_MS = 60_000;

export async function runDemo(scope: DemoScope): Promise<DemoEnd> {
  const { crew, output, signal, seed } = scope;
  const startedMonoMs = systemClock.monotonicMs();
  const sends = planSends(await readSampleCharges(), { seed, ...PLAN });
  output.note(`starting ${String(scope.workers)} workers`);
  await Promise.all(Array.from({ length: scope.workers }, () => crew.hire()));
  signal.throwIfAborted();

  output.note(`sending ${String(sends.length)} messages`);
  const injecting = injectFaults({
    crew,
    providerUrl: scope.providerUrl,
    random: seededRandom(seed),
    signal,
    onFault: (fault) => {
      output.note(faultText(fault));
    },
  });
  const [sent, faults] = await inTime(Promise.all([send(sends, scope), injecting]), signal);
  await untilDrained(scope);
  const stubborn = await crew.dismiss();
  if (stubborn.length > 0) output.note(`workers that did not end in order: ${stubborn.join(', ')}`);

  const result = await verify({ ...scope, sends, sent, faults, startedMonoMs });
  return { result, sends };
}

/** The shipped file stands beside the sources and is part of the package. */
async function readSampleCharges(): Promise<EncodedMessage[]> {
  const file = new URL('../../../data/charges.ndjson', import.meta.url);
  const messages: EncodedMessage[] = [];
  for await (const line of readCharges(createReadStream(file))) {
    if (line.kind === 'bad')
      throw new CommandError(EXIT.failure, `sample data, line ${String(line.line)}: ${line.reason}`);
    messages.push(encodeMessage(CHARGE_REQUESTED, line.charge));
  }
  return messages;
}

async function send(sends: readonly PlannedSend[], scope: DemoScope): Promise<SentMessage[]> {
  const producer = createProducer({ client: scope.connection.queues, queueUrl: scope.queues.queue.url });
  const results = await producer.sendBatch(sends, { signal: scope.signal });
  return results.map((result) => {
    const plan = sends[result.index];
    if (result.kind !== 'sent')
      throw new CommandError(EXIT.failure, `could not send ${plan?.key ?? ''}: ${result.reason}`);
    const key = plan?.kind === 'malformed' ? undefined : result.key;
    return { messageId: result.messageId, key, isConflict: plan?.kind === 'conflict' };
  });
}

/** Rejects when the run is interrupted, or when a fault that waits for something waits for too long. */
async function inTime<Result>(result: Promise<Result>, signal: AbortSignal): Promise<Result> {
  const settled = new AbortController();
  const deadline = sleep(systemClock, FAULT_DEADLINE_MS, AbortSignal.any([signal, settled.signal])).then(() => {
    throw new CommandError(EXIT.failure, 'a fault did not strike in time: the workers are too slow, or stuck');
  });
  try {
    return await Promise.race([result, deadline]);
  } finally {
    settled.abort();
  }
}

async function untilDrained({ connection, queues, output, signal }: DemoScope): Promise<void> {
  const deadline = systemClock.monotonicMs() + DRAIN_DEADLINE_MS;
  let emptyInARow = 0;
  // Depths are approximate: only when two looks agree is the queue taken for empty.
  while (emptyInARow < 2) {
    const left = totalOf(await readDepth(connection.queues, queues.queue.url));
    emptyInARow = left === 0 ? emptyInARow + 1 : 0;
    output.progress(`${String(left)} messages left`);
    if (systemClock.monotonicMs() > deadline) {
      throw new CommandError(EXIT.failure, `the queue was not drained in time, ${String(left)} messages are left`);
    }
    await sleep(systemClock, DRAIN_CHECK_MS, signal);
  }
}

async function verify(
  scope: DemoScope & {
    readonly sends: readonly PlannedSend[];
    readonly sent: readonly SentMessage[];
    readonly faults: readonly Fault[];
    readonly startedMonoMs: number;
  },
): Promise<DemoResult> {
  const { connection, queues, providerUrl, crew, sends, sent, faults } = scope;
  const answers = crew.events.flatMap((event) => {
    const isAnswer = event.event === 'outcome' && event.key !== undefined && event.answer !== undefined;
    return isAnswer ? [{ key: event.key ?? '', answer: event.answer ?? '' }] : [];
  });
  const snapshot = await takeSnapshot({ connection, queues, providerUrl, sent, answers });
  const invariants = [...checkCharges(snapshot), faultsStruck(faults)];
  return {
    ok: invariants.every((each) => each.ok),
    seed: scope.seed,
    seconds: Math.round((systemClock.monotonicMs() - scope.startedMonoMs) / 100) / 10,
    protection: scope.protection,
    flows: { charges: tallyCharges(sends, crew.events, snapshot) },
    faults,
    invariants,
  };
}
