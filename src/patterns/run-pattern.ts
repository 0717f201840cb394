/** Runs one walk-through on a table of its own and compares what it came to with what it must come to. */
import { faultName } from '../aws-fault.ts';
import { systemClock, systemRandom, type Clock, type Random } from '../clock.ts';
import { messageOf } from '../errors.ts';
import { createDocumentClient, type StoreClientOptions } from '../store/client.ts';
import { createStore, type Store } from '../store/store.ts';
import { differencesOf, toJson, type Json, type Results } from './expected.ts';
import { withOwnTable } from './own-table.ts';
import type { Pattern, Scene } from './pattern.ts';
import type { EndedRequest } from './render-trace.ts';
import { createTranscript, type Section } from './transcript.ts';

export interface PatternRunOptions {
  /** Where the table is to be made. */
  readonly client: StoreClientOptions;
  /** The table is called `<tablePrefix>-pattern-<number>-<random>`. */
  readonly tablePrefix: string;
  /** Ends the walk-through; its table is deleted all the same. */
  readonly signal: AbortSignal;
  readonly onSection: (section: Section) => void;
  readonly note: (text: string) => void;
  /** For tests. @defaultValue the system's */
  readonly clock?: Clock;
  /** For tests. @defaultValue the system's */
  readonly random?: Random;
}

export interface PatternReport {
  readonly pattern: number;
  readonly title: string;
  /** True when everything came about as it must. */
  readonly ok: boolean;
  readonly results: Results;
  /** What did not, one sentence each; left out when there is none. */
  readonly differences?: readonly string[];
}

/**
 * @throws the signal's reason when it aborts. @throws {BackendError} when the table cannot be made or deleted.
 * What goes wrong in between is a difference of the report.
 */
export function runPattern(pattern: Pattern, options: PatternRunOptions): Promise<PatternReport> {
  const clock = options.clock ?? systemClock;
  options.signal.throwIfAborted();
  const table = {
    client: options.client,
    prefix: `${options.tablePrefix}-pattern-${String(pattern.number)}`,
    clock,
    onLeftBehind: options.note,
  };
  return withOwnTable(table, async (tableName) => {
    options.signal.throwIfAborted();
    const results: Record<string, Json> = {};
    const stage = createStage({ options, clock, tableName, results });
    let broken: readonly string[] = [];
    try {
      await pattern.run(stage.scene);
    } catch (error) {
      options.signal.throwIfAborted();
      broken = [`the walk-through ended early: ${faultName(error)}: ${messageOf(error)}`];
    } finally {
      stage.close();
    }
    const differences = [...broken, ...differencesOf(pattern.expected, results)];
    const ok = differences.length === 0;
    const { number, title } = pattern;
    return { pattern: number, title, ok, results, ...(!ok && { differences }) };
  });
}

interface StageOptions {
  readonly options: PatternRunOptions;
  readonly clock: Clock;
  readonly tableName: string;
  /** Is filled step by step. */
  readonly results: Record<string, Json>;
}

function createStage({ options, clock, tableName, results }: StageOptions): { scene: Scene; close: () => void } {
  const { signal } = options;
  const random = options.random ?? systemRandom;
  const transcript = createTranscript();
  const client = { ...options.client, trace: transcript.trace };
  const stores: Store[] = [];
  const openStore = (storeClock: Clock): Store => {
    const store = createStore({ ...client, tableName, clock: storeClock, random });
    stores.push(store);
    return store;
  };
  const bare = createDocumentClient(client);

  const scene: Scene = {
    tableName,
    store: openStore(clock),
    bare,
    clock,
    random,
    signal,
    openStore,
    async step(step, act) {
      signal.throwIfAborted();
      const requests: EndedRequest[] = [];
      const taken = async (): Promise<readonly EndedRequest[]> => {
        requests.push(...(await transcript.take()));
        return requests;
      };
      const close = async (outcome: Json | undefined): Promise<void> => {
        options.onSection({ heading: step.heading, requests: await taken(), result: outcome });
      };
      try {
        const result = await act(taken);
        if (step.result !== undefined) results[step.result] = toJson(result);
        await close(step.result === undefined ? undefined : results[step.result]);
        return result;
      } catch (error) {
        // What was sent until then is what one wants to see.
        await close(`${faultName(error)}: ${messageOf(error)}`);
        throw error;
      }
    },
    note: options.note,
  };
  return {
    scene,
    close() {
      for (const store of stores) store.close();
      bare.destroy();
    },
  };
}
