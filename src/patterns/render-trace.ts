/**
 * Requests to DynamoDB as people read them: what is asked, with the names and values in the place of placeholders.
 * Pure; nothing here sends or decides anything.
 */
import type { AttributeValue } from '@aws-sdk/client-dynamodb';
import { faultName } from '../aws-fault.ts';

/** A request that has ended. */
export interface EndedRequest {
  readonly operation: string;
  /** As it went out: attribute values and placeholders. */
  readonly input: object;
  /** What it failed by; undefined when it succeeded. */
  readonly failure: unknown;
}

type AttributeMap = Record<string, AttributeValue>;

/** What is shown of one operation on one table, alone or within a transaction. */
interface Operation {
  readonly TableName?: string;
  readonly IndexName?: string;
  readonly ConsistentRead?: boolean;
  readonly Key?: AttributeMap;
  readonly Item?: AttributeMap;
  readonly KeyConditionExpression?: string;
  readonly ConditionExpression?: string;
  readonly UpdateExpression?: string;
  readonly ExpressionAttributeNames?: Record<string, string>;
  readonly ExpressionAttributeValues?: AttributeMap;
  readonly ReturnValues?: string;
  readonly ReturnValuesOnConditionCheckFailure?: string;
}

interface RequestInput extends Operation {
  readonly TransactItems?: readonly Record<string, Operation>[];
}

const INDENT = '    ';
const LABEL_WIDTH = 12;
/** Longer items are shown with one attribute a line, longer updates with one assignment a line. */
const MAX_CHARACTERS = 90;
const CONTINUED = `\n${INDENT}${' '.repeat(LABEL_WIDTH)}`;

/** One block a request; the actions of a transaction one below the other. */
export function renderRequest({ operation, input, failure }: EndedRequest): string {
  // The trace hands on what the SDK sends, and the SDK has checked nothing either: unknown fields are passed over.
  const { TransactItems, ...single } = input as RequestInput;
  const table = single.TableName === undefined ? '' : ` ${single.TableName}`;
  const blocks = [`>>> ${operation}${table}`, ...fieldsOf(single)];
  for (const action of TransactItems ?? []) {
    for (const [kind, part] of Object.entries(action)) {
      blocks.push(
        `${INDENT}- ${kind} ${part.TableName ?? ''}`,
        ...fieldsOf(part).map((field) => field.replaceAll(/^/gm, INDENT)),
      );
    }
  }
  if (failure !== undefined) blocks.push(`${INDENT}refused: ${describeFailure(failure)}`);
  return blocks.join('\n');
}

/** The name of the fault, and for a transaction the reason of each action. */
function describeFailure(failure: unknown): string {
  const reasons = reasonsOf(failure);
  const name = faultName(failure) || 'no answer';
  return reasons.length === 0 ? name : `${name} (${reasons.join(', ')})`;
}

/** Why a transaction was cancelled, one word an action, in their order; empty for any other failure. */
export function reasonsOf(failure: unknown): string[] {
  if (typeof failure !== 'object' || failure === null || !('CancellationReasons' in failure)) return [];
  const reasons = failure.CancellationReasons;
  if (!Array.isArray(reasons)) return [];
  return reasons.map((reason: unknown) =>
    typeof reason === 'object' && reason !== null && 'Code' in reason ? String(reason.Code) : 'None',
  );
}

function fieldsOf(part: Operation): string[] {
  const fill = (expression: string): string =>
    fillIn(expression, part.ExpressionAttributeNames ?? {}, part.ExpressionAttributeValues ?? {});
  const lines: string[] = [];
  const field = (name: string, text: string): void => {
    lines.push(`${INDENT}${`${name}:`.padEnd(LABEL_WIDTH)}${text}`);
  };
  if (part.Item !== undefined) field('item', renderItem(part.Item));
  if (part.Key !== undefined) field('key', renderMap(part.Key));
  if (part.KeyConditionExpression !== undefined) field('key', fill(part.KeyConditionExpression));
  if (part.ConditionExpression !== undefined) field('condition', fill(part.ConditionExpression));
  if (part.UpdateExpression !== undefined) field('update', renderUpdate(part.UpdateExpression, fill));
  for (const name of ['IndexName', 'ConsistentRead', 'ReturnValues', 'ReturnValuesOnConditionCheckFailure'] as const) {
    const value = part[name];
    if (value !== undefined) lines.push(`${INDENT}${name}: ${String(value)}`);
  }
  return lines;
}

