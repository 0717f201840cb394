/** What each flow's messages are: for commands that read messages of any flow, or make some. */
import { CHARGE_REQUESTED } from '../messages/charge.ts';
import type { MessageContract } from '../messages/contract.ts';
import { encodeMessage, type EncodedMessage } from '../messages/envelope.ts';
import { generateCharges } from '../producers/generate-charges.ts';
import type { Flow } from '../queues/topology.ts';

export interface FlowContracts {
  readonly contracts: readonly MessageContract<unknown>[];
  /** Valid messages with keys of their own; the same seed gives the same ones. */
  samples(count: number, seed: number): readonly EncodedMessage[];
}

export const FLOW_CONTRACTS: Readonly<Record<Flow, FlowContracts>> = {
  charges: {
    contracts: [CHARGE_REQUESTED],
    samples: (count, seed) => generateCharges({ count, seed }).map((charge) => encodeMessage(CHARGE_REQUESTED, charge)),
  },
};
