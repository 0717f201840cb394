/** What happened during a walk-through, step by step: the requests of each step and what came of it. */
import type { RequestTrace } from '../store/request-trace.ts';
import type { Json } from './expected.ts';
import { renderRequest, type EndedRequest } from './render-trace.ts';

/** A step that has ended. */
export interface Section {
  readonly heading: string;
  readonly requests: readonly EndedRequest[];
  /** Undefined when there is nothing to be shown of it. */
  readonly result: Json | undefined;
}

export interface Transcript {
  readonly trace: RequestTrace;
  /** The requests since the last call, in the order in which they were sent. Waits until each has ended. */
  take(): Promise<EndedRequest[]>;
}

export function createTranscript(): Transcript {
  let pending: Promise<EndedRequest>[] = [];
  return {
    trace({ operation, input, failure }) {
      pending.push(failure.then((error) => ({ operation, input, failure: error })));
    },
    take() {
      const taken = pending;
      pending = [];
      return Promise.all(taken);
    },
  };
}

/** So many requests of one kind are shown of a step; the others are only counted. */
const SHOWN_OF_A_KIND = 3;

/** @param isFull shows every request of a long series. */
export function renderSection(section: Section, isFull: boolean): string {
  const result = section.result === undefined ? '' : `${JSON.stringify(section.result, undefined, 2)}\n`;
  const heading = `=== ${section.heading} ===\n${result}`;
  return [...renderRequests(section.requests, isFull), heading].join('\n\n');
}

function renderRequests(requests: readonly EndedRequest[], isFull: boolean): string[] {
  if (isFull) return requests.map(renderRequest);
  const counts = new Map<string, number>();
  const shown = requests.filter(({ operation }) => {
    const count = (counts.get(operation) ?? 0) + 1;
    counts.set(operation, count);
    return count <= SHOWN_OF_A_KIND;
  });
  const notShown = [...counts]
    .filter(([, count]) => count > SHOWN_OF_A_KIND)
    .map(([operation, count]) => moreText(operation, count - SHOWN_OF_A_KIND));
  return [...shown.map(renderRequest), ...(notShown.length > 0 ? [notShown.join('\n')] : [])];
}

function moreText(operation: string, count: number): string {
  return `... (+${String(count)} more ${operation} ${count === 1 ? 'call' : 'calls'} not shown)`;
}
