/** `onlyonce produce charges`: sends charges from a file, from standard input, or generated from a seed. */
import { createReadStream } from 'node:fs';
import { addAbortSignal } from 'node:stream';
import { Argument, Command } from 'commander';
import { systemRandom } from '../../clock.ts';
import { CHARGE_REQUESTED } from '../../messages/charge.ts';
import { encodeMessage, type EncodedMessage } from '../../messages/envelope.ts';
import { planSends, type PlannedSend } from '../../producers/duplicates.ts';
import { generateCharges } from '../../producers/generate-charges.ts';
import { createProducer, type Producer } from '../../producers/producer.ts';
import { readCharges } from '../../producers/read-charges.ts';
import type { SendResult } from '../../producers/send-result.ts';
import type { Flow } from '../../queues/topology.ts';
import { connect } from '../connection.ts';
import { EXIT } from '../exit-codes.ts';
import { interruption } from '../interruption.ts';
import { numberOption, parseFlow, withConnection, type ConnectionFlags } from '../options.ts';
import { createOutput, type Output } from '../output.ts';

interface ProduceFlags extends ConnectionFlags {
  readonly count: number;
  readonly seed?: number;
  readonly duplicates: number;
  readonly conflicts: number;
  readonly malformed: number;
}

/** Planned and sent together: bounds memory, whatever the size of the file. */
const CHUNK = 1_000;
const MAX_SEED = 2_147_483_647;

export function produceCommand(): Command {
  const counts = [0, 100_000] as const;
  return withConnection(new Command('produce'))
    .description('send messages, with deliberate duplicates if wanted; --json prints what "verify --sent" reads')
    .addArgument(new Argument('<flow>', 'what to send').argParser(parseFlow))
    .argument('[file]', 'NDJSON, one charge a line; - is standard input; none: generated')
    .addOption(numberOption('--count <n>', 'how many to generate', [1, 1_000_000]).env('ONLYONCE_COUNT').default(100))
    .addOption(numberOption('--seed <n>', 'repeats the same run; none: a new one', [0, MAX_SEED]).env('ONLYONCE_SEED'))
    .addOption(
      numberOption('--duplicates <percent>', 'duplicates per 100 messages', [0, 1_000])
        .env('ONLYONCE_DUPLICATES')
        .default(0),
    )
    .addOption(numberOption('--conflicts <n>', 'same key, other amount', counts).env('ONLYONCE_CONFLICTS').default(0))
    .addOption(
      numberOption('--malformed <n>', 'bodies that nobody can read', counts).env('ONLYONCE_MALFORMED').default(0),
    )
    .action(produce);
}

async function produce(flow: Flow, file: string | undefined, flags: ProduceFlags): Promise<void> {
  const output = createOutput(flags.json === true);
  const { signal } = interruption();
  const seed = flags.seed ?? Math.floor(systemRandom() * MAX_SEED);
  const connection = await connect(flags, output);
  try {
    const { queue } = await connection.find(flow);
    const producer = createProducer({ client: connection.queues, queueUrl: queue.url });
    const tally = { sent: 0, failed: 0, bad: 0 };
    const source = file === undefined ? generated(flags.count, seed) : read(file, { output, tally, signal });
    let chunkNumber = 0;
    for await (const chunk of inChunks(source)) {
      const isFirst = chunkNumber === 0;
      const sends = planSends(chunk, {
        seed: seed + chunkNumber,
        duplicateRatio: flags.duplicates / 100,
        conflicts: isFirst ? flags.conflicts : 0,
        malformed: isFirst ? flags.malformed : 0,
      });
      await sendAll(sends, { producer, output, tally, signal });
      chunkNumber += 1;
      if (signal.aborted) break;
    }
    output.note(
      `sent ${String(tally.sent)} to ${queue.name}, failed ${String(tally.failed)}, bad lines ${String(tally.bad)}, seed ${String(seed)}`,
    );
    process.exitCode = exitCode(tally, signal.aborted);
  } catch (error) {
    // A source that was cut off by the interruption has no fault of its own.
    if (!signal.aborted) throw error;
    process.exitCode = EXIT.interrupted;
  } finally {
    await connection.close();
  }
}

interface Tally {
  sent: number;
  failed: number;
  bad: number;
}

interface SendScope {
  readonly producer: Producer;
  readonly output: Output;
  readonly tally: Tally;
  readonly signal: AbortSignal;
}

async function sendAll(sends: readonly PlannedSend[], scope: SendScope): Promise<void> {
  const { producer, output, tally, signal } = scope;
  const before = tally.sent;
  const results = await producer.sendBatch(sends, {
    signal,
    onProgress: ({ sent, total }) => {
      output.progress(`sent ${String(before + sent)} of ${String(before + total)}`);
    },
  });
  for (const result of results) {
    const plan = sends[result.index];
    if (result.kind === 'sent') tally.sent += 1;
    else tally.failed += 1;
    const line = sentLine(result, plan);
    if (output.isJson) output.data(line, '');
    else if (result.kind !== 'sent') output.note(`not sent: ${plan?.key ?? ''}: ${result.reason}`);
  }
}

/** A malformed body has no key that could be looked up. */
function sentLine(result: SendResult, plan: PlannedSend | undefined): Record<string, unknown> {
  return { ...result, kind: plan?.kind, result: result.kind, key: plan?.kind === 'malformed' ? undefined : plan?.key };
}

async function* generated(count: number, seed: number): AsyncGenerator<EncodedMessage> {
  for (const charge of generateCharges({ count, seed })) yield encodeMessage(CHARGE_REQUESTED, charge);
}

async function* read(file: string, scope: Omit<SendScope, 'producer'>): AsyncGenerator<EncodedMessage> {
  // Standard input may bring nothing for hours: the interruption must not wait for it.
  const stream = addAbortSignal(scope.signal, file === '-' ? process.stdin : createReadStream(file));
  for await (const line of readCharges(stream)) {
    if (line.kind === 'charge') {
      yield encodeMessage(CHARGE_REQUESTED, line.charge);
    } else {
      scope.tally.bad += 1;
      scope.output.note(`line ${String(line.line)}: ${line.reason}`);
    }
  }
}

async function* inChunks(source: AsyncIterable<EncodedMessage>): AsyncGenerator<EncodedMessage[]> {
  let chunk: EncodedMessage[] = [];
  for await (const message of source) {
    chunk.push(message);
    if (chunk.length < CHUNK) continue;
    yield chunk;
    chunk = [];
  }
  if (chunk.length > 0) yield chunk;
}

function exitCode(tally: Tally, isInterrupted: boolean): number {
  if (isInterrupted) return EXIT.interrupted;
  if (tally.failed > 0) return EXIT.failure;
  return tally.bad > 0 ? EXIT.findings : EXIT.ok;
}
