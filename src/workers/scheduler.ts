/** A fixed number of slots. Nothing is ever queued here: the poller asks for free slots before it receives. */

export interface Scheduler {
  readonly freeSlots: number;
  /** What runs now, by the name it was started with. */
  running(): readonly string[];
  /** Takes a slot at once. The caller has made sure that one is free. */
  start(name: string, task: () => Promise<void>): void;
  /** Resolves when at least one slot is free. */
  whenFree(): Promise<void>;
  /** Resolves when nothing runs. */
  whenIdle(): Promise<void>;
}

export function createScheduler(slots: number): Scheduler {
  const running = new Map<symbol, string>();
  let waiters: { readonly isReady: () => boolean; readonly resolve: () => void }[] = [];

  const isFree = (): boolean => running.size < slots;
  const isIdle = (): boolean => running.size === 0;

  function until(isReady: () => boolean): Promise<void> {
    if (isReady()) return Promise.resolve();
    return new Promise((resolve) => {
      waiters.push({ isReady, resolve });
    });
  }

  function finished(id: symbol): void {
    running.delete(id);
    const ready = waiters.filter((waiter) => waiter.isReady());
    waiters = waiters.filter((waiter) => !ready.includes(waiter));
    for (const waiter of ready) waiter.resolve();
  }

  return {
    get freeSlots() {
      return slots - running.size;
    },
    running: () => [...running.values()],
    start(name, task) {
      const id = Symbol(name);
      running.set(id, name);
      const done = (): void => {
        finished(id);
      };
      // Tasks settle every fault themselves; whatever still escapes must not take the process down.
      task().then(done, done);
    },
    whenFree: () => until(isFree),
    whenIdle: () => until(isIdle),
  };
}
