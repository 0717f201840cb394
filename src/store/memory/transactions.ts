/** TransactWriteItems and TransactGetItems. @see AWS: Amazon DynamoDB Transactions: How it works */
import { ConsumedCapacity, readUnits } from './capacity.ts';
import type { Database } from './database.ts';
import { PROJECTION_FIELDS, projectionOf } from './item-operations.ts';
import { parseKey } from './keys.ts';
import { checkFields, optionalText, recordOf, recordsOf, type WireRequest } from './request-fields.ts';
import { invalid, ServiceError } from './service-error.ts';
import { mapBytes, wireMap, type ValueMap } from './values.ts';
import { apply, judge, parseWrite, type Judgement, type WriteAction, type WriteKind } from './write-action.ts';

const ACTIONS = { min: 1, max: 100 } as const;
const MAX_TRANSACTION_BYTES: number = 4 * 1024 * 1024;
const MAX_TOKEN_CHARACTERS = 36;
const KINDS: readonly WriteKind[] = ['Put', 'Update', 'Delete', 'ConditionCheck'];
/** Twice the price of a single write: AWS prepares, then commits. The indexes are written once. */
const WRITE_FACTOR = 2;

interface CancellationReason {
  readonly Code: string;
  readonly Message?: string;
  readonly Item?: object;
}

const ACCEPTED: CancellationReason = { Code: 'None' };

export function transactWriteItems(database: Database, request: WireRequest): object {
  checkFields('TransactWriteItems', request, ['TransactItems', 'ClientRequestToken', 'ReturnConsumedCapacity']);
  const capacity = new ConsumedCapacity(request);
  const token = tokenOf(request);
  const actions = recordsOf(request, 'TransactItems', ACTIONS).map((wire) => parseAction(database, wire));
  checkDistinct(actions);
  if (token !== undefined && database.tokens.wasApplied(token, request['TransactItems'])) {
    for (const { table, key } of actions) addRead(capacity, { table: table.definition.name, item: table.get(key) });
    return capacity.each('ReadCapacityUnits');
  }
  const verdicts = actions.map(verdictOf);
  if (verdicts.some(({ reason }) => reason !== ACCEPTED)) throw cancelled(verdicts.map(({ reason }) => reason));
  for (const [index, action] of actions.entries()) {
    const judgement = verdicts[index]?.judgement;
    if (judgement?.kind !== 'accepted') continue;
    const { table, indexes } = action.table.unitsOfWrite(judgement.before, judgement.after);
    capacity.add(action.table.definition.name, { table: table * WRITE_FACTOR, indexes });
    apply(action, judgement.after);
  }
  if (token !== undefined) database.tokens.remember(token, request['TransactItems']);
  return capacity.each('WriteCapacityUnits');
}

function tokenOf(request: WireRequest): string | undefined {
  const token = optionalText(request, 'ClientRequestToken');
  if (token !== undefined && (token.length === 0 || token.length > MAX_TOKEN_CHARACTERS)) {
    throw invalid("Value at 'clientRequestToken' failed to satisfy constraint: from 1 to 36 characters");
  }
  return token;
}

function parseAction(database: Database, wire: WireRequest): WriteAction {
  checkFields('TransactWriteItems', wire, KINDS);
  const [kind, ...others] = KINDS.filter((each) => wire[each] !== undefined);
  if (kind === undefined || others.length > 0) {
    throw invalid('TransactItems can only contain one of Check, Put, Update or Delete');
  }
  const request = recordOf(wire, kind);
  if (kind === 'Update' && request['UpdateExpression'] === undefined) {
    throw invalid("Value null at 'updateExpression' failed to satisfy constraint: Member must not be null");
  }
  return parseWrite(database, kind, { request });
}

function checkDistinct(actions: readonly WriteAction[]): void {
  const items = new Set(actions.map(({ table, key }) => `${table.definition.name} ${table.idOf(key)}`));
  if (items.size < actions.length) throw invalid('Transaction request cannot include multiple operations on one item');
  const bytes = actions.reduce((sum, { item }) => sum + (item === undefined ? 0 : mapBytes(item)), 0);
  if (bytes > MAX_TRANSACTION_BYTES) throw invalid('The aggregate size of the items in the transaction exceeds 4 MB');
}

interface Verdict {
  readonly reason: CancellationReason;
  readonly judgement?: Judgement;
}

function verdictOf(action: WriteAction): Verdict {
  try {
    const judgement = judge(action);
    if (judgement.kind === 'accepted') return { reason: ACCEPTED, judgement };
    const brings = action.returnsOldOnFailure && judgement.before !== undefined;
    return {
      reason: {
        Code: 'ConditionalCheckFailed',
        Message: 'The conditional request failed',
        ...(brings && { Item: wireMap(judgement.before) }),
      },
    };
  } catch (error) {
    // What does not fit the stored item is one action's fault, and names it.
    if (!(error instanceof ServiceError)) throw error;
    return { reason: { Code: 'ValidationError', Message: error.message } };
  }
}

/** The refusal of a whole transaction, with a reason for each of its actions. */
export function cancelled(reasons: readonly CancellationReason[]): ServiceError {
  const codes = reasons.map(({ Code }) => Code).join(', ');
  return new ServiceError(
    'TransactionCanceledException',
    `Transaction cancelled, please refer cancellation reasons for specific reasons [${codes}]`,
    { fields: { CancellationReasons: reasons } },
  );
}

export function transactGetItems(database: Database, request: WireRequest): object {
  checkFields('TransactGetItems', request, ['TransactItems', 'ReturnConsumedCapacity']);
  const capacity = new ConsumedCapacity(request);
  const gets = recordsOf(request, 'TransactItems', ACTIONS).map((wire) => {
    checkFields('TransactGetItems', wire, ['Get']);
    const get = recordOf(wire, 'Get');
    checkFields('TransactGetItems', get, ['TableName', 'Key', ...PROJECTION_FIELDS]);
    const projection = projectionOf(get);
    const table = database.table(get);
    return { table, key: parseKey(table.definition, get['Key']), projection };
  });
  const items = new Set(gets.map(({ table, key }) => `${table.definition.name} ${table.idOf(key)}`));
  if (items.size < gets.length) throw invalid('Transaction request cannot include multiple operations on one item');
  const responses = gets.map(({ table, key, projection }) => {
    const item = table.get(key);
    addRead(capacity, { table: table.definition.name, item });
    return item === undefined ? {} : { Item: wireMap(projection(item)) };
  });
  return { Responses: responses, ...capacity.each('ReadCapacityUnits') };
}

function addRead(
  capacity: ConsumedCapacity,
  { table, item }: { readonly table: string; readonly item: ValueMap | undefined },
): void {
  capacity.add(table, { table: readUnits(item === undefined ? 0 : mapBytes(item), 'transactional') });
}
