/** Which attributes a read returns. It costs the same: the whole item is read. */
import { onlyAt } from './document-path.ts';
import { Tokens } from './expression-tokens.ts';
import type { Path, PlaceholderValues } from './placeholder-values.ts';
import { optionalText, type WireRequest } from './request-fields.ts';
import { clashOf } from './update-syntax.ts';
import type { ValueMap } from './values.ts';

/** @returns what a read makes of an item: all of it when the request names no attributes. */
export function parseProjection(request: WireRequest, placeholders: PlaceholderValues): (item: ValueMap) => ValueMap {
  const expression = optionalText(request, 'ProjectionExpression');
  if (expression === undefined) return (item) => item;
  const tokens = new Tokens('ProjectionExpression', expression);
  const paths: Path[] = [];
  do {
    const path = placeholders.takePath(tokens);
    const fault = paths.map((other) => clashOf(path, other)).find((clash) => clash !== undefined);
    if (fault !== undefined) throw tokens.fault(`Two document paths ${fault} with each other; must remove or rewrite`);
    paths.push(path);
  } while (tokens.takeSign(','));
  tokens.expectEnd();
  return (item) => onlyAt(item, paths);
}