function renderUpdate(expression: string, fill: (expression: string) => string): string {
  const whole = fill(expression);
  if (whole.length <= MAX_CHARACTERS) return whole;
  // Split before anything is filled in: a value may hold commas of its own.
  return splitAtCommas(expression).map(fill).join(`,${CONTINUED}`);
}

/** Cuts at the commas between assignments, not at those between the arguments of a function. */
function splitAtCommas(expression: string): string[] {
  const parts: string[] = [];
  let depth = 0;
  let from = 0;
  for (let at = 0; at < expression.length; at += 1) {
    const character = expression[at];
    if (character === '(') depth += 1;
    if (character === ')') depth -= 1;
    if (character !== ',' || depth > 0) continue;
    parts.push(expression.slice(from, at).trim());
    from = at + 1;
  }
  return [...parts, expression.slice(from).trim()];
}

/** A placeholder is `#` or `:` and a word; an expression of DynamoDB holds no other text with these signs. */
const PLACEHOLDER = /[#:][A-Za-z0-9_]+/g;

/**
 * Puts names and values in the place of their placeholders: each whole (`:v1` is no part of `:v10`), and once (a value
 * that looks like a placeholder stays as it is). One that stands for nothing is left.
 */
export function fillIn(
  expression: string,
  names: Readonly<Record<string, string>>,
  values: Readonly<AttributeMap>,
): string {
  return expression.replaceAll(PLACEHOLDER, (placeholder) => {
    const name = names[placeholder];
    if (name !== undefined) return renderName(name);
    const value = values[placeholder];
    return value === undefined ? placeholder : renderValue(value);
  });
}

function renderName(name: string): string {
  return /^[A-Za-z_]\w*$/.test(name) ? name : JSON.stringify(name);
}

function renderItem(item: Readonly<AttributeMap>): string {
  const whole = renderMap(item);
  return whole.length <= MAX_CHARACTERS ? whole : `{${entriesOf(item).join(`,${CONTINUED} `)}}`;
}

function renderMap(map: Readonly<AttributeMap>): string {
  return `{${entriesOf(map).join(', ')}}`;
}

function entriesOf(map: Readonly<AttributeMap>): string[] {
  return Object.entries(map).map(([name, value]) => `${renderName(name)}: ${renderValue(value)}`);
}

/** An attribute value as a literal: texts in single quotes, numbers with all their digits. */
export function renderValue(value: AttributeValue): string {
  if (value.S !== undefined) return renderText(value.S);
  if (value.N !== undefined) return value.N;
  if (value.BOOL !== undefined) return String(value.BOOL);
  if (value.NULL !== undefined) return 'null';
  if (value.M !== undefined) return renderMap(value.M);
  if (value.L !== undefined) return `[${value.L.map(renderValue).join(', ')}]`;
  if (value.SS !== undefined) return `set(${value.SS.map(renderText).join(', ')})`;
  if (value.NS !== undefined) return `set(${value.NS.join(', ')})`;
  if (value.B !== undefined) return `${String(value.B.length)} bytes`;
  if (value.BS !== undefined) return `set(${value.BS.map((bytes) => `${String(bytes.length)} bytes`).join(', ')})`;
  return '?';
}

function renderText(text: string): string {
  const inner = JSON.stringify(text)
    .slice(1, -1)
    .replaceAll(String.raw`\"`, '"')
    .replaceAll("'", String.raw`\'`);
  return `'${inner}'`;
}
