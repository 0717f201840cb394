/** Everything that can be injected, by name. */
import { injectCorrupt, injectOversized, injectUnknownType, injectUnknownVersion } from './bad-bodies.ts';
import { injectSameDelivery, injectStaleReceipt } from './deliveries.ts';
import type { InjectScope } from './scope.ts';
import { injectDelayed, injectDuplicates, injectOutOfOrder, injectPoison } from './sends.ts';

export interface Injection {
  /** For the help. */
  readonly description: string;
  readonly run: (scope: InjectScope) => Promise<void>;
}

export const INJECT_KINDS = [
  'duplicate',
  'same-delivery',
  'poison',
  'corrupt',
  'unknown-version',
  'unknown-type',
  'oversized',
  'delayed',
  'out-of-order',
  'stale-receipt',
] as const;

export type InjectKind = (typeof INJECT_KINDS)[number];

export const INJECTIONS: Readonly<Record<InjectKind, Injection>> = {
  duplicate: { description: 'one message, and duplicates with ids of their own', run: injectDuplicates },
  'same-delivery': { description: 'one message that is delivered twice', run: injectSameDelivery },
  poison: { description: 'a valid message whose handler fails every time', run: injectPoison },
  corrupt: { description: 'bodies with changed bytes', run: injectCorrupt },
  'unknown-version': { description: 'a version that no contract has', run: injectUnknownVersion },
  'unknown-type': { description: 'a type that no contract has', run: injectUnknownType },
  oversized: { description: 'a body of 1 MiB, and one of a byte more', run: injectOversized },
  delayed: { description: 'a message that is visible later', run: injectDelayed },
  'out-of-order': { description: 'messages of which the last comes first', run: injectOutOfOrder },
  'stale-receipt': { description: 'a delete with a handle that is too old', run: injectStaleReceipt },
};
