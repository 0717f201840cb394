/**
 * Message groups of a FIFO queue: groups run in parallel, and each group in order, also after a failure.
 *
 * A group at work has a lane, and a lane takes one slot. What else was received of the group waits in the lane, kept
 * hidden. When a message is to come again (it failed, its key is busy, it was lost), the rest of its lane goes back to
 * the queue: SQS gives out no later message of a group before the earlier ones, so the order holds.
 *
 * Invariant: at most one message of a group is started and not yet settled.
 * @see AWS: FIFO delivery logic
 */

/** What became of a delivery, as far as the rest of its group is concerned. */
export interface LaneStep {
  /** False when the message comes again: nothing after it may be started before. */
  readonly isSettled: boolean;
  /** Settles when the handler has, which may be long after the outcome; never rejects. */
  readonly handlerEnded: Promise<unknown>;
}

export interface GroupLanesOptions<Delivery> {
  /** Takes a slot at once; the caller of `add` has made sure that one is free for each new group. */
  readonly startInSlot: (name: string, task: () => Promise<void>) => void;
  readonly nameOf: (delivery: Delivery) => string;
  /** Never rejects. */
  readonly deliver: (delivery: Delivery) => Promise<LaneStep>;
  /** Keeps a waiting delivery hidden. Its `stop` resolves when no request of it is on its way. */
  readonly keepHidden: (delivery: Delivery) => { stop(): Promise<void> };
  /** Makes deliveries that were never started visible at once. Never rejects. */
  readonly giveBack: (deliveries: readonly Delivery[]) => Promise<void>;
}

export interface GroupLanes<Delivery> {
  /** In the order in which they were received. */
  add(group: string, delivery: Delivery): void;
  /** What waits and was not started. */
  readonly waiting: number;
  /** Gives back all that waits; what is at work goes on. From now on, what is added goes back at once. */
  close(): Promise<void>;
}

interface Waiting<Delivery> {
  readonly delivery: Delivery;
  readonly hidden: { stop(): Promise<void> };
}

export function createGroupLanes<Delivery>(options: GroupLanesOptions<Delivery>): GroupLanes<Delivery> {
  const lanes = new Map<string, Waiting<Delivery>[]>();
  let isClosed = false;

  function add(group: string, delivery: Delivery): void {
    if (isClosed) {
      void options.giveBack([delivery]);
      return;
    }
    const lane = lanes.get(group);
    if (lane !== undefined) {
      lane.push({ delivery, hidden: options.keepHidden(delivery) });
      return;
    }
    lanes.set(group, []);
    options.startInSlot(options.nameOf(delivery), () => runLane(group, delivery));
  }

  async function runLane(group: string, first: Delivery): Promise<void> {
    const stubborn: Promise<unknown>[] = [];
    try {
      let step = await options.deliver(first);
      stubborn.push(step.handlerEnded);
      while (step.isSettled) {
        const next = lanes.get(group)?.shift();
        if (next === undefined) break;
        await next.hidden.stop();
        // A stop may have come while the last beat ended.
        if (isClosed) {
          await options.giveBack([next.delivery]);
          break;
        }
        step = await options.deliver(next.delivery);
        stubborn.push(step.handlerEnded);
      }
    } finally {
      // Whatever happens, the lane ends: a dead one would take in the rest of its group for good.
      await giveBackRest(group);
    }
    // A handler that ignores its signal keeps the slot: otherwise such handlers would pile up without a bound.
    await Promise.all(stubborn);
  }

  /** The lane ends first, so that what arrives meanwhile makes a new one. */
  async function giveBackRest(group: string): Promise<void> {
    const rest = lanes.get(group) ?? [];
    lanes.delete(group);
    await giveBackAll(rest);
  }

  async function giveBackAll(waiting: readonly Waiting<Delivery>[]): Promise<void> {
    if (waiting.length === 0) return;
    await Promise.all(waiting.map(({ hidden }) => hidden.stop()));
    await options.giveBack(waiting.map(({ delivery }) => delivery));
  }

  return {
    add,
    get waiting() {
      return [...lanes.values()].reduce((sum, lane) => sum + lane.length, 0);
    },
    async close() {
      isClosed = true;
      const waiting = [...lanes.values()].flatMap((lane) => lane.splice(0));
      await giveBackAll(waiting);
    },
  };
}
