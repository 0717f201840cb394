/** What every endpoint of the local provider is given. */
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { ChargeJournal } from './charge-journal.ts';
import type { KeyMemory } from './key-memory.ts';
import type { LocalProvider } from './local-provider.ts';
import type { ProviderFaults } from './provider-faults.ts';
import type { WaitingAnswers } from './waiting-answers.ts';

/** What the routes work with. */
export interface ProviderParts {
  readonly provider: LocalProvider;
  readonly memory: KeyMemory;
  readonly journal: ChargeJournal;
  readonly faults: ProviderFaults;
  readonly waiting: WaitingAnswers;
}

/** One request and its answer. */
export interface Exchange {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  readonly url: URL;
  /** Aborts when the connection ends, answered or not. */
  readonly gone: AbortSignal;
}

/** Answers one request, or throws why not. */
export type Route = (parts: ProviderParts, exchange: Exchange) => Promise<void> | void;
