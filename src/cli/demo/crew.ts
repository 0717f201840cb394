/** The worker processes of a demo: started, watched through what they print, killed, frozen and stopped. */
import { fileURLToPath } from 'node:url';
import { startChild, type Child } from '../../local/child-process.ts';
import type { Endpoints } from '../endpoints.ts';
import { workEventSchema, type WorkEvent } from '../work-events.ts';

export interface CrewOptions {
  readonly endpoints: Endpoints;
  readonly providerUrl: string;
  readonly table: string;
  readonly prefix: string;
  readonly protection: 'full' | 'none';
  readonly leaseMs: number;
  readonly visibilitySeconds: number;
}

export interface Crew {
  /** Everything that all workers have printed so far. */
  readonly events: readonly WorkEvent[];
  /** Starts one more worker; resolves when it receives. */
  hire(): Promise<string>;
  kill(name: string): Promise<void>;
  freeze(name: string): void;
  thaw(name: string): void;
  /** Resolves with the first event, past or coming, that fits. */
  until(fits: (event: WorkEvent) => boolean): Promise<WorkEvent>;
  /**
   * Ends every worker as an orchestrator would; names those that did not end in order.
   * @param options.graceMs how long a worker may take to finish what it has begun. Unit: ms. @defaultValue 15000
   */
  dismiss(options?: { readonly graceMs?: number }): Promise<readonly string[]>;
}

const STOP_GRACE_MS = 15_000;

export function createCrew(options: CrewOptions): Crew {
  const workers = new Map<string, Child>();
  const events: WorkEvent[] = [];
  let watchers: { readonly fits: (event: WorkEvent) => boolean; readonly resolve: (event: WorkEvent) => void }[] = [];

  function onLine(line: string): void {
    const event = workEventSchema.parse(JSON.parse(line));
    events.push(event);
    const ready = watchers.filter(({ fits }) => fits(event));
    watchers = watchers.filter((watcher) => !ready.includes(watcher));
    for (const { resolve } of ready) resolve(event);
  }

  function until(fits: (event: WorkEvent) => boolean): Promise<WorkEvent> {
    const past = events.find(fits);
    if (past !== undefined) return Promise.resolve(past);
    return new Promise((resolve) => {
      watchers.push({ fits, resolve });
    });
  }

  function get(name: string): Child {
    const child = workers.get(name);
    if (child === undefined) throw new RangeError(`no worker is called ${name}`);
    return child;
  }

  return {
    events,
    until,
    async hire() {
      const name = `w${String(workers.size + 1)}`;
      const child = startChild({
        name,
        command: process.execPath,
        args: [mainEntry(), 'work', 'charges', ...workerArguments(name, options)],
        onStdoutLine: onLine,
      });
      workers.set(name, child);
      const ready = until((event) => event.event === 'ready' && event.worker === name);
      const first = await Promise.race([ready, child.exited]);
      if (!('event' in first)) throw new Error(`worker ${name} did not start: ${child.stderrTail().trim()}`);
      return name;
    },
    async kill(name) {
      get(name).signal('SIGKILL');
      await get(name).exited;
      workers.set(name, get(name));
    },
    freeze(name) {
      get(name).signal('SIGSTOP');
    },
    thaw(name) {
      get(name).signal('SIGCONT');
    },
    async dismiss({ graceMs = STOP_GRACE_MS } = {}) {
      const running = [...workers.values()].filter((child) => child.isRunning());
      await Promise.all(running.map((child) => child.stop({ graceMs })));
      const ends = await Promise.all(running.map(async (child) => ({ name: child.name, end: await child.exited })));
      return ends.filter(({ end }) => end.code !== 0).map(({ name }) => name);
    },
  };
}

function workerArguments(name: string, options: CrewOptions): string[] {
  const flags: Record<string, string> = {
    name,
    'sqs-endpoint': options.endpoints.sqs,
    'dynamodb-endpoint': options.endpoints.dynamodb,
    'provider-url': options.providerUrl,
    table: options.table,
    prefix: options.prefix,
    protection: options.protection,
    concurrency: '8',
    'wait-seconds': '1',
    'visibility-seconds': String(options.visibilitySeconds),
    'lease-ms': String(options.leaseMs),
    'heartbeat-ms': String(Math.round(options.leaseMs / 5)),
  };
  return [...Object.entries(flags).flatMap(([flag, value]) => [`--${flag}`, value]), '--json'];
}

/** Workers run as this process runs: from the sources in a checkout, from the built files in the package. */
function mainEntry(): string {
  const ending = import.meta.url.endsWith('.ts') ? 'ts' : 'js';
  return fileURLToPath(new URL(`../main.${ending}`, import.meta.url));
}
