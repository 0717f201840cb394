/** Valid messages that come twice, late, in the wrong order, or to a handler that must fail. */
import { MAX_DELAY_SECONDS } from '../../messages/limits.ts';
import { poisonCharge } from './poisoned-provider.ts';
import { namesOf, sendAndTell, type InjectScope } from './scope.ts';

const OUT_OF_ORDER_COUNT = 3;
/** Between two messages of which the later one is to come first. Unit: s. SQS counts in whole seconds. */
const ORDER_STEP_SECONDS = 1;

/** The same body again and again: each time SQS gives it another message id. */
export async function injectDuplicates(scope: InjectScope): Promise<void> {
  const [message] = scope.samples(1);
  if (message === undefined) return;
  const duplicates = scope.count ?? 1;
  await sendAndTell(scope, { body: message.body, detail: 'the original', ...namesOf(message) });
  for (let number = 1; number <= duplicates && !scope.signal.aborted; number += 1) {
    const detail = `duplicate ${String(number)} of ${String(duplicates)}`;
    await sendAndTell(scope, { body: message.body, detail, ...namesOf(message) });
  }
}

export async function injectDelayed(scope: InjectScope): Promise<void> {
  const { delaySeconds } = scope;
  for (const message of scope.samples(scope.count ?? 1)) {
    if (scope.signal.aborted) return;
    const detail = `visible in ${String(delaySeconds)} s`;
    await sendAndTell(scope, { body: message.body, delaySeconds, detail, ...namesOf(message) });
  }
}

/** The first is hidden longest, so that the last comes first. */
export async function injectOutOfOrder(scope: InjectScope): Promise<void> {
  const count = Math.max(2, scope.count ?? OUT_OF_ORDER_COUNT);
  for (const [index, message] of scope.samples(count).entries()) {
    if (scope.signal.aborted) return;
    const delaySeconds = Math.min(MAX_DELAY_SECONDS, (count - 1 - index) * ORDER_STEP_SECONDS);
    const detail = `number ${String(index + 1)} of ${String(count)}, visible in ${String(delaySeconds)} s`;
    await sendAndTell(scope, { body: message.body, delaySeconds, detail, ...namesOf(message) });
  }
}

/** The provider is told first: a worker that is faster than this command must fail too. */
export async function injectPoison(scope: InjectScope): Promise<void> {
  for (const message of scope.samples(scope.count ?? 1)) {
    if (scope.signal.aborted) return;
    await poisonCharge(scope, message.key);
    scope.tell({
      action: 'poisoned',
      detail: 'the local payment provider fails it each time, and charges nothing, until DELETE /_faults or its end',
      ...namesOf(message),
    });
    await sendAndTell(scope, { body: message.body, detail: 'its handler fails every time', ...namesOf(message) });
  }
}
