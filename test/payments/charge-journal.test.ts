import { appendFile, readFile, writeFile } from 'node:fs/promises';
import { open } from 'node:fs/promises';
import { afterAll, afterEach, beforeAll, expect, test, vi } from 'vitest';
import { EnvironmentError } from '../../src/errors.ts';
import { ChargeJournal, type JournalEntry } from '../../src/payments/charge-journal.ts';
import { temporaryFolder } from './provider-process.ts';
import { sampleEntry } from './sample-charge.ts';

let folder: Awaited<ReturnType<typeof temporaryFolder>>;
const opened: ChargeJournal[] = [];

beforeAll(async () => {
  folder = await temporaryFolder();
});
afterEach(async () => {
  vi.restoreAllMocks();
  for (const journal of opened.splice(0)) await journal.close().catch(() => undefined);
});
afterAll(() => folder.remove());

async function openJournal(file: string): Promise<{ journal: ChargeJournal; loaded: JournalEntry[] }> {
  const loaded: JournalEntry[] = [];
  const journal = await ChargeJournal.open(file, (entry) => loaded.push(entry));
  opened.push(journal);
  return { journal, loaded };
}

async function listed(journal: ChargeJournal): Promise<JournalEntry[]> {
  const entries: JournalEntry[] = [];
  for await (const entry of journal.entries()) entries.push(entry);
  return entries;
}

test('gives back every entry, in order and unchanged, when it is opened again', async () => {
  const file = folder.file('reopened');
  const declined = sampleEntry({ idempotencyKey: 'k2', result: { kind: 'declined', reason: 'no money: "é\n"' } });
  const { journal } = await openJournal(file);
  await Promise.all([journal.append(sampleEntry()), journal.append(declined)]);
  await journal.close();

  const again = await openJournal(file);

  expect(again.loaded).toEqual([sampleEntry(), declined]);
  expect(again.journal.tornBytes).toBe(0);
});

test('reads entries that lie across the chunks of a file larger than one read', async () => {
  const file = folder.file('large');
  const entries = Array.from({ length: 600 }, (_, n) => sampleEntry({ reference: `${String(n)}-${'é'.repeat(120)}` }));
  await writeFile(file, entries.map((entry) => `${JSON.stringify(entry)}\n`).join(''));

  const { journal, loaded } = await openJournal(file);

  expect(loaded).toEqual(entries);
  expect(await listed(journal)).toEqual(entries);
});

test('neither resolves an append nor lists its entry before the file was synced', async () => {
  const { journal } = await openJournal(folder.file('synced'));
  const handle = await open(folder.file('any'), 'a');
  const prototype = Object.getPrototypeOf(handle) as { sync: () => Promise<void> };
  await handle.close();
  let finishSync = (): void => undefined;
  const syncing = new Promise<void>((resolveReached) => {
    vi.spyOn(prototype, 'sync').mockImplementation(() => {
      resolveReached();
      return new Promise((resolve) => {
        finishSync = resolve;
      });
    });
  });

  let resolved = false;
  const appended = journal.append(sampleEntry()).then(() => {
    resolved = true;
  });
  await syncing;

  expect(resolved).toBe(false);
  expect(await listed(journal)).toEqual([]);
  finishSync();
  await appended;
  expect(await listed(journal)).toEqual([sampleEntry()]);
});

test('cuts off a torn last line, says how long it was, and goes on with whole lines', async () => {
  const file = folder.file('torn');
  const torn = JSON.stringify(sampleEntry({ idempotencyKey: 'torn' })).slice(0, 40);
  await writeFile(file, `${JSON.stringify(sampleEntry())}\n${torn}`);

  const { journal, loaded } = await openJournal(file);
  await journal.append(sampleEntry({ idempotencyKey: 'next' }));

  expect(journal.tornBytes).toBe(40);
  expect(loaded).toEqual([sampleEntry()]);
  expect(await listed(journal)).toEqual([sampleEntry(), sampleEntry({ idempotencyKey: 'next' })]);
});

test('refuses to open when a line that is not the last is damaged, and leaves the file as it is', async () => {
  const file = folder.file('damaged');
  const content = `${JSON.stringify(sampleEntry())}\n{"half":\n${JSON.stringify(sampleEntry())}\n`;
  await writeFile(file, content);

  await expect(openJournal(file)).rejects.toThrow(/damaged at line 2/);
  expect(await readFile(file, 'utf8')).toBe(content);
});

test('stops reading a file that has no line ends instead of taking all of it into memory', async () => {
  const file = folder.file('endless');
  await writeFile(file, 'x'.repeat(400_000));

  await expect(openJournal(file)).rejects.toThrow(/line 1 has no end/);
});

test('takes nothing more once another process has written to the file', async () => {
  const file = folder.file('shared');
  const { journal } = await openJournal(file);
  await journal.append(sampleEntry());
  await appendFile(file, `${JSON.stringify(sampleEntry())}\n`);

  await expect(journal.append(sampleEntry())).rejects.toThrow(/another process/);
  await expect(journal.append(sampleEntry())).rejects.toBeInstanceOf(EnvironmentError);
  expect(journal.failure).toBeInstanceOf(EnvironmentError);
});

test('reports a file that cannot be opened as a fault of the environment', async () => {
  await expect(openJournal(folder.file('missing/folder'))).rejects.toBeInstanceOf(EnvironmentError);
});

test('takes nothing more after it was closed', async () => {
  const { journal } = await openJournal(folder.file('closed'));

  await journal.close();

  await expect(journal.append(sampleEntry())).rejects.toThrow(/closed/);
});
