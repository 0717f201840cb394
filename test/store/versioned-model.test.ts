/**
 * Two editors, one key, any order of creating, saving, updating and removing on whatever they have last seen, with
 * requests that are lost, repeated or late: the item is always what a model says, and so is every answer.
 */
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { BackendError } from '../../src/errors.ts';
import type { ItemKey } from '../../src/store/table.ts';
import type { SeenVersion, VersionedItem, VersionedItems } from '../../src/store/versioned.ts';
import { useStoreBench } from '../support/store-bench.ts';
import type { Fault, Rule } from '../support/store-transport.ts';

const bench = useStoreBench();

const OPERATION_OF = {
  create: 'TransactWriteItems',
  save: 'UpdateItem',
  update: 'UpdateItem',
  remove: 'TransactWriteItems',
  read: 'GetItem',
} as const;

type What = keyof typeof OPERATION_OF;

type Act =
  | { readonly do: What; readonly editor: number; readonly fault: Trouble | undefined }
  /** What the network kept back arrives now. */
  | { readonly do: 'arrive' };

interface Trouble {
  readonly fault: Fault;
  readonly times: number;
}

const trouble: fc.Arbitrary<Trouble> = fc.record({
  fault: fc.constantFrom<Fault>(
    { kind: 'lose the answer' },
    { kind: 'lose the request' },
    { kind: 'deliver late' },
    { kind: 'send twice' },
    { kind: 'refuse', name: 'ThrottlingException' },
    { kind: 'refuse', name: 'InternalServerError', status: 500 },
  ),
  times: fc.integer({ min: 1, max: 3 }),
});

const act: fc.Arbitrary<Act> = fc.oneof(
  {
    weight: 9,
    arbitrary: fc.record({
      do: fc.constantFrom<What>('create', 'create', 'save', 'save', 'update', 'remove', 'remove', 'read'),
      editor: fc.nat({ max: 1 }),
      fault: fc.option(trouble, { nil: undefined, freq: 2 }),
    }),
  },
  { weight: 1, arbitrary: fc.constant({ do: 'arrive' as const }) },
);

interface Model extends SeenVersion {
  readonly text: number;
}

/** What an answer says, without the nonces that only the store knows. */
interface Told {
  readonly kind: string;
  readonly item?: Model | undefined;
}

class Run {
  readonly key: ItemKey = { PK: bench.unique('NOTE'), SK: 'META' };
  readonly told: { readonly got: Told; readonly expected: Told }[] = [];
  readonly generations: string[] = [];
  model: Model | undefined;
  readonly #editors: readonly VersionedItems[] = [bench.store().versioned, bench.store().versioned];
  readonly #seen: (Model | undefined)[] = [undefined, undefined];
  readonly #rules: Rule[] = [];
  #text = 0;

  async perform(step: Act): Promise<void> {
    if (step.do === 'arrive') return this.arrive();
    if (step.fault !== undefined) {
      const { times } = step.fault;
      // A creation that was refused and arrives once more when the item is gone makes it: what the documents say of it.
      const isLateGhost = step.do === 'create' && this.model !== undefined && step.fault.fault.kind === 'deliver late';
      const fault: Fault = isLateGhost ? { kind: 'lose the request' } : step.fault.fault;
      this.#rules.push(bench.transport.fault(OPERATION_OF[step.do], fault, { times }));
    }
    await this.#edit(step);
    bench.transport.heal();
  }

  async arrive(): Promise<void> {
    await Promise.all(this.#rules.map((rule) => rule.release()));
  }

  async #edit({ do: what, editor, fault }: Extract<Act, { editor: number }>): Promise<void> {
    this.#text += 1;
    const isUnanswered = fault !== undefined && leavesOpen(fault.fault);
    const expected = this.#predict(what, this.#seen[editor], isUnanswered);
    const got = await this.#ask(what, editor);
    // A new life has a nonce that the model learns from the answer.
    if (got.kind === 'created' && got.item !== undefined && this.model !== undefined) {
      this.generations.push(got.item.generation);
      this.model = { ...this.model, generation: got.item.generation };
      this.told.push({ got, expected: { kind: 'created', item: this.model } });
    } else {
      this.told.push({ got, expected });
    }
    this.#seen[editor] = got.item ?? this.#seen[editor];
  }

