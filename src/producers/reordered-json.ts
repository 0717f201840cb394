/** The same JSON value with its fields in another order: what two producers in two languages would send. */
import type { Random } from '../clock.ts';
import type { Json } from '../messages/json.ts';

export type JsonObject = Readonly<Record<string, Json>>;

/** Shuffles the fields of every object in it. Lists keep their order, which has a meaning. Depth: as `parseJson` allows. */
export function reordered(value: Json, random: Random): Json {
  if (isJsonObject(value)) {
    const fields = Object.entries(value).map(([name, field]) => ({
      name,
      field: reordered(field, random),
      rank: random(),
    }));
    fields.sort((left, right) => left.rank - right.rank);
    return Object.fromEntries(fields.map(({ name, field }) => [name, field]));
  }
  return isList(value) ? value.map((item) => reordered(item, random)) : value;
}

export function isJsonObject(value: Json): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function isList(value: Json): value is readonly Json[] {
  return Array.isArray(value);
}
