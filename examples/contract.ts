import { z } from 'zod';
import type { MessageContract } from '../src/index.ts';

export interface PointsEarned {
  readonly purchaseId: string;
  readonly memberId: string;
  readonly points: number;
}

export const POINTS_EARNED: MessageContract<PointsEarned> = {
  type: 'points.earned',
  version: 1,
  schema: z.strictObject({ purchaseId: z.string(), memberId: z.string(), points: z.int().positive() }),
  // The business key: the points of one purchase are added once, however often its message comes.
  keyOf: (earned) => earned.purchaseId,
};
