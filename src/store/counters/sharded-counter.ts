/**
 * A counter spread over several items, so that additions do not wait for each other: one item takes about 1,000 writes
 * a second, and two transactions on one item conflict.
 */
import { createHash } from 'node:crypto';
import { QueryCommand } from '@aws-sdk/lib-dynamodb';
import { toBackendError } from '../backend-error.ts';
import type { StoreContext } from '../context.ts';
import { Placeholders } from '../expressions.ts';
import { repeated } from '../repeated.ts';
import { counterShardKey, SHARD_PREFIX, TABLE, type Item } from '../table.ts';
import { counterValue, CounterValueError, isCounterValue, VALUE } from './counter-value.ts';

/** The first 48 bits of a SHA-256: what `readUIntBE` reads at most, and far more than there are shards. */
const HASH_BYTES = 6;

/**
 * The shard of a key, from 0. By hash, so that every process and every version of the package picks the same one: a
 * replay must meet what its first try has written.
 */
export function shardOf(key: string, shards: number): number {
  return createHash('sha256').update(key).digest().readUIntBE(0, HASH_BYTES) % shards;
}

/**
 * The sum of all shards that exist, also of those beyond a number of shards that was reduced since.
 * @throws {CounterValueError} when the sum is beyond the limit.
 */
export async function sumOfShards(context: StoreContext, name: string): Promise<number> {
  let sum = 0;
  let from: Item | undefined;
  do {
    const page = await readShards(context, name, from);
    for (const shard of page.shards) sum += counterValue(counterShardKey(name, 0), shard);
    from = page.next;
  } while (from !== undefined);
  if (!isCounterValue(sum)) throw new CounterValueError(`the shards of the counter "${name}" sum up beyond its limit`);
  return sum;
}

async function readShards(
  context: StoreContext,
  name: string,
  from: Item | undefined,
): Promise<{ readonly shards: readonly Item[]; readonly next: Item | undefined }> {
  const { client, tableName } = context.target;
  const placeholders = new Placeholders();
  const partition = `${placeholders.name(TABLE.partitionKey)} = ${placeholders.value(counterShardKey(name, 0).PK)}`;
  const isShard = `begins_with(${placeholders.name(TABLE.sortKey)}, ${placeholders.value(SHARD_PREFIX)})`;
  const query = new QueryCommand({
    TableName: tableName,
    ConsistentRead: true,
    KeyConditionExpression: `${partition} AND ${isShard}`,
    ProjectionExpression: placeholders.name(VALUE),
    ...placeholders.fields(),
    ...(from !== undefined && { ExclusiveStartKey: from }),
  });
  const page = await repeated(context, { mayApplyTwice: true }, () =>
    client.send(query).catch((error: unknown) => {
      throw toBackendError(error);
    }),
  );
  return { shards: page.Items ?? [], next: page.LastEvaluatedKey };
}
