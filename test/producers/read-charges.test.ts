import { createReadStream } from 'node:fs';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { ConfigurationError } from '../../src/errors.ts';
import { CHARGE_REQUESTED, type Charge } from '../../src/messages/charge.ts';
import { encodeMessage } from '../../src/messages/envelope.ts';
import { generateCharges } from '../../src/producers/generate-charges.ts';
import { readCharges, type ChargeLine } from '../../src/producers/read-charges.ts';
import { charge } from '../messages/charges.ts';

const DATA = new URL('../../data/charges.ndjson', import.meta.url);

// What streams hand out: chunks that end anywhere.
async function* chunksOf(bytes: Uint8Array, chunkBytes: number): AsyncGenerator<Uint8Array, void> {
  for (let at = 0; at < bytes.length; at += chunkBytes) {
    yield await Promise.resolve(bytes.subarray(at, at + chunkBytes));
  }
}

function read(
  input: string | Uint8Array,
  options: { maxLineBytes?: number; chunkBytes?: number } = {},
): Promise<ChargeLine[]> {
  const { chunkBytes = 1_000, ...readOptions } = options;
  return gather(readCharges(chunksOf(Buffer.from(input), chunkBytes), readOptions));
}

async function gather(source: AsyncIterable<ChargeLine>): Promise<ChargeLine[]> {
  const lines: ChargeLine[] = [];
  for await (const each of source) lines.push(each);
  return lines;
}

function line(fields: Partial<Charge> = {}): string {
  return JSON.stringify(charge(fields));
}

test('reads the same charges wherever the chunks of the source end', async () => {
  const charges = generateCharges({ count: 8, seed: 11 });
  const text = charges.map((each) => JSON.stringify(each)).join('\n');
  const expected = charges.map((each, at) => ({ kind: 'charge', line: at + 1, charge: each }));

  await fc.assert(
    fc.asyncProperty(fc.integer({ min: 1, max: 400 }), fc.constantFrom('\n', '\r\n'), async (chunkBytes, end) => {
      expect(await read(text.replaceAll('\n', end), { chunkBytes })).toEqual(expected);
    }),
    { numRuns: 50 },
  );
});

test('passes over blank lines, and still counts them', async () => {
  const lines = await read(`\n  \r\n${line()}\n\n\t\n${line()}\n\n`);

  expect(lines.map((each) => [each.kind, each.line])).toEqual([
    ['charge', 3],
    ['charge', 6],
  ]);
});

test('reads a file that begins with a byte order mark', async () => {
  expect(await read(`\ufeff${line()}\n`)).toEqual([{ kind: 'charge', line: 1, charge: charge() }]);
});

test('reads an envelope as the charge within it', async () => {
  expect(await read(encodeMessage(CHARGE_REQUESTED, charge()).body)).toEqual([
    { kind: 'charge', line: 1, charge: charge() },
  ]);
});

test.each<[what: string, bad: string | Uint8Array, reason: RegExp]>([
  ['that is not JSON', '{"requestId":', /^the line is not JSON$/],
  ['with bytes that are not UTF-8', Uint8Array.of(0x22, 0xff, 0xfe, 0x22), /not valid UTF-8/],
  ['with a character cut in half', Uint8Array.of(0x22, 0xc3), /not valid UTF-8/],
  ['with half of a surrogate pair', line().replace('order', '\\ud83d'), /surrogate/],
  ['with a field named __proto__', '{"__proto__":{}}', /__proto__/],
  ['that is nested too deep', '['.repeat(500), /not JSON/],
  ['that is a list', '[]', /expected object/],
  ['without an amount', line().replace('"amountMinor":1250,', ''), /^amountMinor: /],
  ['with a currency in small letters', line({ currency: 'eur' }), /^currency: must be an ISO 4217 code/],
  ['with an envelope of another type', '{"type":"a","version":1,"key":"k","payload":{}}', /no contract for type "a"/],
  [
    'with an envelope under a wrong key',
    encodeMessage(CHARGE_REQUESTED, charge()).body.replace('req_1', 'r'),
    /business key/,
  ],
])('tells of a line %s, and reads the lines around it', async (_what, bad, reason) => {
  const input = Buffer.concat([line(), '\n', bad, '\n', line()].map((part) => Buffer.from(part)));

  const lines = await read(input);

  expect(lines.map((each) => [each.kind, each.line])).toEqual([
    ['charge', 1],
    ['bad', 2],
    ['charge', 3],
  ]);
  expect(lines[1]?.kind === 'bad' && lines[1].reason).toMatch(reason);
});

