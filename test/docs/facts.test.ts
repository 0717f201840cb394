import { describe, expect, it } from 'vitest';
import type { Command, Option } from 'commander';
import { EXIT } from '../../src/cli/exit-codes.ts';
import { createProgram } from '../../src/cli/program.ts';
import {
  COUNTER_DEFAULTS,
  LEASE_DEFAULTS,
  PRODUCER_DEFAULTS,
  STORE_DEFAULTS,
  VERSIONED_DEFAULTS,
  WORKER_DEFAULTS,
} from '../../src/index.ts';
import { resolveHttpPaymentProviderOptions } from '../../src/payments/http-payment-provider.ts';
import { QUEUE_CLIENT_DEFAULTS } from '../../src/queues/client.ts';
import { STORE_CLIENT_DEFAULTS } from '../../src/store/client.ts';
import { resolveEffectCallOptions } from '../../src/store/effects/effect-call-options.ts';
import { resolveLeaseOptions } from '../../src/store/leases/lease-options.ts';
import { checkedLockOptions } from '../../src/store/locks/lock-options.ts';
import { checkedMaxWaitMs } from '../../src/store/locks/lock-waiters.ts';
import {
  accountKey,
  counterKey,
  counterShardKey,
  countMarkerKey,
  deadLetterKey,
  effectRecordKey,
  ledgerEntryKey,
  lockKey,
  uniqueKey,
  type ItemKey,
} from '../../src/store/table.ts';
import { readFiles } from '../tooling/repository.ts';
import { readDocument, sectionOf, tableIn } from './markdown.ts';

/** Text in backticks, or the cell as it is. */
function bare(cell: string | undefined): string {
  return (cell ?? '').replaceAll('`', '');
}

