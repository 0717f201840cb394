/** A walk-through of one concurrency pattern: it does what it explains, on a table of its own. */
import type { DynamoDBDocumentClient } from '@aws-sdk/lib-dynamodb';
import type { Clock, Random } from '../clock.ts';
import type { Store } from '../store/store.ts';
import type { Expected } from './expected.ts';
import type { EndedRequest } from './render-trace.ts';

export interface Pattern {
  readonly number: number;
  readonly title: string;
  /** One line: what one learns. */
  readonly summary: string;
  /** What each step must come to. */
  readonly expected: Expected;
  run(scene: Scene): Promise<void>;
}

export interface Step {
  readonly heading: string;
  /** Names what the step comes to among the results. Without it the step is only shown. */
  readonly result?: string;
}

/** What a walk-through works with. */
export interface Scene {
  /** Empty at the start, and deleted afterwards. */
  readonly tableName: string;
  readonly store: Store;
  /** For what goes wrong: requests without any protection. */
  readonly bare: DynamoDBDocumentClient;
  readonly clock: Clock;
  readonly random: Random;
  /** Aborts when the user has had enough. */
  readonly signal: AbortSignal;
  /** Another worker's store, perhaps with a clock of its own. It is closed at the end. */
  openStore(clock: Clock): Store;
  /**
   * Does one step and remembers what it came to.
   * @param act is given the requests that it has caused so far, when it asks for them.
   */
  step<Result>(step: Step, act: (requests: () => Promise<readonly EndedRequest[]>) => Promise<Result>): Promise<Result>;
  /** Tells the user what is going on where nothing else is to be seen. */
  note(text: string): void;
}