test('names every fault of a charge at once', async () => {
  const [bad] = await read(line({ amountMinor: 0, currency: 'eur' }));

  expect(bad).toMatchObject({ kind: 'bad', reason: expect.stringMatching(/amountMinor: .*; currency: /) as unknown });
});

test.each(['\n', '\r\n', ''])('takes a line of exactly the longest length before the end %j', async (end) => {
  const maxLineBytes = Buffer.byteLength(line());

  expect(await read(line() + end, { maxLineBytes })).toMatchObject([{ kind: 'charge' }]);
  expect(await read(` ${line()}${end}`, { maxLineBytes })).toMatchObject([{ kind: 'bad', reason: /at most/ }]);
});

test('passes over a line of 64 MiB without keeping it, and reads the next', async () => {
  // Always the same chunk: what grows beside it is what the reader keeps.
  const chunk = new Uint8Array(65_536).fill(0x78);
  const bytesBefore = process.memoryUsage().arrayBuffers;
  let peakBytes = 0;
  async function* source(): AsyncGenerator<Uint8Array, void> {
    for (let chunks = 0; chunks < 1_024; chunks += 1) {
      yield await Promise.resolve(chunk);
      peakBytes = Math.max(peakBytes, process.memoryUsage().arrayBuffers - bytesBefore);
    }
    yield Buffer.from(`\n${line()}\n`);
  }

  const lines = await gather(readCharges(source()));

  expect(lines).toEqual([
    { kind: 'bad', line: 1, reason: 'the line has 67108864 bytes, at most 1048576 bytes are allowed' },
    { kind: 'charge', line: 2, charge: charge() },
  ]);
  expect(peakBytes).toBeLessThan(16_777_216);
});

test('ends its source when the reader stops early', async () => {
  let ended = false;
  async function* source(): AsyncGenerator<Uint8Array, void> {
    try {
      for (;;) yield await Promise.resolve(Buffer.from(`${line()}\n`));
    } finally {
      ended = true;
    }
  }

  for await (const each of readCharges(source())) if (each.line === 3) break;

  expect(ended).toBe(true);
});

test('throws what its source throws, after the lines that came before', async () => {
  async function* source(): AsyncGenerator<Uint8Array, void> {
    yield await Promise.resolve(Buffer.from(`${line()}\n`));
    throw new Error('the disk is gone');
  }
  const lines: ChargeLine[] = [];

  const reading = (async () => {
    for await (const each of readCharges(source())) lines.push(each);
  })();

  await expect(reading).rejects.toThrow('the disk is gone');
  expect(lines).toHaveLength(1);
});

test('refuses a longest line that is out of range', async () => {
  await expect(read('', { maxLineBytes: 0 })).rejects.toThrow(ConfigurationError);
  await expect(read('', { maxLineBytes: 1_048_577 })).rejects.toThrow(/maxLineBytes/);
});

test('the package brings 500 charges, made by the generator with seed 2026', async () => {
  const lines = await gather(readCharges(createReadStream(DATA)));

  const charges = lines.map((each) => (each.kind === 'charge' ? each.charge : each.reason));
  expect(charges).toEqual(generateCharges({ count: 500, seed: 2026 }));
});