describe('docs/command-line.md', () => {
  const text = readDocument('docs/command-line.md');

  /** Commands that run something, by their full names. */
  const leaves = leavesOf(createProgram(), []);
  const shared = tableIn(sectionOf(text, '## Connection')).rows.map(bareFlag);

  function leavesOf(command: Command, path: readonly string[]): { name: string; command: Command }[] {
    if (command.commands.length === 0) return [{ name: path.join(' '), command }];
    return command.commands.flatMap((child) => leavesOf(child, [...path, child.name()]));
  }

  function bareFlag(row: readonly string[]): string {
    return row.slice(0, 3).map(bare).join(' | ');
  }

  function describeOption(option: Option): string {
    const value: unknown = option.defaultValueDescription ?? option.defaultValue ?? '';
    return [option.flags, option.envVar ?? '', String(value)].join(' | ');
  }

  function documented(name: string): string[] {
    const section = sectionOf(text, `## ${name}`);
    return section.includes('| flag |') ? tableIn(section).rows.map(bareFlag) : [];
  }

  it.each(leaves)('shows the flags, variables and defaults of $name', ({ name, command }) => {
    const all = command.options.map(describeOption);
    const own = name === 'up' ? all : all.filter((option) => !shared.includes(option));

    expect(documented(name)).toEqual(own);
    expect(shared.filter((option) => !all.includes(option) && name !== 'up')).toEqual([]);
  });

  it('has a section for each command and for nothing else', () => {
    const headings = [...text.matchAll(/^## (.+)$/gm)].map(([, heading]) => heading);

    expect(headings).toEqual(['Exit codes', 'Connection', ...leaves.map(({ name }) => name)]);
  });

  it('lists the exit codes by number and name', () => {
    const rows = tableIn(sectionOf(text, '## Exit codes')).rows;

    expect(Object.fromEntries(rows.map(([code, name]) => [name, Number(code)]))).toEqual(EXIT);
  });
});

describe('docs/configuration.md', () => {
  const text = readDocument('docs/configuration.md');
  const provider = resolveHttpPaymentProviderOptions({ baseUrl: 'http://127.0.0.1' });
  const { retryBackoff, ...worker } = WORKER_DEFAULTS;
  const { connectTimeoutMs: _notAnOption, ...queueClient } = QUEUE_CLIENT_DEFAULTS;
  const { lease } = resolveLeaseOptions();
  const { lease: _ofLease, ...locks } = checkedLockOptions();
  const { lease: _ofCall, queue: _scope, ...effectCall } = resolveEffectCallOptions({ scope: 'a' }, 35);
  const hostAndProcess = { holder: 'host:pid' };
  const cases: readonly { section: string; defaults: Readonly<Record<string, unknown>> }[] = [
    {
      section: 'Worker',
      defaults: { ...worker, 'retryBackoff.baseMs': retryBackoff.baseMs, 'retryBackoff.capMs': retryBackoff.capMs },
    },
    { section: 'Lease', defaults: { ...lease } },
    { section: 'Store', defaults: STORE_DEFAULTS },
    { section: 'Store client', defaults: { ...STORE_CLIENT_DEFAULTS } },
    { section: 'Producer', defaults: PRODUCER_DEFAULTS },
    { section: 'Queue client', defaults: queueClient },
    {
      section: 'Payment provider',
      defaults: { timeoutMs: provider.timeoutMs, idempotencyWindowMs: provider.idempotencyWindowMs },
    },
    { section: 'Transactions', defaults: constant('transactions/transaction-writer', 'TRANSACTION_DEFAULTS') },
    // What is not `repeat` is `throw`.
    { section: 'Single items', defaults: { whenUnanswered: 'throw' } },
    { section: 'Versioned items', defaults: VERSIONED_DEFAULTS },
    { section: 'Counters', defaults: { deadlineMs: COUNTER_DEFAULTS.deadlineMs } },
    { section: 'Index reads', defaults: constant('index-reads', 'UNTIL_FOUND_DEFAULTS') },
    {
      section: 'Effect calls',
      defaults: { callersRetryForDays: 'recordRetentionDays', ...effectCall, ...hostAndProcess },
    },
    {
      section: 'Locks',
      defaults: { ...locks, ...hostAndProcess, requireProgressMs: locks.requireProgressMs ?? 'off' },
    },
    { section: '# Waiting for a lock', defaults: { maxWaitMs: checkedMaxWaitMs({}) } },
    { section: '# Closing locks', defaults: { graceMs: constant('locks/lock-shutdown', 'DEFAULT_GRACE_MS') } },
    { section: 'Memory store', defaults: { times: 1 } },
  ];

  /** What is no export: its value is read from the source. */
  function constant(module: string, name: 'DEFAULT_GRACE_MS'): number;
  function constant(module: string, name: string): Readonly<Record<string, number>>;
  function constant(module: string, name: string): unknown {
    const source = readFiles('src/store', '.ts').find((file) => file.name === `src/store/${module}.ts`)?.text;
    const value = new RegExp(`^const ${name} = ([^;]+?)(?: as const)?;$`, 'm').exec(source ?? '')?.[1];
    if (value === undefined) throw new Error(`${module} has no constant ${name}`);
    return JSON.parse(value.replaceAll('_', '').replaceAll(/(\w+):/g, '"$1":')) as unknown;
  }

  /** `leaseMs` / 4 is what it says, for the default lease. */
  function valueOf(cell: string): string {
    const part = /^leaseMs \/ (\d+)$/.exec(cell)?.[1];
    return part === undefined ? cell : String(LEASE_DEFAULTS.leaseMs / Number(part));
  }

  it.each(cases)('gives the defaults of the section $section', ({ section, defaults }) => {
    const { rows } = tableIn(sectionOf(text, section.startsWith('#') ? `##${section}` : `## ${section}`));

    const documented = Object.fromEntries(rows.map(([name, value]) => [bare(name), valueOf(bare(value))]));

    expect(documented).toEqual(
      Object.fromEntries(Object.entries(defaults).map(([name, value]) => [name, String(value)])),
    );
  });

  it('is right that a lease that is three times as long moves what is derived from it', () => {
    const { lease: longer } = resolveLeaseOptions({ leaseMs: 60_000 });

    expect(longer).toMatchObject({ heartbeatMs: 15_000, safetyMarginMs: 6_000, maxClockSkewMs: 6_000 });
  });
});

describe('docs/errors.md', () => {
  const text = readDocument('docs/errors.md');
  const sources = new Map(readFiles('src', '.ts').map((file) => [file.name, file.text]));

  function firstCells(section: string): string[] {
    return tableIn(section === '' ? text : sectionOf(text, `## ${section}`)).rows.map(([cell]) => bare(cell));
  }

  /** The members of a union of texts, as they stand in the source. */
  function membersOf(file: string, type: string): string[] {
    const declaration = new RegExp(`type ${type} =([^]*?);\\n\\n`).exec(sources.get(file) ?? '')?.[1] ?? '';
    return [...declaration.matchAll(/'([\w-]+)'/g)].map(([, member = '']) => member);
  }

  it('lists every code of an error once', () => {
    const codes = [...sources]
      // The local provider's own error never leaves its process: it becomes an HTTP answer.
      .filter(([name]) => name !== 'src/payments/http-json.ts')
      .flatMap(([, source]) => [...source.matchAll(/readonly code = '(\w+)'/g)].map(([, code = '']) => code));

    expect(firstCells('').toSorted()).toEqual(codes.toSorted());
  });

  it.each([
    { section: 'Reasons of a BackendError', file: 'src/aws-fault.ts', type: 'FaultClass' },
    { section: 'Reasons of a PaymentError', file: 'src/payments/payment-provider.ts', type: 'PaymentFaultReason' },
    { section: 'Codes of an invalid message', file: 'src/messages/envelope.ts', type: 'InvalidCode' },
  ])('lists what the code knows under $section', ({ section, file, type }) => {
    const members = membersOf(file, type);

    expect(members.length).toBeGreaterThan(0);
    expect(firstCells(section).toSorted()).toEqual(members.toSorted());
  });
});

describe('docs/guarantees.md', () => {
  it('has one row per outcome', () => {
    const source = readFiles('src/workers', 'outcome.ts').map(({ text }) => text);
    const union = /export type Outcome =([^]*?);\n\n/.exec(source.join('\n'))?.[1] ?? '';
    const kinds = [...union.matchAll(/readonly kind: '(\w+)'/g)].map(([, kind = '']) => kind);

    const { rows } = tableIn(sectionOf(readDocument('docs/guarantees.md'), '## Outcomes'));

    expect(kinds.length).toBeGreaterThan(0);
    expect(rows.map(([kind]) => bare(kind))).toEqual(kinds);
  });
});

describe('docs/architecture.md', () => {
  it('shows the keys of the items as the code makes them', () => {
    const keys: readonly ItemKey[] = [
      effectRecordKey('<queue>', '<key>'),
      lockKey('<name>'),
      counterKey('<name>'),
      counterShardKey('<name>', Number.NaN),
      countMarkerKey('<name>', '<key>'),
      uniqueKey('<scope>', '<normalised value>'),
      accountKey('<id>'),
      ledgerEntryKey('<id>', '<requestId>'),
      deadLetterKey('<queue>', '<sha256 of the body>'),
    ];

    const { rows } = tableIn(sectionOf(readDocument('docs/architecture.md'), '## The table'));

    const shown = keys.map(({ PK, SK }) => ({ PK, SK: SK.replace('NaN', '<n>') }));
    expect(rows.map(([, partition, sort]) => ({ PK: bare(partition), SK: bare(sort) }))).toEqual(shown);
  });
});