  #predict(what: What, seen: Model | undefined, isUnanswered: boolean): Told {
    const now = this.model;
    const isSeen = now !== undefined && now.version === seen?.version && now.generation === seen.generation;
    if (what === 'read') return { kind: 'read', item: now };
    if (what === 'create') {
      if (now !== undefined) return { kind: 'exists', item: now };
      this.model = { version: 1, generation: '', text: this.#text };
      return { kind: 'created', item: this.model };
    }
    if (what === 'update' && now === undefined) return { kind: 'absent' };
    if (what !== 'update' && !isSeen) return refusalOf(what, { seen, now, isUnanswered });
    if (now === undefined) return { kind: 'conflict', item: undefined };
    this.model = what === 'remove' ? undefined : { ...now, version: now.version + 1, text: this.#text };
    return what === 'remove' ? { kind: 'removed' } : { kind: what === 'save' ? 'saved' : 'updated', item: this.model };
  }

  async #ask(what: What, editor: number): Promise<Told> {
    const versioned = this.#editors[editor];
    if (versioned === undefined) throw new Error('no such editor');
    const [key, text, seen] = [this.key, this.#text, this.#seen[editor]];
    if (what === 'create') return told(await versioned.create({ ...key, text }));
    if (what === 'update') return told(await versioned.update(key, () => ({ text })));
    if (what === 'read') return { kind: 'read', item: modelOf(await versioned.read(key)) };
    if (seen === undefined) return { kind: 'not tried', item: this.model };
    if (what === 'remove') return told(await versioned.remove(key, seen));
    return versioned.save(key, { set: { text } }, seen).then(told, (error: unknown) => {
      if (error instanceof BackendError && error.reason === 'ambiguous') return { kind: 'ambiguous' };
      throw error;
    });
  }
}

/** Whether the store cannot know if a request with this fault was applied. */
function leavesOpen(fault: Fault): boolean {
  return fault.kind !== 'send twice' && (fault.kind !== 'refuse' || fault.status === 500);
}

/** What an editor is told whose version is not the stored one. */
function refusalOf(
  what: What,
  facts: { readonly seen: Model | undefined; readonly now: Model | undefined; readonly isUnanswered: boolean },
): Told {
  const { seen, now, isUnanswered } = facts;
  if (seen === undefined) return { kind: 'not tried', item: now };
  // Only the write that took the very next version proves that an unanswered save did not take it.
  const isNext = now?.generation === seen.generation && now.version === seen.version + 1;
  if (what === 'save' && isUnanswered && !isNext) return { kind: 'ambiguous' };
  return { kind: 'conflict', item: now };
}

function told(answer: {
  readonly kind: string;
  readonly item?: VersionedItem;
  readonly current?: VersionedItem | undefined;
}): Told {
  const item = modelOf(answer.item ?? answer.current);
  return { kind: answer.kind, ...((item !== undefined || 'current' in answer) && { item }) };
}

function modelOf(item: VersionedItem | undefined): Model | undefined {
  if (item === undefined) return undefined;
  return { version: item.version, generation: item.generation, text: Number(item['text']) };
}

/** Hundreds of requests, on machines that are busy with other tests. */
const RUNS = { timeout: 60_000 };

test('the item and every answer are what a model says, whatever is lost, late or repeated', RUNS, async () => {
  const kinds = new Set<string>();
  await fc.assert(
    fc.asyncProperty(fc.array(act, { minLength: 15, maxLength: 40, size: 'max' }), async (acts) => {
      // Arrange
      const run = new Run();

      // Act
      for (const step of acts) await run.perform(step);
      await run.arrive();

      // Assert
      for (const { got, expected } of run.told) expect(got).toEqual(expected);
      expect(modelOf(await bench.truth.versioned.read(run.key))).toEqual(run.model);
      expect(new Set(run.generations).size).toBe(run.generations.length);
      for (const { got } of run.told) kinds.add(got.kind);
    }),
    { numRuns: 30 },
  );
  // A run in which one of the answers never came would prove less than it says.
  const expected = [
    'absent',
    'ambiguous',
    'conflict',
    'created',
    'exists',
    'not tried',
    'read',
    'removed',
    'saved',
    'updated',
  ];
  expect([...kinds].toSorted()).toEqual(expected);
});
