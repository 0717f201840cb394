import fc from 'fast-check';
import { expect, test } from 'vitest';
import { createGroupLanes, type GroupLanes, type LaneStep } from '../../src/workers/group-lanes.ts';

interface Piece {
  readonly group: string;
  readonly nth: number;
}

interface Bench {
  readonly lanes: GroupLanes<Piece>;
  readonly started: Piece[];
  readonly givenBack: Piece[];
  readonly hidden: Set<Piece>;
  /** Ends the delivery that is at work on this piece. */
  end(piece: Piece, isSettled?: boolean): Promise<void>;
  readonly atWork: readonly Piece[];
}

const done: Promise<undefined> = Promise.resolve(undefined);

function bench(handlerEnded: Promise<unknown> = done): Bench & { readonly slots: Set<string> } {
  const started: Piece[] = [];
  const givenBack: Piece[] = [];
  const hidden = new Set<Piece>();
  const slots = new Set<string>();
  const open = new Map<Piece, (step: LaneStep) => void>();
  const lanes = createGroupLanes<Piece>({
    startInSlot: (name, task) => {
      slots.add(name);
      void task().then(() => slots.delete(name));
    },
    nameOf: ({ group, nth }) => `${group}${String(nth)}`,
    deliver: (piece) => {
      started.push(piece);
      return new Promise((resolve) => open.set(piece, resolve));
    },
    keepHidden: (piece) => {
      hidden.add(piece);
      return {
        stop: () => {
          hidden.delete(piece);
          return Promise.resolve();
        },
      };
    },
    giveBack: (pieces) => {
      givenBack.push(...pieces);
      return Promise.resolve();
    },
  });
  return {
    lanes,
    started,
    givenBack,
    hidden,
    slots,
    get atWork() {
      return [...open.keys()];
    },
    async end(piece, isSettled = true) {
      const resolve = open.get(piece);
      open.delete(piece);
      resolve?.({ isSettled, handlerEnded });
      await settled();
    },
  };
}

/** Until everything that could go on without help has done so. */
function settled(): Promise<void> {
  return new Promise((resolve) => {
    setImmediate(resolve);
  });
}

function pieces(group: string, count: number): Piece[] {
  return Array.from({ length: count }, (_, nth) => ({ group, nth }));
}

test('M22 runs groups in parallel, each in order and one at a time', async () => {
  const { lanes, started, end, slots } = bench();
  const [a, b] = [pieces('a', 3), pieces('b', 2)];
  for (const piece of [...a, ...b]) lanes.add(piece.group, piece);

  expect(started).toEqual([a[0], b[0]]);
  expect(slots.size).toBe(2);
  for (const piece of [...a, ...b]) await end(piece);

  expect(started.filter(({ group }) => group === 'a')).toEqual(a);
  expect(started.filter(({ group }) => group === 'b')).toEqual(b);
  expect(slots.size).toBe(0);
});

test('M22 gives the rest of a group back when a message of it is to come again, and other groups go on', async () => {
  const { lanes, started, givenBack, end } = bench();
  const [a, b] = [pieces('a', 3), pieces('b', 2)];
  for (const piece of [...a, ...b]) lanes.add(piece.group, piece);

  await end(a[0] as Piece, false);
  await end(b[0] as Piece);

  expect(givenBack).toEqual([a[1], a[2]]);
  expect(started).toEqual([a[0], b[0], b[1]]);
});

test('keeps what waits hidden, and no longer when it starts or goes back', async () => {
  const { lanes, hidden, end } = bench();
  const a = pieces('a', 3);
  for (const piece of a) lanes.add('a', piece);

  expect([...hidden]).toEqual([a[1], a[2]]);
  await end(a[0] as Piece);
  expect([...hidden]).toEqual([a[2]]);
  await end(a[1] as Piece, false);
  expect([...hidden]).toEqual([]);
});

test('begins a new lane when a group whose rest went back is received again', async () => {
  const { lanes, started, end } = bench();
  const a = pieces('a', 2);
  for (const piece of a) lanes.add('a', piece);
  await end(a[0] as Piece, false);

  const again = pieces('a', 2);
  for (const piece of again) lanes.add('a', piece);
  await end(again[0] as Piece);

  expect(started).toEqual([a[0], again[0], again[1]]);
});

test('gives all that waits back when it is closed, starts nothing more, and lets what is at work finish', async () => {
  const { lanes, started, givenBack, end, slots } = bench();
  const [a, b] = [pieces('a', 3), pieces('b', 2)];
  for (const piece of [...a, ...b]) lanes.add(piece.group, piece);

  await lanes.close();
  lanes.add('c', { group: 'c', nth: 0 });
  await end(a[0] as Piece);
  await end(b[0] as Piece);

  expect(started).toEqual([a[0], b[0]]);
  expect(givenBack).toEqual([a[1], a[2], b[1], { group: 'c', nth: 0 }]);
  expect(slots.size).toBe(0);
});

test('a handler that ignores its signal keeps the slot of its group until it ends', async () => {
  const over = Promise.withResolvers<undefined>();
  const { lanes, end, slots } = bench(over.promise);
  const [first] = pieces('a', 1);
  lanes.add('a', first as Piece);
  await end(first as Piece, false);
  const held = slots.size;

  over.resolve(undefined);
  await settled();

  expect(held).toBe(1);
  expect(slots.size).toBe(0);
});

test('whatever arrives and ends in whatever order, a group never has two at work, and none is skipped or lost', async () => {
  const acts = fc.array(
    fc.oneof(
      fc.record({ act: fc.constant('arrive' as const), group: fc.constantFrom('a', 'b', 'c') }),
      fc.record({ act: fc.constant('end' as const), pick: fc.nat(5), isSettled: fc.boolean() }),
      fc.record({ act: fc.constant('close' as const) }),
    ),
    { maxLength: 40 },
  );
  await fc.assert(
    fc.asyncProperty(acts, async (script) => {
      const { lanes, started, givenBack, end } = bench();
      const ended = new Set<Piece>();
      const received: Piece[] = [];
      for (const step of script) {
        if (step.act === 'arrive') {
          const piece = { group: step.group, nth: received.length };
          received.push(piece);
          lanes.add(step.group, piece);
        } else if (step.act === 'close') {
          await lanes.close();
        } else {
          const open = started.filter((piece) => !ended.has(piece));
          const piece = open[step.pick % Math.max(1, open.length)];
          if (piece !== undefined) {
            ended.add(piece);
            await end(piece, step.isSettled);
          }
        }
        const open = started.filter((piece) => !ended.has(piece));
        expect(new Set(open.map(({ group }) => group)).size).toBe(open.length);
      }
      expect(started.length + givenBack.length + lanes.waiting).toBe(received.length);
      for (const group of ['a', 'b', 'c']) {
        const order = started.filter((piece) => piece.group === group).map(({ nth }) => nth);
        expect(order).toEqual(order.toSorted((left, right) => left - right));
      }
    }),
  );
});
